import { quote } from '../api/quote.ts';
import { canonicalAddress } from '../model/address.ts';
import {
  type GlobalAddress,
  type GlobalBackend,
  type GlobalService,
  MOST_GLOBAL_ENDPOINTS,
  type NamedPort,
} from '../model/global-service.ts';
import { addressProblem, DNS_LABEL, LABEL_VALUE, readNamed, transportOf } from './content.ts';
import { type Decoded, decodeJson, type Member } from './member.ts';
import type { MeshCluster } from './names.ts';

/** A global service of another cluster. Source: Cilium pkg/clustermesh/store, `ClusterService`. */
export interface RemoteService {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** False means the same as if it did not exist. */
  readonly shared: boolean;
  /** Its own addresses; none if it is headless. Equal ports are the same list. */
  readonly frontends: readonly GlobalAddress[];
  /** By address. The same. */
  readonly backends: readonly GlobalBackend[];
}

/** Of one service. */
const MOST_FRONTENDS = 100;
const MOST_BACKENDS = 10_000;
/** Of one address. */
const MOST_PORTS = 1_000;

/** `suffix`: of the key. */
export function decodeService(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<RemoteService> {
  return decodeJson(bytes, (whole) => {
    const named = readNamed(whole, suffix, cluster, DNS_LABEL);
    const id = whole.get('clusterID');
    if (id.number(0, 0xffff_ffff) !== cluster.id) id.wrong(`is not ${cluster.id}, the id of cluster ${cluster.name}`);
    // An ExternalName looks like this. It is of no use in other clusters, and Cilium's own readers refuse it.
    const isExternalName = whole.get('frontends').at('').isSet;
    const lists = new Map<string, readonly NamedPort[]>();
    const frontends = isExternalName ? [] : readAddresses(whole.get('frontends'), MOST_FRONTENDS, lists);
    const backends = readAddresses(whole.get('backends'), MOST_BACKENDS, lists);
    const hostnames = whole.get('hostnames');
    const zones = whole.get('zones');
    return {
      ...named,
      labels: whole.get('labels').texts(),
      shared: whole.get('shared').flag() && !isExternalName,
      frontends: frontends.map(({ address, ports }) => ({ address, ports })),
      backends: backends.map(({ written, address, ports }) => {
        const hostname = hostnames.at(written);
        const zone = zones.at(written).get('zone');
        return {
          ...{ address, ports },
          ...(hostname.text() !== '' && { hostname: hostname.matching(DNS_LABEL, 'a host name') }),
          ...(zone.text() !== '' && { zone: zone.matching(LABEL_VALUE, 'a zone') }),
        };
      }),
    };
  });
}

interface ReadAddress extends GlobalAddress {
  /** Other maps have the same key. */
  readonly written: string;
}

function readAddresses(map: Member, most: number, lists: Map<string, readonly NamedPort[]>): readonly ReadAddress[] {
  const found = new Map<string, ReadAddress>();
  let endpoints = 0;
  for (const [written, member] of map.entries(most)) {
    const problem = addressProblem(written);
    if (problem !== undefined) map.wrong(problem);
    const ports = readPorts(member, lists);
    endpoints += ports.length;
    if (endpoints > MOST_GLOBAL_ENDPOINTS)
      map.wrong(`has more than ${MOST_GLOBAL_ENDPOINTS} pairs of address and port`);
    const address = canonicalAddress(written);
    // IPv6 has several texts for one address.
    if (!found.has(address)) found.set(address, { written, address, ports });
  }
  return [...found.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
}

function readPorts(map: Member, lists: Map<string, readonly NamedPort[]>): readonly NamedPort[] {
  const ports = map.entries(MOST_PORTS).map(([name, member]): NamedPort => {
    if (name !== '' && !DNS_LABEL.test(name)) member.wrong('has a name that a port cannot have');
    const protocol = member.get('Protocol').text();
    return {
      name,
      port: member.get('Port').number(1, 65_535),
      protocol: transportOf(protocol) ?? member.wrong(`has protocol ${quote(protocol)}, which a Service cannot have`),
    };
  });
  ports.sort((a, b) => (a.name < b.name ? -1 : 1));
  const key = portsKey(ports);
  const known = lists.get(key);
  if (known === undefined) lists.set(key, ports);
  return known ?? ports;
}

/** Equal for equal ports. */
export function portsKey(ports: readonly NamedPort[]): string {
  return ports.map(({ name, port, protocol }) => `${name}:${port}/${protocol}`).join();
}

/** As Cilium's own exporter writes it: equal services are equal texts. Throws if it is too large for that. */
export function encodeService(service: GlobalService, { name: cluster, id }: MeshCluster): string {
  const { namespace, name, labels, selector, frontends, backends } = service;
  // Addresses share their ports here, but not in the text: that could be a thousand times as long.
  for (const addresses of [frontends, backends])
    if (addresses.reduce((sum, { ports }) => sum + ports.length, 0) > MOST_GLOBAL_ENDPOINTS)
      throw new Error(`has more than ${MOST_GLOBAL_ENDPOINTS} pairs of address and port`);
  const hostnames = backends.flatMap(({ address, hostname }) => (hostname ? [[address, hostname] as const] : []));
  const zones = backends.flatMap(({ address, zone = '', forZones = [] }) =>
    zone === '' && forZones.length === 0
      ? []
      : [[address, { zone, forZones: forZones.map((each) => ({ name: each })) }] as const],
  );
  return JSON.stringify({
    cluster,
    namespace,
    name,
    frontends: addressMap(frontends),
    backends: addressMap(backends),
    ...(hostnames.length > 0 && { hostnames: sortedMap(hostnames) }),
    ...(zones.length > 0 && { zones: sortedMap(zones) }),
    labels: sortedMap(Object.entries(labels)),
    selector: sortedMap(Object.entries(selector)),
    includeExternal: true,
    shared: true,
    clusterID: id,
  });
}

function addressMap(addresses: readonly GlobalAddress[]): object {
  return sortedMap(
    addresses.map(({ address, ports }) => [
      address,
      sortedMap(ports.map(({ name, port, protocol }) => [name, { Protocol: protocol, Port: port }])),
    ]),
  );
}

function sortedMap(entries: readonly (readonly [key: string, value: unknown])[]): object {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}
