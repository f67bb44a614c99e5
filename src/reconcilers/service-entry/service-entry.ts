import type { KubernetesObject } from '../../api/object.ts';
import { refOf } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import {
  type MeshService,
  type Protocol,
  type Resolution,
  type ServicePort,
  exportsOf,
  isDns,
  isOwn,
  type InlineEndpoint,
} from '../../model/service.ts';
import { mostEndpoints } from '../core/endpoint-slice.ts';
import { checkExports, settleExportTo } from '../export-to.ts';
import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';
import { mostListeners } from './host-claims.ts';
import { readAddresses, readEndpoints, readHosts, readPorts, readSelector } from './fields.ts';
import { readServiceLabels } from '../core/service-labels.ts';
import { trafficDistribution } from '../core/service.ts';
import { localityOfLabels, tlsModeFor } from '../core/workload.ts';
import { spiffeId } from '../../identity/spiffe.ts';
import type { WorkloadSpec } from '../core/workload-spec.ts';
import { canonicalAddress, isAddress } from '../../model/address.ts';
import { canonicalHost, isWildcard } from '../../model/host.ts';
import type { AllocatedAddress } from '../../model/address-claim.ts';

export interface ServiceEntryContext {
  readonly source: string;
  readonly trustDomain: string;
  readonly defaultExportTo: readonly string[];
  readonly rootNamespace: string;
  /** Automatic addresses, where the status does not have them: of files. */
  readonly allocated?: readonly AllocatedAddress[] | undefined;
}

export interface ReconciledServiceEntry {
  /** One per host; none if the object is not valid. */
  readonly services: readonly MeshService[];
  /** As listed in `spec.hosts`. */
  readonly hosts: readonly string[];
  /** Its addresses and ranges, with the fields that name them. */
  readonly addresses: readonly { readonly address: string; readonly field: string }[];
  /** Hosts that are to have automatic addresses. */
  readonly unaddressed: readonly string[];
  readonly problems: readonly Problem[];
}

const RESOLUTIONS = {
  NONE: 'Passthrough',
  STATIC: 'ClientSideLB',
  DNS: 'DNSLB',
  DNS_ROUND_ROBIN: 'DNSRoundRobinLB',
  DYNAMIC_DNS: 'DynamicDNS',
} as const satisfies Readonly<Record<string, Resolution>>;

/** As spelled in a ServiceEntry. */
export function printResolution(resolution: Resolution): string {
  return Object.entries(RESOLUTIONS).find(([, known]) => known === resolution)?.[0] ?? resolution;
}

/** Limits on the product of a ServiceEntry's lists: far more than anybody needs, but no more than a commit can bear. */
const most = {
  /** Each port of each host is a cluster. */
  clusters: 10_000,
  listeners: mostListeners,
  /** Ranges of one port are filter chains of one listener, separate for each host. */
  chainsOfListener: 2_500,
  /** Listeners, and filter chains for ranges, of all hosts. */
  chains: 10_000,
  /** A cluster contains each endpoint once per address. */
  endpointsOfHost: mostEndpoints,
  endpoints: 200_000,
};

/** The hosts that a ServiceEntry claims. */
export function reconcileServiceEntry(
  object: KubernetesObject & { readonly spec?: unknown; readonly status?: unknown },
  context: ServiceEntryContext,
): ReconciledServiceEntry {
  const { namespace = '', labels, annotations = {} } = object.metadata;
  const findings = new Findings(refOf(context.source, object));
  const spec = new Field(object.spec, 'spec', findings).expectObject();
  const resolution =
    RESOLUTIONS[spec.get('resolution').oneOf('NONE', 'STATIC', 'DNS', 'DNS_ROUND_ROBIN', 'DYNAMIC_DNS')];
  const ports = readPorts(spec.get('ports'), resolution);
  const addressFields = readAddresses(spec.get('addresses'), resolution);
  const addresses = [...addressFields.keys()];
  const hosts = readHosts(spec, resolution, ports);
  const selector = readSelector(spec);
  const endpoints = readEndpoints(spec, resolution, ports);
  checkSizes(spec, {
    hosts: new Set(hosts).size,
    ports: ports.length,
    endpoints: endpoints.length,
    addresses: addresses.length,
  });
  const inline = endpoints.map((endpoint) => endpointOf(endpoint, ports, namespace, context.trustDomain));
  const distribution = trafficDistribution(annotations['networking.istio.io/traffic-distribution']);
  const shared = {
    namespace,
    createdAt: object.metadata.creationTimestamp ?? '',
    registry: 'External' as const,
    resolution,
    ports,
    exportTo: settleExportTo(spec.get('exportTo').strings(), namespace, context.defaultExportTo),
    meshExternal: spec.get('location').oneOf('MESH_EXTERNAL', 'MESH_INTERNAL') === 'MESH_EXTERNAL',
    ...readServiceLabels(labels),
    ...(selector === undefined ? {} : { selector }),
    subjectAltNames: spec.get('subjectAltNames').strings(),
    ...(distribution === undefined ? {} : { trafficDistribution: distribution }),
    nodeLocal: false,
    aliases: [],
    ...(new Set(hosts).size > 1 && { hostsOfEntry: new Set(hosts).size }),
    raceConnect: annotations['istio.io/connect-strategy'] === 'RACE_FIRST_TCP_CONNECT',
    origins: [findings.object],
  };
  checkExports(spec.get('exportTo'), shared.exportTo, Math.max(1, new Set(hosts).size));
  const unaddressed =
    findings.invalid || addresses.length > 0 ? [] : unaddressedHosts(new Set(hosts), resolution, labels);
  const allocated = unaddressed.length === 0 ? [] : allocatedAddresses(object);
  const anywhere = ports.filter(({ protocol }) => ADDRESSED.has(protocol)).map(({ number }) => number);
  // A listener treats a range that starts at the wildcard address as any address.
  const isAnywhere = addresses.every((address) => /^(0\.0\.0\.0(\/\d+)?|::(\/0)?)$/.test(address));
  if (!findings.invalid && anywhere.length > 0 && isAnywhere && allocated.length === 0)
    findings.report('spec.addresses', 'TooBroad', everythingOf(anywhere) + lostOf(ports));
  const ownProxy = inline.findIndex(isOwn);
  const local = { namespace, exportTo: shared.exportTo, endpoints: inline };
  if (!findings.invalid && ownProxy >= 0 && exportsOf(local, context.rootNamespace) !== shared.exportTo)
    findings.report(
      `spec.endpoints[${ownProxy}].address`,
      'Ineffective',
      `${quote(inline[ownProxy]!.address)} points to each client's own proxy (a unix socket, or a port from 15000 to 15099 on loopback), so only clients in namespace ${namespace} get this host. Set exportTo to ["."], or use another address or port.`,
    );
  const looksUpHost = isDns({ resolution }) && inline.length === 0 && selector === undefined;
  // Istio makes a service for each address, and all of them share the endpoints.
  const written = findings.invalid ? [] : Array.from({ length: Math.max(1, addresses.length) }, () => inline).flat();
  const wanting = new Set(unaddressed);
  const automatic = (context.allocated ?? allocated).filter(({ host }) => wanting.has(host));
  const addressesOf = Map.groupBy(automatic, ({ host }) => host);
  const services = [...new Set(hosts)].map((host) => ({
    ...shared,
    host,
    endpoints: looksUpHost ? [{ ...hostEndpoint, address: host, servicePorts: ports }] : written,
    name: host,
    addresses: addresses.length === 0 ? ['0.0.0.0'] : addresses,
    autoAddresses: (addressesOf.get(host) ?? []).map(({ value }) => value),
  }));
  return {
    services: findings.invalid ? [] : services,
    hosts,
    addresses: Array.from(addressFields, ([address, field]) => ({ address, field })),
    unaddressed,
    problems: findings.problems,
  };
}

/** Connections with these protocols do not reveal their host: only the address does. */
const ADDRESSED: ReadonlySet<Protocol> = new Set<Protocol>(['TCP', 'Mongo', 'Redis', 'MySQL']);

function everythingOf(ports: readonly number[]): string {
  const some = ports.slice(0, 5).join(', ') + (ports.length > 5 ? ', ...' : '');
  return `Without addresses, the entry takes every TCP connection to port ${some} that is not to another address of the mesh. List the addresses of its hosts.`;
}

/** See `yielding` in `src/settle/outbound-conflicts.ts`. */
function lostOf(ports: readonly ServicePort[]): string {
  const first = ports.find(({ protocol }) => protocol === 'Mongo' || protocol === 'MySQL');
  return first === undefined
    ? ''
    : ` It loses port ${first.number} wherever an HTTP or TLS service also has that port.`;
}

type List = 'hosts' | 'ports' | 'endpoints' | 'addresses';

function checkSizes(spec: Field, sizes: Readonly<Record<List, number>>): void {
  const check = (limit: number, ...lists: readonly [List, ...List[]]): boolean => {
    const product = lists.reduce((size, list) => size * Math.max(1, sizes[list]), 1);
    if (product <= limit) return true;
    const longest = lists.reduce((a, b) => (sizes[a] >= sizes[b] ? a : b));
    spec
      .get(longest)
      .invalid(
        `makes ${product} combinations of ${lists.join(', ')}; at most ${limit} are allowed. Split the ServiceEntry.`,
      );
    return false;
  };
  void (
    check(most.clusters, 'hosts', 'ports') &&
    check(most.listeners, 'addresses', 'ports') &&
    check(most.endpointsOfHost, 'ports', 'endpoints', 'addresses') &&
    check(most.endpoints, 'hosts', 'ports', 'endpoints', 'addresses') &&
    check(most.chainsOfListener, 'hosts', 'addresses') &&
    check(most.chains, 'hosts', 'addresses', 'ports')
  );
}

const hostEndpoint = {
  ports: {},
  labels: {},
  locality: '',
  network: '',
  identity: '',
  tlsMode: 'disabled',
  isHost: true,
} as const;

function endpointOf(
  { serviceAccount, ...spec }: WorkloadSpec,
  servicePorts: readonly ServicePort[],
  namespace: string,
  trustDomain: string,
): InlineEndpoint {
  return {
    ...spec,
    servicePorts,
    locality: spec.locality || localityOfLabels(spec.labels),
    identity: serviceAccount === '' ? '' : spiffeId(trustDomain, namespace, serviceAccount),
    tlsMode: tlsModeFor(spec.labels, serviceAccount),
  };
}

/** Hosts of an entry without addresses that get automatic ones. A wildcard stands for one destination only if Envoy resolves each name. */
function unaddressedHosts(
  hosts: ReadonlySet<string>,
  resolution: Resolution,
  labels: Readonly<Record<string, string>> = {},
): readonly string[] {
  if (resolution === 'Passthrough' || labels['networking.istio.io/enable-autoallocate-ip'] === 'false') return [];
  return [...hosts].filter((host) => resolution === 'DynamicDNS' || !isWildcard(host));
}

/** Addresses that an allocator wrote into the status. If they are invalid, the owner is not to blame. */
export function allocatedAddresses({
  metadata,
  status,
}: KubernetesObject & { readonly status?: unknown }): readonly AllocatedAddress[] {
  const ignored = new Findings(refOf('', { apiVersion: '', kind: '', metadata }));
  return new Field(status, 'status', ignored)
    .get('addresses')
    .objects()
    .map((address) => ({ host: canonicalHost(address.get('host').string()), value: address.get('value').string() }))
    .filter(({ value }) => isAddress(value))
    .map(({ host, value }) => ({ host, value: canonicalAddress(value) }));
}
