import { quote } from '../../api/quote.ts';
import { canonicalAddress, isAddress } from '../../model/address.ts';
import { canonicalCidr, leadingBits, parseCidr } from '../../model/cidr.ts';
import { canonicalHost, isHostName, isWildcard } from '../../model/host.ts';
import type { ConfiguredGateway, MeshNetworks } from '../../model/mesh-networks.ts';
import { networkGatewayPort } from '../../model/network.ts';
import { Field, Findings } from '../field.ts';
import { reportIneffective } from './fields.ts';
import { type MeshConfigProblem, configMap, readMeshText } from './mesh-config.ts';

/** Each endpoint looks up a range per distinct length of a prefix, and ranges are compared with each other. */
const mostRanges = 10_000;
const mostNetworks = 1_000;

/**
 * The networks from the text under `meshNetworks` in the ConfigMap `istio`. What is wrong is reported and left out;
 * the caller does not use a text with mistakes if it has a better one.
 */
export function reconcileMeshNetworks(
  yaml: string | undefined,
  rootNamespace = 'istio-system',
): { readonly networks: MeshNetworks; readonly problems: readonly MeshConfigProblem[] } {
  const findings = new Findings(configMap(rootNamespace));
  const top = new Field(readMeshText(yaml, findings), '', findings).expectObject();
  reportIneffective(top, 'MeshNetworks');
  const registries = new Map<string, string>();
  const ranges = new Map<string, string>();
  const gateways: ConfiguredGateway[] = [];
  const networks = top.get('networks').entries();
  if (networks.length > mostNetworks) top.get('networks').invalid(`has more than ${mostNetworks} networks.`);
  for (const [network, field] of networks.slice(0, mostNetworks)) {
    if (network === '') field.invalid('has no name.');
    field.expectObject();
    const clusters: string[] = [];
    for (const endpoint of field.get('endpoints').objects()) {
      readEndpoint(endpoint, network, { clusters, registries, ranges });
    }
    for (const gateway of field.get('gateways').objects()) {
      const found = readGateway(gateway, network, clusters);
      if (found !== undefined) gateways.push(found);
    }
  }
  reportOverlaps(ranges, top.get('networks'));
  return {
    networks: { registries, ranges, gateways },
    problems: findings.problems.map(({ field, ...problem }) => ({ ...problem, field: field.replace(/^\./, '') })),
  };
}

/** Whether the text is free of errors; an overlap of ranges is not one. */
export function areValidMeshNetworks(yaml: string | undefined): boolean {
  return reconcileMeshNetworks(yaml).problems.every(({ reason }) => reason !== 'Invalid');
}

interface Found {
  /** Of this network. */
  readonly clusters: string[];
  readonly registries: Map<string, string>;
  readonly ranges: Map<string, string>;
}

function readEndpoint(endpoint: Field, network: string, { clusters, registries, ranges }: Found): void {
  const [registry, cidr] = [endpoint.get('fromRegistry'), endpoint.get('fromCidr')];
  const [cluster, text] = [registry.string(), cidr.string()];
  if ((cluster === '') === (text === '')) {
    endpoint.invalid('must have either fromRegistry or fromCidr.');
    return;
  }
  if (cluster !== '') {
    const other = registries.get(cluster);
    if (other !== undefined) registry.invalid(`${quote(cluster)} is in the network ${quote(other)} already.`);
    else {
      registries.set(cluster, network);
      clusters.push(cluster);
    }
    return;
  }
  const range = canonicalCidr(text);
  const other = ranges.get(range);
  if (parseCidr(text) === undefined)
    cidr.invalid(`${quote(text)} is not a range of addresses such as 10.0.0.0/16 or fd00::/64.`);
  else if (other !== undefined) cidr.invalid(`${quote(text)} is in the network ${quote(other)} already.`);
  else if (ranges.size === mostRanges) cidr.invalid(`is one range too many; at most ${mostRanges} are allowed.`);
  else ranges.set(range, network);
}

function readGateway(gateway: Field, network: string, clusters: readonly string[]): ConfiguredGateway | undefined {
  const [service, address] = [gateway.get('registryServiceName'), gateway.get('address')];
  const [host, at] = [service.string(), address.string()];
  const port = gateway.get('port').integer(0, 65_535) || networkGatewayPort;
  if ((host === '') === (at === '')) {
    gateway.invalid('must have either registryServiceName or address.');
    return undefined;
  }
  if (host !== '') {
    if (!isHostName(host) || isWildcard(host)) service.invalid(`${quote(host)} is not the DNS name of a Service.`);
    else if (clusters.length === 0)
      service.findings.report(
        service.path,
        'Ineffective',
        `${quote(host)} is looked for in the clusters of the network, and it has none. Name one under endpoints, with fromRegistry.`,
      );
    return { network, port, at: { kind: 'service', host: canonicalHost(host), clusters } };
  }
  if (isAddress(at)) return { network, port, at: { kind: 'address', address: canonicalAddress(at) } };
  if (isHostName(at) && !isWildcard(at)) return { network, port, at: { kind: 'address', address: canonicalHost(at) } };
  address.invalid(`${quote(at)} is neither an IP address nor a DNS name.`);
  return undefined;
}

/** The longest prefix counts. That is what most mean, but not all. */
function reportOverlaps(ranges: ReadonlyMap<string, string>, field: Field): void {
  const byBits = new Map<string, { readonly range: string; readonly network: string }>(
    Array.from(ranges, ([range, network]) => {
      const cidr = parseCidr(range)!;
      return [`${cidr.address.includes(':') ? 6 : 4} ${leadingBits(cidr)}`, { range, network }] as const;
    }),
  );
  for (const [bits, inner] of byBits)
    for (let end = bits.length - 1; end >= 2; end--) {
      const outer = byBits.get(bits.slice(0, end));
      if (outer === undefined) continue;
      if (outer.network !== inner.network) {
        const message = `The range ${inner.range} of ${quote(inner.network)} is within ${outer.range} of ${quote(outer.network)}. Addresses in both are in ${quote(inner.network)}.`;
        field.findings.report(field.path, 'Ineffective', message);
      }
      break;
    }
}
