import { startClusterSource } from './cluster-source.ts';
import { startDirectorySource } from './directory-source.ts';
import type { ObjectSource, ObjectSourceOptions } from './object-source.ts';

/** Rejects if a directory is not available. */
export async function startSource(options: ObjectSourceOptions): Promise<ObjectSource> {
  const { opened } = options;
  return opened.kind === 'directory'
    ? startDirectorySource(opened.paths, options)
    : startClusterSource(opened.client, options);
}
