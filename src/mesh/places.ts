import type { Collection, Emit, Graph, Index, Reader } from '../cache/graph.ts';
import { type VantageNeeds, narrowVantage } from '../envoy/locality.ts';
import { spreadHash } from '../model/hash.ts';
import type { Vantage } from '../model/vantage.ts';
import { qualifiers } from './members.ts';
import type { Proxies } from './proxies.ts';

export interface Vantages {
  /** Group `all`: every locality that a connected proxy has. */
  readonly localities: Index<Place>;
  readonly full: Index<{ readonly key: string; readonly vantage: Vantage }>;
}

/** Demand is data: assignments are made for the places where somebody is. */
export function declareVantages(graph: Graph, proxies: Proxies): Vantages {
  const full = graph.derive(
    'vantages',
    proxies.byVantage,
    (key, members, _, emit: Emit<{ key: string; vantage: Vantage }>) => {
      const { value } = members[0]!;
      if ('vantage' in value) emit(key, { key, vantage: value.vantage });
    },
  );
  const localities = graph.derive(
    'localities',
    graph.index('vantages by locality', full, (_, { vantage }) => [vantage.locality]),
    (locality, _, __, emit: Emit<Place>) => {
      const vantage = { ...nowhere.vantage, locality };
      emit(locality, { vantage, qualifiers: [qualifiers.locality(locality)], hash: spreadHash(locality) });
    },
  );
  return {
    localities: graph.index('all localities', localities, () => ['all']),
    full: graph.index('all vantages', full, () => ['all']),
  };
}

export interface Place {
  readonly vantage: Vantage;
  /** Of the proxies there; a single empty one where something looks the same from everywhere. */
  readonly qualifiers: readonly string[];
  /** Of the vantage. */
  readonly hash: number;
}

export interface Places {
  of(read: Reader, needs: VantageNeeds): readonly Place[];
}

/** Places by what is compared there: those of labels are found once, whoever needs them. */
export function declarePlaces(graph: Graph, vantages: Vantages, needs: Collection<VantageNeeds>): Places {
  const byLabels = graph.derive(
    'places',
    graph.index('needs of places', needs, (_, value) => [needsKey(value)]),
    (key, members, read, emit: Emit<readonly Place[]>) => emit(key, placesOf(read, vantages, members[0]!.value)),
  );
  return {
    of: (read, wanted) =>
      wanted.labels.length === 0 ? placesOf(read, vantages, wanted) : (read.get(byLabels, needsKey(wanted)) ?? []),
  };
}

export const needsKey = ({ locality, nodeName, cluster, labels }: VantageNeeds): string =>
  JSON.stringify([locality, nodeName, cluster, labels]);

/** The places from which something looks different, each once, however many proxies are there. */
export function placesOf(read: Reader, vantages: Vantages, needs: VantageNeeds): readonly Place[] {
  if (needs.nodeName || needs.cluster || needs.labels.length > 0) {
    const places = new Map<string, Place & { readonly qualifiers: string[] }>();
    for (const { value } of read.group(vantages.full, 'all')) {
      const vantage = narrowVantage(value.vantage, needs);
      const id = JSON.stringify(vantage);
      const place = places.get(id) ?? { vantage, qualifiers: [], hash: spreadHash(id) };
      places.set(id, place);
      place.qualifiers.push(qualifiers.vantage(value.key));
    }
    return [...places.values()];
  }
  if (!needs.locality) return [nowhere];
  return read.group(vantages.localities, 'all').map(({ value }) => value);
}

/** For all proxies alike. */
export const nowhere: Place = {
  vantage: { locality: '', network: '', cluster: '', nodeName: '', labels: {} },
  qualifiers: [''],
  hash: 0,
};
