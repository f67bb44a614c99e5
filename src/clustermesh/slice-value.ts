import type { SliceEndpoint } from '../api/core.ts';
import { quote } from '../api/quote.ts';
import type { NamedPort } from '../model/global-service.ts';
import { canonicalAddress } from '../model/address.ts';
import { addressProblem, DNS_LABEL, DNS_NAME, expectOwner, LABEL_VALUE, transportOf } from './content.ts';
import { namespacedSuffix } from './keys.ts';
import { type Decoded, decoded, Wrong } from './member.ts';
import type { MeshCluster } from './names.ts';
import { readSlice, type WirePort } from './slice-wire.ts';

/** An EndpointSlice of another cluster. Endpoints that are not ready are in it, too. */
export interface RemoteSlice {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly addressType: 'IPv4' | 'IPv6';
  readonly endpoints: readonly SliceEndpoint[];
  readonly ports: readonly NamedPort[];
}

/** `suffix`: of the key. */
export function decodeSlice(suffix: string, bytes: Uint8Array, cluster: MeshCluster): Decoded<RemoteSlice> {
  return decoded(() => {
    const { cluster: said, clusterId: id, namespace, name, labels, addressType, ...rest } = readSlice(bytes);
    if (!DNS_LABEL.test(namespace)) throw new Wrong(`namespace ${quote(namespace)} is not a namespace`);
    if (!DNS_NAME.test(name)) throw new Wrong(`name ${quote(name)} is not a name`);
    expectOwner(suffix, { cluster: said, id, suffix: namespacedSuffix(namespace, name) }, cluster);
    if (addressType !== 'IPv4' && addressType !== 'IPv6')
      throw new Wrong(`addressType ${quote(addressType)} is neither IPv4 nor IPv6`);
    return {
      ...{ namespace, name, addressType },
      labels: Object.fromEntries(labels),
      endpoints: rest.endpoints.map((endpoint, i) => checkedEndpoint(endpoint, addressType, `endpoints[${i}]`)),
      ports: rest.ports.flatMap((port, i) => checkedPort(port, `ports[${i}]`)),
    };
  });
}

function checkedEndpoint(endpoint: SliceEndpoint, type: 'IPv4' | 'IPv6', path: string): SliceEndpoint {
  const addresses = endpoint.addresses.map((address) => {
    const problem = addressProblem(address);
    if (problem !== undefined) throw new Wrong(`${path} ${problem}`);
    if (address.includes(':') !== (type === 'IPv6')) throw new Wrong(`${path} ${quote(address)} is not ${type}`);
    return canonicalAddress(address);
  });
  const { hostname, zone } = endpoint;
  if (hostname !== undefined && !DNS_LABEL.test(hostname))
    throw new Wrong(`${path} hostname ${quote(hostname)} is not a host name`);
  if (zone !== undefined && !LABEL_VALUE.test(zone)) throw new Wrong(`${path} zone ${quote(zone)} is not a zone`);
  return { ...endpoint, addresses };
}

/** A port without a number means all ports, which no Service has. */
function checkedPort({ name, protocol, port }: WirePort, path: string): readonly NamedPort[] {
  if (name !== '' && !DNS_LABEL.test(name)) throw new Wrong(`${path} name ${quote(name)} is not the name of a port`);
  const transport = transportOf(protocol);
  if (transport === undefined) throw new Wrong(`${path} has protocol ${quote(protocol)}, which a Service cannot have`);
  if (port === undefined) return [];
  if (port < 1 || port > 65_535) throw new Wrong(`${path} port ${port} is not from 1 to 65535`);
  return [{ name, port, protocol: transport }];
}
