import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from '../../src/base/version.ts';
import { type Image, buildImages } from './images.ts';

const ROOT = join(import.meta.dirname, '../..');

const DOCKERFILES = { fairlead: 'Dockerfile', 'fairlead-proxy': 'Dockerfile.proxy' } as const;

/** Images of the project, from its Dockerfiles, by the names that the charts use. */
export async function buildProjectImages(
  names: readonly (keyof typeof DOCKERFILES)[],
  signal?: AbortSignal,
): Promise<string[]> {
  return buildImages(
    names.map((name): Image => ({
      name: `docker.io/library/${name}:${version}`,
      dockerfile: readFileSync(join(ROOT, DOCKERFILES[name]), 'utf8'),
      context: ROOT,
    })),
    signal,
  );
}

/** Of every service of the bookshop (examples/cluster). */
export function shopImage(): Image {
  const context = join(ROOT, 'examples/cluster');
  return {
    name: 'docker.io/library/bookshop:dev',
    dockerfile: readFileSync(join(context, 'Dockerfile'), 'utf8'),
    context,
  };
}
