import { joinKey, splitKeyOfThree } from '../../api/keys.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { canonicalCidr, covers, parseCidr } from '../../model/cidr.ts';
import { type LostRange, type MeshService, type ServicePort, protocolClass, serviceKey } from '../../model/service.ts';
import { declareAddressBlocks } from './address-blocks.ts';

/**
 * Ranges that a namespace loses, at a port, to a Service in another namespace; a {@link LostRange} without the range's
 * text.
 */
export type LostRanges = Collection<Pick<LostRange, 'owner' | 'address'>>;

interface Ranges {
  readonly namespace: string;
  /** Canonical, each once. */
  readonly ranges: readonly string[];
  readonly ports: readonly number[];
}

/** Computed once for all hosts and ServiceEntries of a namespace that name a range, however they write it. */
export function declareLostRanges(
  graph: Graph,
  serviceClaims: Collection<MeshService>,
  entryClaims: Collection<MeshService>,
  claims: Index<MeshService>,
): LostRanges {
  const httpServices = declareAddressBlocks(
    graph,
    'HTTP services by address block',
    serviceClaims,
    ({ addresses, ports }) => ({
      ports: numbersOf(ports, ['http']),
      addresses: addresses.filter((address) => address !== '0.0.0.0'),
    }),
    (a, b) => compareAge(a.value, b.value),
  );
  const withRanges = graph.index('hosts with ranges', entryClaims, (_, entry) =>
    entry.addresses.some(isRange) ? [serviceKey(entry)] : [],
  );
  const ofHosts = graph.derive('ranges of hosts', withRanges, (key, members, read, emit: Emit<Ranges>) => {
    const addresses = members.flatMap(({ value }) => value.addresses);
    const ranges = [...new Set(addresses.filter(isRange).map(canonicalCidr))];
    // A host has the ports of all its entries.
    const entries = read.group(claims, key).map(({ value }) => value);
    const ports = numbersOf(
      entries.flatMap((entry) => entry.ports),
      TAKING,
    );
    emit(key, { namespace: members[0].value.namespace, ranges, ports });
  });
  const places = graph.index('places of ranges', ofHosts, (_, { namespace, ranges, ports }) =>
    ports.flatMap((port) => ranges.map((range) => placeOf(namespace, port, range))),
  );
  return graph.derive('lost ranges', places, (key, _, read, emit: Emit<Pick<LostRange, 'owner' | 'address'>>) => {
    const [namespace, port, range] = splitKeyOfThree(key);
    const cidr = parseCidr(range)!;
    for (const service of httpServices.ofOthers(read, namespace, Number(port), cidr)) {
      const address = service.addresses.find((own) => covers(cidr, own));
      if (address === undefined) continue;
      emit(key, { owner: service.origins[0]!, address });
      return;
    }
  });
}

/**
 * The entry's ranges that contain HTTP Services of other namespaces, for each of its ports that such a Service has too.
 */
export function lostRangesOf(entry: MeshService, read: Reader, lostRanges: LostRanges): readonly LostRange[] {
  if (entry.registry !== 'External') return [];
  const ports = numbersOf(entry.ports, TAKING);
  return entry.addresses.filter(isRange).flatMap((range) => {
    const canonical = canonicalCidr(range);
    return ports.flatMap((port): LostRange[] => {
      const lost = read.get(lostRanges, placeOf(entry.namespace, port, canonical));
      return lost === undefined ? [] : [{ range, port, ...lost }];
    });
  });
}

/** Protocols whose ports take all connections to a range. */
const TAKING = ['tcp', 'sniffed'];

function numbersOf(ports: readonly ServicePort[], classes: readonly string[]): number[] {
  return [
    ...new Set(ports.filter(({ protocol }) => classes.includes(protocolClass(protocol))).map((port) => port.number)),
  ];
}

const isRange = (address: string): boolean => address.includes('/');

const placeOf = (namespace: string, port: number, range: string): string => joinKey(namespace, port, range);
