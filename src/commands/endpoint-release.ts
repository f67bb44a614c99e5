import type { ServiceName } from '../cli/program.ts';
import { ClusterError } from '../kube/client/cluster-error.ts';
import type { ClusterSettings } from '../config/config.ts';
import { objectPath } from '../kube/client/paths.ts';
import { RELEASE_ANNOTATION } from '../model/lost-endpoints.ts';
import { openSource } from '../serve/object-source.ts';

/** Lets every replica know, by an annotation of the Service, that what is held for it until now is to go. */
export async function releaseEndpoints(
  { source }: ClusterSettings,
  { namespace, name }: ServiceName,
  signal: AbortSignal,
): Promise<void> {
  const opened = openSource(source);
  if (opened.kind !== 'kubernetes') throw new ClusterError('endpoints are held only of clusters');
  const annotations = { [RELEASE_ANNOTATION]: new Date().toISOString() };
  const path = objectPath({ group: '', version: 'v1', plural: 'services' }, namespace, name);
  try {
    await opened.client.patch(path, { metadata: { annotations } }, { signal });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ClusterError(`Service ${namespace}/${name} cannot be changed: ${reason}`, { cause });
  } finally {
    await opened.client.close();
  }
}
