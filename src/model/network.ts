import { compareText } from './age.ts';
import type { Traits } from './traits.ts';

/** Where connections into a network from others end, at an IP address. */
export interface NetworkGateway {
  readonly network: string;
  /** Where its Service is; empty: not said. */
  readonly cluster: string;
  readonly address: string;
  readonly port: number;
}

/** The gateways of a network. It may have some, but none with an address that is known: then nothing reaches it. */
export interface NetworkGateways {
  /** By address and port. */
  readonly gateways: readonly NetworkGateway[];
  /** Names without a known address. */
  readonly unresolved: readonly string[];
  /** How many more there would be. */
  readonly ignored: number;
}

/** Maximum per network: each assignment that leads there lists them. */
export const mostGateways = 100;
export const networkGatewayPort = 15_443;

/** Each once, in order. */
export function sortGateways(gateways: readonly NetworkGateway[]): readonly NetworkGateway[] {
  const distinct = new Map(gateways.map((gateway) => [JSON.stringify(gateway), gateway]));
  return [...distinct.values()].sort(
    (a, b) => compareText(a.address, b.address) || a.port - b.port || compareText(a.cluster, b.cluster),
  );
}

/**
 * Those that are used of too many, in the order of {@link sortGateways}: clusters take turns, and in each its namespaces.
 * So nobody with many gateways takes the place of others.
 */
export function chooseGateways(owned: readonly OwnedGateway[]): readonly NetworkGateway[] {
  const clusters = Map.groupBy(owned, ({ cluster }) => cluster);
  const lists = Array.from(clusters.values(), (ofCluster) => {
    const namespaces = Map.groupBy(ofCluster, ({ namespace }) => namespace);
    return inTurns(
      Array.from(namespaces.values(), (all) => sortGateways(all.map(({ namespace: _, ...rest }) => rest))),
    );
  });
  return sortGateways(inTurns(lists));
}

export interface OwnedGateway extends NetworkGateway {
  /** Of its Service; empty: MeshNetworks name it by address. */
  readonly namespace: string;
}

/** The first ones of all lists, then the second ones, and so on, each once, until there are enough. */
function inTurns(lists: readonly (readonly NetworkGateway[])[]): readonly NetworkGateway[] {
  const found = new Map<string, NetworkGateway>();
  let open = lists;
  for (let i = 0; open.length > 0; i++) {
    for (const list of open) {
      if (found.size === mostGateways) return [...found.values()];
      const gateway = list[i]!;
      found.set(JSON.stringify(gateway), gateway);
    }
    open = open.filter(({ length }) => length > i + 1);
  }
  return [...found.values()];
}

/** The gateways that a proxy can reach, of the endpoint's own cluster if there are any. */
export function gatewaysFor(
  gateways: readonly NetworkGateway[],
  cluster: string,
  family: Traits['ipFamily'],
): readonly NetworkGateway[] {
  const reachable =
    family === 'dual' ? gateways : gateways.filter(({ address }) => address.includes(':') === (family === 'v6'));
  const own = reachable.filter((gateway) => gateway.cluster === cluster);
  return own.length > 0 ? own : reachable;
}

/** Larger factors would leave no room for weights: they are 32 bits. */
const mostScale = 100_000;

/**
 * By which all weights of endpoints are multiplied, so that each can be divided exactly among the gateways of any
 * network: the least common multiple of all counts of gateways, without those that would make it too large.
 */
export function weightScale(networks: readonly NetworkGateways[]): number {
  const counts = new Set<number>();
  for (const { gateways } of networks)
    for (const cluster of new Set(['', ...gateways.map((gateway) => gateway.cluster)]))
      for (const family of ['v4', 'v6', 'dual'] as const) counts.add(gatewaysFor(gateways, cluster, family).length);
  let scale = 1;
  for (const count of [...counts].sort((a, b) => a - b)) {
    if (count === 0) continue;
    const next = (scale / commonDivisor(scale, count)) * count;
    if (next <= mostScale) scale = next;
  }
  return scale;
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}
