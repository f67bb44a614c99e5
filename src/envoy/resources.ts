import type { EncodedResource } from '../ads/resource.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Cluster, Listener } from './gen/types.gen.ts';
import { types } from './proto-types.ts';
import { type Protos, typeUrl } from './proto.ts';
import { leaf, resource } from './resource.ts';

export function clusterResource(protos: Protos, cluster: Cluster, origins: readonly ObjectRef[]): EncodedResource {
  return resource(typeUrl(types.cluster), cluster.name ?? '', leaf(protos.encode(types.cluster, cluster), [], origins));
}

/** @param clusters names that it refers to. */
export function listenerResource(
  protos: Protos,
  listener: Listener,
  clusters: readonly string[],
  origins: readonly ObjectRef[],
): EncodedResource {
  const bytes = protos.encode(types.listener, listener);
  return resource(typeUrl(types.listener), listener.name ?? '', leaf(bytes, clusters, origins));
}
