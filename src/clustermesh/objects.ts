import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { CoreServicePort, EndpointSlice, Service, SliceEndpoint } from '../api/core.ts';
import { contentHash, spreadHash } from '../model/hash.ts';
import type { GlobalBackend, NamedPort } from '../model/global-service.ts';
import { portsKey, type RemoteService } from './service-value.ts';
import type { RemoteSlice } from './slice-value.ts';

const SERVICE_NAME = 'kubernetes.io/service-name';

/** As many as Kubernetes puts into a slice: one changed endpoint costs what it costs in an own cluster. */
const ENDPOINTS_OF_SLICE = 100;

/**
 * The back ends of a service of another cluster, as the slices that its own cluster could have. A slice has the same name
 * as long as the ports of its endpoints are the same, and the number of back ends is of the same size.
 */
export function slicesOfService(service: RemoteService): readonly EndpointSlice[] {
  if (!service.shared) return [];
  const groups = Map.groupBy(service.backends, ({ address, ports }) => `${familyOf(address)} ${portsKey(ports)}`);
  return [...groups.values()].flatMap((backends) => {
    const slices = slicesNeeded(backends.length);
    const parts = Map.groupBy(backends, ({ address }) => spreadHash(address) % slices);
    return Array.from(parts, ([part, of]) => buildSlice(service, part, of));
  });
}

/** A power of two: it seldom changes, and then moves half of the endpoints. */
function slicesNeeded(endpoints: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(endpoints / ENDPOINTS_OF_SLICE)));
}

function buildSlice(
  { namespace, name }: RemoteService,
  part: number,
  backends: readonly GlobalBackend[],
): EndpointSlice {
  const [{ address, ports }] = backends as readonly [GlobalBackend];
  const family = familyOf(address);
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace,
      name: `${name}-${family.toLowerCase()}-${contentHash(portsKey(ports))}-${part}`,
      labels: { [SERVICE_NAME]: name },
    },
    addressType: family,
    endpoints: backends.map(readyEndpoint),
    ports,
  };
}

const READY = { ready: true };

function readyEndpoint({ address, hostname, zone }: GlobalBackend): SliceEndpoint {
  return { addresses: [address], conditions: READY, ...(hostname && { hostname }), ...(zone && { zone }) };
}

function familyOf(address: string): 'IPv4' | 'IPv6' {
  return isIP(address) === 4 ? 'IPv4' : 'IPv6';
}

const SOURCE_CLUSTER = 'multicluster.kubernetes.io/source-cluster';
const MULTICLUSTER_SERVICE = 'multicluster.kubernetes.io/service-name';

/**
 * A slice of another cluster. Undefined if it is of no Service there: slices that copy those of a third cluster, which
 * says the same itself, and those of ServiceImports.
 */
export function sliceOf(slice: RemoteSlice, cluster: string): EndpointSlice | undefined {
  const { namespace, name, labels, addressType, endpoints, ports } = slice;
  const service = labels[SERVICE_NAME] ?? '';
  const isCopy = (labels[SOURCE_CLUSTER] ?? cluster) !== cluster || labels[MULTICLUSTER_SERVICE] !== undefined;
  if (service === '' || isCopy) return undefined;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name, labels: { [SERVICE_NAME]: service } },
    ...{ addressType, endpoints, ports },
  };
}

/** A claim without an age would be the oldest, and could take an address from a Service of this cluster. */
const YOUNGER_THAN_ALL = '9999-12-31T23:59:59Z';

/** A service of another cluster as a Service, for clusters without a Service of its name. Undefined if it is not shared. */
export function serviceOf({
  namespace,
  name,
  labels,
  shared,
  frontends,
  backends,
}: RemoteService): Service | undefined {
  if (!shared) return undefined;
  const addresses = frontends.map(({ address }) => address);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name, labels, creationTimestamp: YOUNGER_THAN_ALL },
    spec: {
      clusterIP: addresses[0] ?? 'None',
      ...(addresses.length > 1 && { clusterIPs: addresses }),
      // Of a headless one, only the ports of its back ends are known, which are what its clients connect to.
      ports: distinctPorts((frontends.length > 0 ? frontends : backends).map(({ ports }) => ports)),
    },
  };
}

/** Back ends may differ in the number of a port; a Service has one of each name. */
function distinctPorts(lists: readonly (readonly NamedPort[])[]): readonly CoreServicePort[] {
  const byName = new Map<string, NamedPort>();
  for (const ports of new Set(lists)) for (const port of ports) if (!byName.has(port.name)) byName.set(port.name, port);
  return [...byName.values()];
}

/** What a sink has to be told when the objects of one key change. */
export interface ObjectChanges<T> {
  readonly changed: readonly T[];
  /** Names. */
  readonly gone: readonly string[];
}

export function changesBetween<T extends EndpointSlice | Service>(
  before: readonly T[],
  after: readonly T[],
): ObjectChanges<T> {
  const former = new Map(before.map((object) => [object.metadata.name, object]));
  const changed = after.filter((object) => !isDeepStrictEqual(object, former.get(object.metadata.name)));
  for (const { metadata } of after) former.delete(metadata.name);
  return { changed, gone: [...former.keys()] };
}
