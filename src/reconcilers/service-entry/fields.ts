import { BlockList, isIP } from 'node:net';
import { canonicalAddress, isAddress, isSocket } from '../../model/address.ts';
import { canonicalHost, isHostName, isWildcard } from '../../model/host.ts';
import type { Labels } from '../../model/labels.ts';
import type { Resolution, ServicePort } from '../../model/service.ts';
import { quote } from '../../api/quote.ts';
import type { Field } from '../field.ts';
import { parseProtocol } from '../protocol.ts';
import { mostPorts } from '../core/service.ts';
import { type WorkloadSpec, readWorkloadSpec } from '../core/workload-spec.ts';

/** Protocols that tell hosts on one port apart. */
const NAMING: ReadonlySet<string> = new Set(['HTTP', 'HTTP2', 'GRPC', 'GRPCWeb', 'HTTPS', 'TLS', 'HTTP_PROXY']);

export function readHosts(spec: Field, resolution: Resolution, ports: readonly ServicePort[]): string[] {
  const field = spec.get('hosts');
  const hosts = field.list().map((element) => {
    const host = element.string();
    if (host === '*' || !isHostName(host))
      element.invalid(`${quote(host)} is not a host name; write a DNS name, with * only as its first label.`);
    else if (resolution === 'DynamicDNS' && !isWildcard(host))
      element.invalid(`${quote(host)} is not a wildcard, which resolution DYNAMIC_DNS needs.`);
    else if (isWildcard(host) && looksUpHosts(spec, resolution))
      element.invalid(`${quote(host)} cannot be looked up in DNS; add endpoints, or use an exact host.`);
    return canonicalHost(host);
  });
  if (hosts.length === 0) field.invalid('must have at least one host.');
  const shared = ports.findIndex(({ protocol }) => !NAMING.has(protocol));
  const addressed = resolution === 'Passthrough' || spec.get('addresses').list().length > 0;
  if (hosts.length > 1 && shared >= 0 && !addressed)
    spec
      .get('ports')
      .list()
      [shared]!.invalid(
        'cannot be shared by several hosts, because its protocol carries no host name; use one ServiceEntry for each host.',
      );
  return hosts;
}

function looksUpHosts(spec: Field, resolution: Resolution): boolean {
  if (resolution !== 'DNSLB' && resolution !== 'DNSRoundRobinLB') return false;
  return spec.get('endpoints').list().length === 0 && !spec.get('workloadSelector').isSet;
}

/** IPs and CIDRs, each with the first field that names it; a CIDR with one address is that address. */
export function readAddresses(field: Field, resolution: Resolution): ReadonlyMap<string, string> {
  const addresses = new Map<string, string>();
  for (const element of field.list()) {
    const text = element.string();
    const [ip = '', bits, ...rest] = text.split('/');
    const full = isIP(ip) === 4 ? 32 : 128;
    if (!isAddress(ip) || rest.length > 0 || (bits !== undefined && !isPrefix(ip, bits)))
      element.invalid(`${quote(text)} is neither an IP address nor a CIDR.`);
    else if (resolution === 'DynamicDNS') element.invalid('is not allowed with resolution DYNAMIC_DNS.');
    else if (bits !== undefined && resolution !== 'Passthrough' && resolution !== 'ClientSideLB')
      element.invalid(`${quote(text)} is a CIDR, which needs resolution NONE or STATIC.`);
    const address = canonicalAddress(ip);
    const range = bits === undefined || Number(bits) === full ? address : `${address}/${bits}`;
    if (!addresses.has(range)) addresses.set(range, element.path);
  }
  return addresses;
}

function isPrefix(ip: string, bits: string): boolean {
  if (!/^\d{1,3}$/.test(bits)) return false;
  try {
    new BlockList().addSubnet(ip, Number(bits), isIP(ip) === 4 ? 'ipv4' : 'ipv6');
    return true;
  } catch {
    return false;
  }
}

export function readPorts(field: Field, resolution: Resolution): ServicePort[] {
  const names = new Set<string>();
  const numbers = new Set<number>();
  const elements = field.objects();
  if (elements.length > mostPorts)
    field.invalid(`has ${elements.length} ports; at most ${mostPorts} are allowed. Split the ServiceEntry.`);
  return elements.slice(0, mostPorts).map((port): ServicePort => {
    const name = port.get('name').string();
    const number = port.get('number').integer(1, 65_535);
    const target = port.get('targetPort').integer(0, 65_535) ?? 0;
    const protocol = port.get('protocol');
    const parsed = parseProtocol(protocol.string());
    if (number === undefined && !port.get('number').isSet)
      port.get('number').invalid('must be the number of the port.');
    if (names.has(name)) port.get('name').invalid(`${quote(name)} is the name of another port; use another.`);
    if (number !== undefined && numbers.has(number))
      port.get('number').invalid(`${number} is listed twice; remove one of them.`);
    if (protocol.string() !== '' && parsed === 'Unsupported')
      protocol.invalid(
        `${quote(protocol.string())} is not a protocol; use HTTP, HTTP2, GRPC, GRPC-WEB, HTTPS, TLS, TCP, MONGO, REDIS or MYSQL.`,
      );
    else if (resolution === 'DynamicDNS' && (!NAMING.has(parsed) || parsed === 'HTTP_PROXY'))
      protocol.invalid(
        'must be HTTP, HTTPS, TLS or GRPC with resolution DYNAMIC_DNS, which reads host names from requests.',
      );
    names.add(name);
    if (number !== undefined) numbers.add(number);
    return { name, number: number ?? 0, protocol: parsed, ...(target === 0 ? {} : { targetPort: target }) };
  });
}

/** If absent, the entry selects nothing. */
export function readSelector(spec: Field): Labels | undefined {
  const field = spec.get('workloadSelector').expectObject();
  if (!field.isSet) return undefined;
  if (spec.get('endpoints').list().length > 0) field.invalid('cannot be combined with endpoints; keep one of them.');
  const labels = field.get('labels');
  for (const [name, value] of labels.entries())
    if (name === '' || value.string().includes('*')) value.invalid('must be a label, without wildcards.');
  return labels.isSet ? labels.stringMap() : undefined;
}

export function readEndpoints(spec: Field, resolution: Resolution, ports: readonly ServicePort[]): WorkloadSpec[] {
  const field = spec.get('endpoints');
  const elements = field.objects();
  const name = spec.get('resolution').string('NONE');
  if (elements.length > 0 && (resolution === 'Passthrough' || resolution === 'DynamicDNS'))
    field.invalid(`is not allowed with resolution ${name}; use STATIC or DNS.`);
  if (elements.length > 1 && resolution === 'DNSRoundRobinLB')
    field.invalid(`must have at most one endpoint with resolution ${name}.`);
  const names = new Set(ports.map((port) => port.name));
  return elements.map((element) => {
    const endpoint = readWorkloadSpec(element);
    const address = element.get('address');
    if (isSocket(endpoint.address) && ports.length > 1)
      address.invalid('is a unix socket, which can serve one port only; the ServiceEntry has several.');
    else if (resolution === 'ClientSideLB' && isName(endpoint.address))
      address.invalid(`${quote(endpoint.address)} is not an IP address; use one, or resolution DNS.`);
    for (const [port, value] of element.get('ports').entries())
      if (!names.has(port)) value.invalid(`names port ${quote(port)}, which spec.ports does not have.`);
    return endpoint;
  });
}

function isName(address: string): boolean {
  return address !== '' && !isSocket(address) && isHostName(address) && !isAddress(address);
}
