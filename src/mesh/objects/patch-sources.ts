import type { HasProblems } from '../../api/problem.ts';
import { parseKindKey } from '../../api/keys.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import type { MessageOf } from '../../envoy/encode/proto.ts';
import { compareAge } from '../../model/age.ts';
import { contentHash } from '../../model/hash.ts';
import { type Labels, selects } from '../../model/labels.ts';
import { type Patch, type PatchArea, type PatchSource, type Slot, areaOf, hasArea } from '../../model/patch.ts';
import type { Traits } from '../../model/traits.ts';
import { labelKeys, selectorKey } from './label-keys.ts';

/** One kind of object that patches what is generated. */
export interface PatchFrontEnd {
  readonly kind: string;
  /** Their keys begin with the kind. */
  readonly sources: Collection<PatchSource>;
  /**
   * Pure. Returns the message itself where it changes nothing. What throws is served without these patches.
   *
   * @param patches of one {@link PatchSource} for the slot, in its order. At least one.
   */
  apply<Name extends string>(
    type: Name,
    message: MessageOf<Name>,
    slot: Slot,
    patches: readonly Patch[],
  ): MessageOf<Name>;
  /** What is wrong with its objects by themselves. */
  readonly problems: readonly Collection<HasProblems>[];
}

/** The objects that patch one area of some proxies. */
export interface PatchSet {
  /** A hash of which objects these are; what their patches do is not part of it. */
  readonly key: string;
  /** Keys of {@link PatchSource}s, in the order in which they apply. */
  readonly sources: readonly string[];
}

/** By area, only those that are patched. */
export type PatchSets = Readonly<Partial<Record<PatchArea, PatchSet>>>;

/** The patches of all kinds. */
export interface PatchSources {
  /** By their own key. */
  readonly all: Collection<PatchSource>;
  readonly problems: readonly Collection<HasProblems>[];
  /** What patches a proxy. Undefined: nothing. */
  select(read: Reader, proxy: PatchedProxy): PatchSets | undefined;
  /** The front end of a {@link PatchSource}. */
  frontEndOf(source: string): PatchFrontEnd;
}

/** A proxy, as far as patches select by it. */
export interface PatchedProxy {
  readonly rootNamespace: string;
  readonly namespace: string;
  /** All of them: they split nothing but what is patched differently. */
  readonly labels: Labels;
  readonly proxyType: Traits['proxyType'];
}

/** What decides whom an object patches, and in which order. **Stops** changes of what its patches do. */
interface PatchTarget extends Omit<PatchSource, 'ref' | 'patches'> {
  /** Sorted. */
  readonly areas: readonly PatchArea[];
}

/** Undefined if nothing patches: then, nobody asks. */
export function declarePatchSources(graph: Graph, frontEnds: readonly PatchFrontEnd[]): PatchSources | undefined {
  if (frontEnds.length === 0) return undefined;
  const byKind = new Map(frontEnds.map((frontEnd) => [frontEnd.kind, frontEnd]));
  const sources = frontEnds.map((frontEnd) => frontEnd.sources);
  const all = graph.derive(
    'patchSources',
    graph.index('patch sources by key', sources, (_, { key }) => [key]),
    (key, [first], _, emit: Emit<PatchSource>) => emit(key, first.value),
  );
  const targets = graph.derive('patchTargets', all, (key, source, _, emit: Emit<PatchTarget>) => {
    const { ref: __, patches, ...rest } = source;
    emit(key, { ...rest, areas: [...new Set(patches.map(areaOf))].sort() });
  });
  const bySelector = graph.index('patches by selector', targets, (_, { namespace, selector = {} }) => [
    selectorKey(namespace, selector) ?? ofNamespace(namespace),
  ]);
  return {
    all,
    problems: frontEnds.flatMap(({ problems }) => problems),
    select(read, { rootNamespace, namespace, labels, proxyType }) {
      const found = [...new Set(['', rootNamespace, namespace])].flatMap((where) =>
        targetsIn(read, bySelector, where, labels),
      );
      return setsOf(found.sort(inOrder(['', rootNamespace])), proxyType);
    },
    frontEndOf: (source) => byKind.get(parseKindKey(source).kind)!,
  };
}

/** Group of the objects that patch all proxies of a namespace. */
const ofNamespace = (namespace: string): string => `${namespace}|`;

/** The targets in a namespace that select these labels. */
function targetsIn(read: Reader, bySelector: Index<PatchTarget>, namespace: string, labels: Labels): PatchTarget[] {
  return [ofNamespace(namespace), ...labelKeys(namespace, labels)]
    .flatMap((group) => read.group(bySelector, group))
    .map(({ value }) => value)
    .filter(({ selector = {} }) => selects(selector, labels));
}

function inOrder(everywhere: readonly string[]): (a: PatchTarget, b: PatchTarget) => number {
  const rank = ({ namespace }: PatchTarget): number => (everywhere.includes(namespace) ? 0 : 1);
  return (a, b) =>
    a.priority - b.priority || rank(a) - rank(b) || compareAge(a, b) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

/** @param found in the order in which they apply. */
function setsOf(found: readonly PatchTarget[], proxyType: Traits['proxyType']): PatchSets | undefined {
  const areas = new Set(found.flatMap((target) => target.areas).filter((area) => hasArea(proxyType, area)));
  if (areas.size === 0) return undefined;
  return Object.fromEntries(
    [...areas].sort().map((area) => {
      const sources = found.filter((target) => target.areas.includes(area)).map(({ key }) => key);
      return [area, { key: contentHash(JSON.stringify(sources)).slice(0, 12), sources }];
    }),
  );
}
