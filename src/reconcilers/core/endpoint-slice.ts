import type { Endpoints, EndpointSlice } from '../../api/core.ts';
import { type GlobalUse, portsServedBy } from '../../model/cluster-mesh.ts';
import type { Endpoint, Health, Workload } from '../../model/endpoint.ts';
import type { Labels } from '../../model/labels.ts';

export interface EndpointContext {
  readonly cluster: string;
  /**
   * The slice stands for endpoints of another cluster of a ClusterMesh, whose Pods are not here: what the Service here
   * takes of them.
   */
  readonly global?: GlobalUse | undefined;
  /** The Service's sessions stick to an endpoint: endpoints that leave are drained, not dropped. */
  readonly persistentSession: boolean;
  /** The Pod that a targetRef names; undefined if there is none. */
  pod(namespace: string, name: string): Workload | undefined;
  /** A ready Pod of the namespace with this address, for endpoints without a targetRef. */
  podAt(namespace: string, address: string): Workload | undefined;
  /** The network of an address in this cluster, if its Pod does not name one. */
  network?(address: string): string;
}

/** Lists of addresses and ports multiply. The endpoints of one object are built in one step, 2 µs each. */
export const mostEndpoints = 40_000;

const SERVICE_NAME = 'kubernetes.io/service-name';

/** Name of the Service that a slice belongs to; undefined if the slice is not for the mesh. */
export function serviceOfSlice(slice: EndpointSlice): string | undefined {
  const labels = slice.metadata.labels ?? {};
  if (slice.addressType === 'FQDN' || labels['multicluster.kubernetes.io/service-name'] !== undefined) return undefined;
  return labels[SERVICE_NAME];
}

const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const SOURCE_CLUSTER = 'multicluster.kubernetes.io/source-cluster';

/**
 * The cluster whose endpoints Cilium has copied into a slice of this one (`service.cilium.io/global-sync-endpoint-slices`);
 * undefined: it is a slice like any other.
 */
export function copiedFrom({ metadata: { labels = {} } }: EndpointSlice): string | undefined {
  return labels[MANAGED_BY] === 'endpointslice-mesh-controller.cilium.io' ? labels[SOURCE_CLUSTER] : undefined;
}

/**
 * The endpoints of a slice, one per address and port; if there are too many, the first ones. An address is left out
 * while its Pod is unknown.
 */
export function reconcileEndpointSlice(slice: EndpointSlice, context: EndpointContext): readonly Endpoint[] {
  const found: Endpoint[] = [];
  const namespace = slice.metadata.namespace ?? '';
  const ports = portsOf(slice, context);
  for (const entry of slice.endpoints ?? []) {
    const health = healthOf(entry.conditions ?? {}, context.persistentSession);
    for (const address of entry.addresses ?? []) {
      const workload = workloadOf(entry.targetRef, namespace, address, context);
      if (workload === 'unknown') continue;
      for (const { port, name } of ports) {
        if (found.length === mostEndpoints) return found;
        found.push({
          ...endpointOf(address, port, name, health, workload, context),
          ...(entry.hostname && { hostname: entry.hostname }),
        });
      }
    }
  }
  return found;
}

/** By the names that they have in the Service. */
function portsOf(
  { ports, addressType }: EndpointSlice,
  { global }: EndpointContext,
): readonly { readonly port: number; readonly name: string }[] {
  if (global === undefined) return (ports ?? []).map(({ name = '', port = 0 }) => ({ name, port }));
  const found: { port: number; name: string }[] = [];
  if (!global.families.some((family) => family === addressType)) return found;
  for (const port of ports ?? [])
    for (const name of portsServedBy(port, global))
      if (found.length < mostEndpoints) found.push({ port: port.port ?? 0, name });
  return found;
}

/** The endpoints of the legacy kind, which has subsets of addresses and no terminating state. */
export function reconcileEndpoints(object: Endpoints, context: EndpointContext): readonly Endpoint[] {
  const found: Endpoint[] = [];
  const namespace = object.metadata.namespace ?? '';
  for (const subset of object.subsets ?? []) {
    const addresses = [
      ...(subset.addresses ?? []).map((address) => ({ address, health: 'Healthy' as const })),
      ...(subset.notReadyAddresses ?? []).map((address) => ({ address, health: 'UnHealthy' as const })),
    ];
    for (const { address, health } of addresses) {
      const workload = workloadOf(address.targetRef, namespace, address.ip, context);
      if (workload === 'unknown') continue;
      for (const port of subset.ports ?? []) {
        if (found.length === mostEndpoints) return found;
        found.push({
          ...endpointOf(address.ip, port.port, port.name ?? '', health, workload, context),
          ...(address.hostname && { hostname: address.hostname }),
        });
      }
    }
  }
  return found;
}

function healthOf(
  conditions: {
    readonly ready?: boolean | null;
    readonly serving?: boolean | null;
    readonly terminating?: boolean | null;
  },
  persistentSession: boolean,
): Health {
  if (conditions.ready !== false) return 'Healthy';
  const leaving = conditions.terminating !== false;
  if (persistentSession && leaving && conditions.serving !== false) return 'Draining';
  return leaving ? 'Terminating' : 'UnHealthy';
}

function workloadOf(
  target: { readonly kind?: string; readonly name?: string; readonly namespace?: string } | undefined,
  namespace: string,
  address: string,
  context: EndpointContext,
): Workload | undefined | 'unknown' {
  if (target?.kind === 'Pod' && target.name !== undefined && context.global === undefined)
    return context.pod(target.namespace ?? namespace, target.name) ?? 'unknown';
  return context.podAt(namespace, address);
}

const NO_LABELS: Labels = {};

function endpointOf(
  address: string,
  port: number,
  portName: string,
  health: Health,
  workload: Workload | undefined,
  { cluster, global, network }: EndpointContext,
): Endpoint {
  const namesNetwork = workload !== undefined && workload.inheritsNetwork !== true;
  return {
    addresses: [address],
    port,
    portName,
    health,
    labels: workload?.labels ?? NO_LABELS,
    locality: workload?.locality ?? '',
    network: (namesNetwork ? workload.network : network?.(address)) ?? '',
    cluster,
    ...(global !== undefined && { viaClusterMesh: true }),
    identity: workload?.identity ?? '',
    tlsMode: workload?.tlsMode ?? 'disabled',
    workload: workload?.workload ?? '',
    namespace: workload?.namespace ?? '',
    nodeName: workload?.nodeName ?? '',
  };
}
