import type { Endpoints, EndpointSlice } from '../../api/core.ts';
import { type KubernetesObject, type ObjectRef, refOf, sourceOfKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { clusterOfSource, type GlobalUse, isClusterMesh } from '../../model/cluster-mesh.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import {
  type EndpointContext,
  copiedFrom,
  mostEndpoints,
  reconcileEndpoints,
  reconcileEndpointSlice,
  serviceOfSlice,
} from '../../reconcilers/core/endpoint-slice.ts';
import { type Inputs, optionsOf, siblingKey } from '../inputs.ts';
import { type EndpointList, exportOf, ineffective } from './endpoint-list.ts';
import { type HeldEndpoints, declareHeldEndpoints, reconcileHeld } from './held-endpoints.ts';
import type { Networks } from './networks.ts';
import type { Services } from './services.ts';
import type { Workloads } from './workloads.ts';

export interface ListedEndpoints {
  /** From EndpointSlices, from Endpoints, and held. */
  readonly lists: readonly Collection<EndpointList>[];
  /** The slices of a service; by `namespace/host`. */
  readonly slicesByService: Index<EndpointList>;
  readonly held: HeldEndpoints;
}

export interface ListedEndpointDeps {
  readonly services: Services;
  readonly workloads: Workloads;
  readonly networks: Networks;
}

/** Endpoints that an API server lists, or has listed. */
export function declareListedEndpoints(
  graph: Graph,
  inputs: Inputs,
  { services, workloads, networks }: ListedEndpointDeps,
): ListedEndpoints {
  const { objects } = inputs;
  const hostOf = (read: Reader, namespace: string, name: string) =>
    `${namespace}/${name}.${namespace}.svc.${optionsOf(read, inputs).domainSuffix}`;
  // Kept apart from the service: most changes to a service do not affect its slices.
  const persistentSessions = graph.index('services with persistent sessions', services.services, (key, service) =>
    service.persistentSession ? [key] : [],
  );
  const globalServices = graph.index('global services', services.services, (key, { global }) =>
    global === undefined ? [] : [key],
  );
  const contextOf = (
    read: Reader,
    key: string,
    service: string,
    cluster = clusterOfSource(sourceOfKey(key)),
    global?: GlobalUse,
  ): EndpointContext => ({
    ...{ cluster, global },
    persistentSession: read.group(persistentSessions, service).length > 0,
    pod: (ns, name) => read.get(workloads.pods, siblingKey(key, ns, name)),
    podAt(ns, address) {
      const pods = read
        .group(workloads.podsByAddress, address)
        .filter(({ value }) => value.ready && value.namespace === ns && value.cluster === cluster);
      // An API server knows more of a Pod than a ClusterMesh does.
      const known = pods.find((pod) => !isClusterMesh(sourceOfKey(pod.key)));
      return (known ?? (global === undefined ? undefined : pods[0]))?.value;
    },
    network: (address) => networks.of(read, cluster, address),
  });

  const slices = graph.derive(
    'sliceEndpoints',
    objects.EndpointSlice,
    (key, object, read, emit: Emit<EndpointList>) => {
      const slice = object as EndpointSlice;
      const name = serviceOfSlice(slice);
      if (name === undefined) return;
      const { namespace = '' } = slice.metadata;
      const service = hostOf(read, namespace, name);
      const source = sourceOfKey(key);
      const meshed = isClusterMesh(source) ? clusterOfSource(source) : copiedFrom(slice);
      const global = meshed === undefined ? undefined : read.group(globalServices, service)[0]?.value.global;
      if (meshed !== undefined && global === undefined) return;
      const context = contextOf(read, key, service, meshed, global);
      const endpoints = reconcileEndpointSlice(slice, context);
      const origin = originOf(key, slice);
      const problems = tooMany(endpoints, origin, 'endpoints');
      const exported =
        meshed === undefined ? exportOf(read, inputs, services.exports, { source, namespace, name }) : {};
      emit(key, { service, ...exported, endpoints, origins: [origin], problems });
    },
  );
  const slicesByService = graph.index('slices by service', slices, (_, list) => [list.service]);
  const hasSlices = (read: Reader, key: string, service: string): boolean =>
    read.group(slicesByService, service).some((member) => sourceOfKey(member.key) === sourceOfKey(key));
  const legacy = graph.derive('legacyEndpoints', objects.Endpoints, (key, object, read, emit: Emit<EndpointList>) => {
    const { name, namespace = '' } = object.metadata;
    const service = hostOf(read, namespace, name);
    if (hasSlices(read, key, service)) return;
    const endpoints = reconcileEndpoints(object as Endpoints, contextOf(read, key, service));
    const origin = originOf(key, object);
    const problems = tooMany(endpoints, origin, 'subsets');
    const exported = exportOf(read, inputs, services.exports, { source: sourceOfKey(key), namespace, name });
    emit(`${key}#legacy`, { service, ...exported, endpoints, origins: [origin], problems });
  });
  const held = declareHeldEndpoints(graph, inputs, workloads, (read, key, { namespace, service }) =>
    hasSlices(read, key, hostOf(read, namespace, service)),
  );
  const kept = graph.derive('heldEndpointLists', held.held, (key, part, read, emit: Emit<EndpointList>) => {
    const service = hostOf(read, part.namespace, part.service);
    const endpoints = reconcileHeld(part, contextOf(read, key, service));
    const owner = { source: sourceOfKey(key), namespace: part.namespace, name: part.service };
    const exported = exportOf(read, inputs, services.exports, owner);
    emit(`${key}#held`, { service, ...exported, endpoints, origins: [], problems: part.problems });
  });
  return { lists: [slices, legacy, kept], slicesByService, held };
}

function tooMany(endpoints: readonly Endpoint[], object: ObjectRef, field: string): Problem[] {
  if (endpoints.length < mostEndpoints) return [];
  const message = `has ${mostEndpoints} or more endpoints, one for each address and port; the rest are ignored. Use several objects.`;
  return [ineffective(object, field, message)];
}

/** Without its generation, which changes with every endpoint. */
function originOf(key: string, object: KubernetesObject): ObjectRef {
  const { generation: _, ...ref } = refOf(sourceOfKey(key), object);
  return ref;
}
