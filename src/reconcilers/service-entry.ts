import { BlockList, isIP } from 'node:net';
import type { ServiceEntry, ServiceEntrySpec } from '../api/gen/service-entry.gen.ts';
import { refOf } from '../api/object.ts';
import type { Problem, ProblemReason } from '../api/problem.ts';
import type { InlineEndpoint } from '../model/endpoint.ts';
import { isHostName, isWildcard } from '../model/host.ts';
import type { MeshService, Resolution, ServicePort } from '../model/service.ts';
import { settleExportTo } from './export-to.ts';
import { parseProtocol } from './protocol.ts';
import { trafficDistribution } from './service.ts';
import { localityOfLabels, spiffeId, tlsModeOf } from './workload.ts';

export interface ServiceEntryContext {
  readonly source: string;
  readonly trustDomain: string;
  readonly defaultExportTo: readonly string[];
}

const RESOLUTIONS: Readonly<Record<string, Resolution>> = {
  NONE: 'Passthrough',
  STATIC: 'ClientSideLB',
  DNS: 'DNSLB',
  DNS_ROUND_ROBIN: 'DNSRoundRobinLB',
  DYNAMIC_DNS: 'DynamicDNS',
};

type SpecPort = NonNullable<ServiceEntrySpec['ports']>[number];
type SpecEndpoint = NonNullable<ServiceEntrySpec['endpoints']>[number];
type Report = (field: string, message: string, reason?: ProblemReason) => void;

/** The hosts that a ServiceEntry claims; none when it is not valid. */
export function reconcileServiceEntry(
  object: ServiceEntry,
  context: ServiceEntryContext,
): { readonly services: readonly MeshService[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const ref = refOf(context.source, object);
  const report: Report = (field, message, reason = 'Invalid') =>
    void problems.push({ object: ref, field, reason, message });
  const spec = object.spec ?? {};
  const resolution = RESOLUTIONS[spec.resolution ?? 'NONE'] ?? 'Passthrough';
  validate(spec, resolution, report);
  if (problems.some((problem) => problem.reason === 'Invalid')) return { services: [], problems };

  const { name: _, namespace = '', annotations = {} } = object.metadata;
  const distribution = trafficDistribution(annotations['networking.istio.io/traffic-distribution']);
  const addresses = addressesOf(spec);
  const shared = {
    namespace,
    createdAt: object.metadata.creationTimestamp ?? '',
    registry: 'External' as const,
    resolution,
    ports: (spec.ports ?? []).map(portOf),
    exportTo: settleExportTo(spec.exportTo, namespace, context.defaultExportTo),
    meshExternal: (spec.location ?? 'MESH_EXTERNAL') === 'MESH_EXTERNAL',
    labels: object.metadata.labels ?? {},
    ...(spec.workloadSelector?.labels === undefined ? {} : { selector: spec.workloadSelector.labels }),
    endpoints: (spec.endpoints ?? []).map((endpoint) => endpointOf(endpoint, namespace, context.trustDomain)),
    subjectAltNames: spec.subjectAltNames ?? [],
    ...(distribution === undefined ? {} : { trafficDistribution: distribution }),
    nodeLocal: false,
    publishNotReadyAddresses: false,
    aliases: [],
    raceConnect: annotations['istio.io/connect-strategy'] === 'RACE_FIRST_TCP_CONNECT',
    origins: [ref],
  };
  return {
    services: [...new Set(spec.hosts ?? [])].map((host) => ({
      ...shared,
      host,
      name: host,
      addresses: addresses.length === 0 ? ['0.0.0.0'] : addresses,
      autoAddresses: addresses.length === 0 ? allocatedFor(object, host) : [],
    })),
    problems,
  };
}

function portOf(port: SpecPort): ServicePort {
  return {
    name: port.name ?? '',
    number: port.number ?? 0,
    protocol: parseProtocol(port.protocol ?? ''),
    ...(port.targetPort === undefined || port.targetPort === 0 ? {} : { targetPort: port.targetPort }),
  };
}

function endpointOf(endpoint: SpecEndpoint, namespace: string, trustDomain: string): InlineEndpoint {
  const labels = endpoint.labels ?? {};
  const account = endpoint.serviceAccount ?? '';
  const tlsMode = labels['security.istio.io/tlsMode'] === undefined && account !== '' ? 'istio' : tlsModeOf(labels);
  return {
    address: endpoint.address ?? '',
    ports: endpoint.ports ?? {},
    labels,
    locality: endpoint.locality || localityOfLabels(labels),
    network: endpoint.network ?? '',
    ...(endpoint.weight === undefined ? {} : { weight: endpoint.weight }),
    identity: account === '' ? '' : spiffeId(trustDomain, namespace, account),
    tlsMode,
  };
}

/** IPs and CIDRs; a CIDR of one address is that address. */
function addressesOf(spec: ServiceEntrySpec): string[] {
  return (spec.addresses ?? []).flatMap((address) => {
    const [ip = '', bits] = address.split('/');
    const family = isIP(ip);
    if (family === 0) return [];
    return bits === undefined || Number(bits) === (family === 4 ? 32 : 128) ? [ip] : [address];
  });
}

/** Addresses that an allocator wrote into the status for this host. */
function allocatedFor(object: ServiceEntry, host: string): string[] {
  if ((object.spec?.resolution ?? 'NONE') === 'NONE') return [];
  if (object.metadata.labels?.['networking.istio.io/enable-autoallocate-ip'] === 'false') return [];
  return (object.status?.addresses ?? []).flatMap((address) =>
    address.host === host && address.value !== undefined ? [address.value] : [],
  );
}

function validate(spec: ServiceEntrySpec, resolution: Resolution, report: Report): void {
  validateHosts(spec, resolution, report);
  validateAddresses(spec, resolution, report);
  validatePorts(spec, report);
  validateEndpoints(spec, resolution, report);
  const selector = spec.workloadSelector?.labels;
  if (spec.workloadSelector !== undefined && (spec.endpoints ?? []).length > 0)
    report('spec.workloadSelector', 'endpoints and workloadSelector exclude each other: keep one of them');
  for (const [key, value] of Object.entries(selector ?? {}))
    if (key === '' || value.includes('*'))
      report(`spec.workloadSelector.labels[${key}]`, 'labels of a selector need a key and no wildcard');
}

function validateHosts(spec: ServiceEntrySpec, resolution: Resolution, report: Report): void {
  const hosts = spec.hosts ?? [];
  if (hosts.length === 0) report('spec.hosts', 'at least one host is needed');
  hosts.forEach((host, i) => {
    if (host === '*' || !isHostName(host))
      report(`spec.hosts[${i}]`, `"${host}" is not a host name: use a DNS name, with * only as its first label`);
    else if (resolution === 'DynamicDNS' && !isWildcard(host))
      report(`spec.hosts[${i}]`, `resolution DYNAMIC_DNS needs a wildcard host, not "${host}"`);
  });
  const ports = spec.ports ?? [];
  const needsOneHost = ports.findIndex(
    (port) => !/^(HTTP|HTTP2|GRPC|GRPC-WEB|HTTPS|TLS|HTTP_PROXY)$/i.test(port.protocol ?? ''),
  );
  if (hosts.length > 1 && needsOneHost >= 0 && resolution !== 'Passthrough' && (spec.addresses ?? []).length === 0)
    report(
      `spec.ports[${needsOneHost}]`,
      'several hosts share a port that tells them neither by host name nor by server name: use one ServiceEntry for each host',
    );
}

function validateAddresses(spec: ServiceEntrySpec, resolution: Resolution, report: Report): void {
  (spec.addresses ?? []).forEach((address, i) => {
    const [ip = '', bits, rest] = address.split('/');
    const family = isIP(ip);
    const field = `spec.addresses[${i}]`;
    if (bits === undefined) {
      if (family === 0) report(field, `"${address}" is neither an IP address nor a CIDR`);
    } else if (family === 0 || rest !== undefined || !isPrefix(ip, bits, family))
      report(field, `"${address}" is not a CIDR`);
    else if (resolution !== 'Passthrough' && resolution !== 'ClientSideLB')
      report(field, `a CIDR needs resolution NONE or STATIC, not ${spec.resolution ?? 'NONE'}`);
    if (resolution === 'DynamicDNS') report(field, 'resolution DYNAMIC_DNS takes no addresses');
  });
}

function isPrefix(ip: string, bits: string, family: number): boolean {
  if (!/^\d{1,3}$/.test(bits)) return false;
  try {
    new BlockList().addSubnet(ip, Number(bits), family === 4 ? 'ipv4' : 'ipv6');
    return true;
  } catch {
    return false;
  }
}

function validatePorts(spec: ServiceEntrySpec, report: Report): void {
  const names = new Set<string>();
  const numbers = new Set<number>();
  (spec.ports ?? []).forEach((port, i) => {
    const field = `spec.ports[${i}]`;
    const { name = '', number = 0 } = port;
    if (number < 1 || number > 65535) report(`${field}.number`, `${number} is not a port: use 1 to 65535`);
    if (port.targetPort !== undefined && (port.targetPort < 0 || port.targetPort > 65535))
      report(`${field}.targetPort`, `${port.targetPort} is not a port: use 1 to 65535`);
    if (names.has(name)) report(`${field}.name`, `port name "${name}" is used twice`);
    if (numbers.has(number)) report(`${field}.number`, `port number ${number} is used twice`);
    names.add(name);
    numbers.add(number);
    if (port.protocol && parseProtocol(port.protocol) === 'Unsupported')
      report(`${field}.protocol`, `"${port.protocol}" is not a protocol: use HTTP, HTTP2, GRPC, HTTPS, TLS, TCP, ...`);
  });
}

function validateEndpoints(spec: ServiceEntrySpec, resolution: Resolution, report: Report): void {
  const endpoints = spec.endpoints ?? [];
  const ports = spec.ports ?? [];
  if (endpoints.length > 0 && (resolution === 'Passthrough' || resolution === 'DynamicDNS'))
    report('spec.endpoints', `resolution ${spec.resolution ?? 'NONE'} takes no endpoints`);
  if (resolution === 'DNSRoundRobinLB' && endpoints.length > 1)
    report('spec.endpoints', 'resolution DNS_ROUND_ROBIN takes one endpoint at most');
  if (
    (resolution === 'DNSLB' || resolution === 'DNSRoundRobinLB') &&
    endpoints.length === 0 &&
    spec.workloadSelector === undefined
  )
    (spec.hosts ?? []).forEach((host, i) => {
      if (isWildcard(host))
        report(`spec.hosts[${i}]`, `"${host}" cannot be looked up in DNS: name endpoints, or an exact host`);
    });
  endpoints.forEach((endpoint, i) => {
    const field = `spec.endpoints[${i}]`;
    const address = endpoint.address ?? '';
    const unix = address.startsWith('unix://');
    if (address === '' && !endpoint.network) report(`${field}.address`, 'an address is needed');
    if (unix) {
      if (!address.startsWith('unix:///')) report(`${field}.address`, `"${address}" is not an absolute path`);
      if (Object.keys(endpoint.ports ?? {}).length > 0) report(`${field}.ports`, 'a unix socket has no ports');
      if (ports.length > 1) report(`${field}.address`, 'a unix socket can serve one port only');
    } else if (address !== '' && resolution === 'ClientSideLB' && isIP(address) === 0)
      report(`${field}.address`, `"${address}" is no IP address: use one, or resolution DNS`);
    else if (address !== '' && isIP(address) === 0 && (!isHostName(address) || isWildcard(address)))
      report(`${field}.address`, `"${address}" is neither an IP address nor a host name`);
    for (const [name, number] of Object.entries(endpoint.ports ?? {})) {
      if (!ports.some((port) => port.name === name))
        report(`${field}.ports[${name}]`, `spec.ports has no port named "${name}"`);
      if (number < 1 || number > 65535) report(`${field}.ports[${name}]`, `${number} is not a port: use 1 to 65535`);
    }
  });
}
