import { nameKey } from '../../api/keys.ts';
import type { EndpointSlice, Namespace, Service } from '../../api/core.ts';
import { type KubernetesObject, sourceOfKey } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareText } from '../../model/age.ts';
import { isShared } from '../../model/cluster-mesh.ts';
import type { GlobalService } from '../../model/global-service.ts';
import { isGlobalSlice, reconcileGlobalService } from '../../reconcilers/core/global-service.ts';
import { type Inputs, optionsOf, siblingKey } from '../inputs.ts';
import type { EndpointList } from './endpoint-list.ts';

/** What the other clusters of a ClusterMesh are to know of this one, by `namespace/name`; empty if nobody tells them. */
export interface GlobalServices {
  readonly services: Collection<GlobalService>;
  /** Of these services, as they are. */
  readonly slices: Collection<EndpointSlice>;
}

/**
 * @param slices by `namespace/host` of their Service.
 */
export function declareGlobalServices(graph: Graph, inputs: Inputs, slices: Index<EndpointList>): GlobalServices {
  const { objects } = inputs;
  // Few Services are shared, and the others should cost nothing.
  const shared = graph.index('shared services', objects.Service, (key, { metadata }: KubernetesObject) =>
    isShared(metadata.annotations ?? {}) ? [key] : [],
  );
  const slicesOf = (read: Reader, namespace: string, name: string): readonly EndpointSlice[] => {
    const { clusterId, domainSuffix } = optionsOf(read, inputs);
    return read
      .group(slices, `${namespace}/${name}.${namespace}.svc.${domainSuffix}`)
      .map((list) => list.key)
      .filter((slice) => sourceOfKey(slice) === clusterId)
      .sort(compareText)
      .flatMap((slice) => (read.get(objects.EndpointSlice, slice) as EndpointSlice | undefined) ?? []);
  };
  const services = graph.derive(
    'exported global services',
    shared,
    (key, [member], read, emit: Emit<GlobalService>) => {
      const { clusterMeshExport, clusterId } = optionsOf(read, inputs);
      if (member === undefined || clusterMeshExport !== true || sourceOfKey(key) !== clusterId) return;
      const { namespace = '', name } = member.value.metadata;
      const service = reconcileGlobalService(
        member.value as Service,
        slicesOf(read, namespace, name),
        read.get(objects.Namespace, siblingKey(key, '', namespace)) as Namespace | undefined,
      );
      if (service !== undefined) emit(nameKey(namespace, name), service);
    },
  );
  const exported = graph.derive(
    'exported global slices',
    services,
    (_, { namespace, name }, read, emit: Emit<EndpointSlice>) => {
      for (const slice of slicesOf(read, namespace, name).filter(isGlobalSlice))
        emit(`${namespace}/${slice.metadata.name}`, slice);
    },
  );
  return { services, slices: exported };
}
