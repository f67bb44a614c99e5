import type { ObjectRef } from '../../api/object.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { type Patch, type PatchArea, type Slot, areaOf, subjectOf } from '../../model/patch.ts';
import type { PatchSet, PatchSources } from '../objects/patch-sources.ts';
import type { ViewPatches } from './scope-patches.ts';
import type { ResolvedProxy, Scope } from './proxies.ts';
import { type Services, namespacesOf } from '../objects/services.ts';

/** A patch of a set, and its object. */
export interface PlacedPatch {
  /** Key of the {@link PatchSource}. */
  readonly source: string;
  readonly ref: ObjectRef;
  /** Position in the set. */
  readonly order: number;
  readonly patch: Patch;
}

/** What patches whom, and where. Absent from a mesh without front ends for patches. */
export interface Patches {
  readonly sources: PatchSources;
  /** The patches of a set with the type, direction and subject of a slot, in order: no others are read. */
  at(read: Reader, set: string, slot: Slot): readonly PlacedPatch[];
  /** Whether a set has patches for what {@link subjectOf} says of a slot; whatever these do. */
  isPatched(read: Reader, set: string, slot: Slot): boolean;
  /** Whether one of these names what {@link subjectOf} says of the slot: it stands for nothing else. */
  isNamed(read: Reader, set: string, slot: Slot): boolean;
  /** The sets of a scope that concern the services of a namespace. Undefined if none do. */
  ofView(
    read: Reader,
    { patches, traits }: Pick<Scope, 'patches' | 'traits'>,
    namespace: string,
  ): ViewPatches | undefined;
}

/** Routes that a set patches are not shared between hosts. */
export interface PatchedRoutes {
  /** Key of the {@link PatchSet}. */
  readonly set: string;
  readonly slot: Slot;
}

/** @param proxies the sets of each, by set key. */
export function declarePatches(
  graph: Graph,
  sources: PatchSources | undefined,
  services: Services,
  proxies: Index<ResolvedProxy> | undefined,
): Patches | undefined {
  if (sources === undefined || proxies === undefined) return undefined;
  const sets = graph.derive('patchSets', proxies, (key, [first], _, emit: Emit<PatchSet>) => {
    const sets = 'error' in first.value ? [] : Object.values(first.value.patches ?? {});
    const set = sets.find((each) => each.key === key);
    if (set !== undefined) emit(key, set);
  });
  const bySlot = graph.derive(
    'patchesBySlot',
    sets,
    (set, { sources: keys }, read, emit: Emit<readonly PlacedPatch[]>) => {
      const all = keys.flatMap((source) => {
        const { ref, patches = [] } = read.get(sources.all, source) ?? {};
        return ref === undefined ? [] : patches.map((patch) => ({ source, ref, patch }));
      });
      const placed = all.map((each, order): PlacedPatch => ({ ...each, order }));
      for (const [slot, found] of Map.groupBy(placed, ({ patch }) => slotKey(patch))) emit(`${set}|${slot}`, found);
    },
  );
  const patched = graph.derive('patchedSlots', bySlot, (key, _, __, emit: Emit<true>) => emit(key, true));
  const isNamed = (read: Reader, set: string, slot: Slot): boolean =>
    read.get(patched, `${set}|${slotKey(slot)}`) === true;
  const namespaces = declarePatchedNamespaces(graph, sets, sources, services);
  return {
    sources,
    at(read, set, slot) {
      const own = read.get(bySlot, `${set}|${slotKey(slot)}`) ?? [];
      const any = read.get(bySlot, `${set}|${slotKey(anywhere(slot))}`) ?? [];
      return [...new Set([...own, ...any])].sort((a, b) => a.order - b.order);
    },
    isPatched: (read, set, slot) => [slot, anywhere(slot)].some((each) => isNamed(read, set, each)),
    isNamed,
    ofView(read, { patches, traits }, namespace) {
      const concerned = (['clusters', 'routes'] as const).flatMap((what) => {
        const set = patches?.[what];
        const area: PatchArea = what === 'clusters' && traits.proxyType === 'router' ? 'routerClusters' : what;
        const where = set === undefined ? [] : (read.get(namespaces, `${set}|${area}`) ?? []);
        return where.includes('*') || where.includes(namespace) ? [[what, set]] : [];
      });
      return concerned.length === 0 ? undefined : Object.fromEntries(concerned);
    },
  };
}

/** The namespaces whose services the patches of a set and an area name; `*`: any. */
function declarePatchedNamespaces(
  graph: Graph,
  sets: Collection<PatchSet>,
  sources: PatchSources,
  services: Services,
): Collection<readonly string[]> {
  const hosts = graph.derive('patchedHosts', sets, (set, { sources: keys }, read, emit: Emit<readonly string[]>) => {
    const patches = keys.flatMap((source) => read.get(sources.all, source)?.patches ?? []);
    for (const [area, found] of Map.groupBy(patches, areaOf))
      emit(`${set}|${area}`, [...new Set(found.map(({ host = ANY_HOST }) => host))].sort());
  });
  return graph.derive('patchedNamespaces', hosts, (key, all, read, emit: Emit<readonly string[]>) =>
    emit(key, namespacesOf(read, services, all).sort()),
  );
}

/** As a wildcard, it stands for all namespaces. */
const ANY_HOST = '*';

const slotKey = (slot: Slot): string => [slot.direction, slot.type, subjectOf(slot)].join('|');

const anywhere = ({ direction, type }: Slot): Slot => ({ direction, type });
