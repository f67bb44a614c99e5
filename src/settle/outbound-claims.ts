import { isIP } from 'node:net';
import { isWildcard } from '../model/host.ts';
import { type Bind, type ListenerClaim, httpProxyPort } from '../model/listener.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import { type MeshService, type ServicePort, addressesIn, isHeadless, protocolClass } from '../model/service.ts';
import type { EgressListener } from '../model/sidecar.ts';
import { type Traits, loopbackAddress, loopbackAddresses, wildcardAddress } from '../model/traits.ts';
import { type ChainInput, l4Chains } from './outbound-chains.ts';

/** `port` is the service's. */
export interface ClaimInput extends Omit<ChainInput, 'subnets' | 'shared'> {
  /** The Sidecar's egress listener that imports the service. */
  readonly egress?: EgressListener | undefined;
}

/** What one port of a service claims from listeners: none, one, or one for each of its addresses. */
export function claimsOf(input: ClaimInput): readonly ListenerClaim[] {
  const port = heardPort(input);
  const kind = protocolClass(port.protocol);
  if (kind === 'udp' || protocolClass(input.port.protocol) === 'udp' || input.service.resolution === 'Alias') return [];
  const { traits } = input.client;
  const toPort = traits.interception === 'NONE' || input.egress?.bindToPort === true;
  if (toPort && traits.unprivileged && port.number < 1024) return [];
  const given = givenAddresses(input, toPort);
  if (kind === 'http') {
    const addresses = given ?? wildcards(traits);
    return isReserved(addresses[0], port.number, input) ? [] : [httpClaim(input, port, { addresses, toPort })];
  }
  const lost = (input.service.lostRanges ?? []).filter((place) => place.port === port.number);
  return spotsOf(input, given).flatMap((spot) => {
    const [address] = spot.addresses;
    if (spot.subnets.some((subnet) => lost.some(({ range }) => range === subnet))) return [];
    if (isReserved(address, port.number, input)) return [];
    return [l4Claim(input, port, kind, { addresses: spot.addresses, toPort }, spot.subnets)];
  });
}

/**
 * The port of the listener. A Sidecar's egress listener with a port sets number and protocol itself. If it leaves the protocol to sniffing,
 * services that declare TCP keep their own protocol, which has no routes.
 */
export function heardPort({ port, egress }: Pick<ClaimInput, 'port' | 'egress'>): ServicePort {
  const listener = egress?.port;
  if (listener === undefined) return port;
  return protocolClass(listener.protocol) === 'sniffed' && protocolClass(port.protocol) === 'tcp'
    ? { ...port, number: listener.number }
    : listener;
}

type Addresses = readonly [string, ...string[]];

/** The common address of all services on a port: the Sidecar's, or loopback if nothing is redirected. */
function givenAddresses({ egress, client: { traits } }: ClaimInput, toPort: boolean): Addresses | undefined {
  if (egress !== undefined && egress.bind !== '') return [egress.bind];
  if (!toPort) return undefined;
  return traits.ipFamily === 'dual' ? ['127.0.0.1', '::1'] : [loopbackAddress(traits)];
}

function wildcards(traits: Traits): Addresses {
  return traits.ipFamily === 'dual' ? ['0.0.0.0', '::'] : [wildcardAddress(traits)];
}

/**
 * Envoy rejects two listeners at one address, even if one of them does not bind it; the listeners that all proxies have
 * take precedence. For those of a single proxy, see {@link isOfProxy}.
 */
function isReserved(address: string, port: number, { settings, client: { traits } }: ClaimInput): boolean {
  if (address !== wildcardAddress(traits)) return false;
  return port === settings.proxyListenPort || port === settings.proxyInboundListenPort;
}

/** Whether the proxy's agent, Envoy itself, or the listener for HTTP proxy clients already listens there. */
export function isOfProxy({ bind, port }: ListenerClaim, traits: Traits, settings: ListenerSettings): boolean {
  if (traits.reservedPorts.includes(port) && bind.addresses[0] === wildcardAddress(traits)) return true;
  if (port === 0 || port !== httpProxyPort(traits, settings)) return false;
  return bind.addresses.some((address) => loopbackAddresses(traits).includes(address));
}

function httpClaim({ service, egress }: ClaimInput, port: ServicePort, bind: Bind): ListenerClaim {
  const dynamic = service.resolution === 'DynamicDNS' && isWildcard(service.host);
  return {
    kind: 'http',
    bind,
    port: port.number,
    routes: port.number === 0 ? bind.addresses[0] : String(port.number),
    grpcWeb: port.protocol === 'GRPCWeb',
    // It takes the whole listener, which only the owner of the listener may decide.
    proxy: egress?.port?.protocol === 'HTTP_PROXY',
    ...(dynamic ? { dynamicHost: service.host } : {}),
  };
}

function l4Claim(
  input: ClaimInput,
  port: ServicePort,
  kind: 'tcp' | 'sniffed',
  bind: Bind,
  subnets: readonly string[],
): ListenerClaim {
  const { service, client } = input;
  const onWildcard = bind.addresses[0] === wildcardAddress(client.traits);
  const shared = subnets.length > 0 || service.addresses.every(isRange) || (onWildcard && !hasAddress(input));
  return {
    kind,
    bind,
    port: port.number,
    protocol: port.protocol,
    host: service.host,
    namespace: service.namespace,
    origins: service.origins,
    routes: kind === 'tcp' ? '' : routesOf(service, port.number, bind.addresses[0], onWildcard),
    chains: l4Chains({ ...input, port, subnets, shared }),
  };
}

/** A sniffed service with its own address has its own route table. */
function routesOf(service: MeshService, port: number, address: string, onWildcard: boolean): string {
  if (port === 0) return address;
  return onWildcard ? String(port) : `${service.host}:${port}`;
}

/** An address at which a service listens. */
interface Spot {
  readonly addresses: Addresses;
  /** Destination ranges, if the address is shared. */
  readonly subnets: readonly string[];
}

function spotsOf(input: ClaimInput, given: Addresses | undefined): readonly Spot[] {
  const { service, client, summary } = input;
  if (given !== undefined) return [{ addresses: given, subnets: [] }];
  const { traits } = client;
  const assigned = addressesFor(service, traits);
  // If a Sidecar gives the listener a port, there is one listener, whatever pods exist.
  if (isHeadless(service) && assigned.every(isUnspecified) && input.egress?.port === undefined) {
    const pods = summary.addresses.filter((address) => isIP(address) !== 0);
    const plain = service.registry === 'External' && service.selector === undefined && pods.length === 0;
    if (!plain) return pods.map((address) => ({ addresses: [address], subnets: [] }));
  }
  // A Service has one listener for all its addresses, a ServiceEntry one per address.
  if (service.registry === 'Kubernetes' || assigned.length === 0 || assigned.every(isUnspecified))
    return [spotOf(assigned, traits)];
  const shared = service.addresses.every(isUnspecified);
  return shared ? [spotOf(assigned, traits)] : assigned.map((address) => spotOf([address], traits));
}

function spotOf(assigned: readonly string[], traits: Traits): Spot {
  const [first, ...more] = assigned;
  if (first === undefined || isUnspecified(first)) return { addresses: wildcards(traits), subnets: [] };
  if (isRange(first)) return { addresses: wildcards(traits), subnets: assigned };
  return { addresses: [first, ...more], subnets: [] };
}

function hasAddress({ service, client: { traits } }: ClaimInput): boolean {
  return !addressesFor(service, traits).every(isUnspecified);
}

function isRange(address: string): boolean {
  return address.includes('/');
}

function isUnspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

/**
 * The addresses of a service that a proxy uses. A dual-stack Service counts as single-stack: the proxy's family, or its
 * own first one. A ServiceEntry's addresses apply to all proxies, because they need not be reachable.
 */
export function addressesFor(
  service: MeshService,
  traits: Pick<Traits, 'ipFamily' | 'dnsCapture' | 'cluster'>,
): readonly string[] {
  const addresses = addressesIn(service, traits.cluster);
  const ofFamily = (list: readonly string[]): string[] =>
    list.filter((address) => traits.ipFamily === 'dual' || isIP(address) === (traits.ipFamily === 'v4' ? 4 : 6));
  if (addresses.every(isUnspecified) && traits.dnsCapture) {
    // The IPv4 address first, whatever their order in the status.
    const allocated = ofFamily(service.autoAddresses).sort((a, b) => isIP(a) - isIP(b));
    if (allocated.length > 0) return allocated;
  }
  if (service.registry === 'External') return addresses;
  const [own = addresses[0] ?? '0.0.0.0'] = ofFamily(addresses);
  return [own];
}
