import { compareText } from '../model/age.ts';
import type { Placed } from '../model/assignment.ts';
import type { Labels } from '../model/labels.ts';
import type { LocalityLbSetting } from '../model/traffic-policy.ts';
import type { Topology } from '../model/topology.ts';
import { networkLabel } from '../model/locality.ts';
import type { LocalityPlan } from './locality-plan.ts';
import { ownValue } from '../model/own-value.ts';

/** Endpoints with the same locality and priority. */
export interface LocalityGroup<Item extends Placed> {
  readonly locality: string;
  readonly endpoints: readonly Item[];
  readonly weight: number;
  /** 0 is used first. */
  readonly priority: number;
}

const maxWeight = 2 ** 32 - 1;

/** One group per locality, sorted by name; endpoints keep their order. */
export function groupByLocality<Item extends Placed>(endpoints: readonly Item[]): LocalityGroup<Item>[] {
  const groups = new Map<string, Item[]>();
  for (const endpoint of endpoints) {
    const group = groups.get(endpoint.locality);
    if (group === undefined) groups.set(endpoint.locality, [endpoint]);
    else group.push(endpoint);
  }
  return [...groups]
    .map(([locality, members]) => ({ locality, endpoints: members, weight: weightOf(members), priority: 0 }))
    .sort((a, b) => compareText(a.locality, b.locality));
}

/** Groups with the weights or priorities that apply from a topology. */
export function placeGroups<Item extends Placed>(
  groups: readonly LocalityGroup<Item>[],
  plan: LocalityPlan | undefined,
  topology: Topology | undefined,
): readonly LocalityGroup<Item>[] {
  if (plan === undefined) return groups;
  const { distribute, failover, failoverPriority } = plan.setting;
  const here = topology?.locality ?? '';
  if (distribute.length > 0) return distributeWeights(groups, distribute, here);
  if (!plan.failover) return groups;
  if (failoverPriority.length === 0) return compact(preferNear(groups, failover, here));
  const split = preferAlike(groups, failoverPriority, topology?.labels ?? {});
  return compact(failover.length === 0 ? split : preferNear(split, failover, here));
}

/**
 * The first entry whose `from` matches applies. A group that it does not name keeps its place, but has no endpoints.
 */
function distributeWeights<Item extends Placed>(
  groups: readonly LocalityGroup<Item>[],
  distribute: LocalityLbSetting['distribute'],
  here: string,
): readonly LocalityGroup<Item>[] {
  const entry = distribute.find(({ from }) => covers(from, here));
  if (entry === undefined) return groups;
  const weights = new Map<LocalityGroup<Item>, number>();
  for (const [pattern, percent] of Object.entries(entry.to)) {
    const covered = groups.filter((group) => !weights.has(group) && covers(pattern, group.locality));
    const total = covered.reduce((sum, group) => sum + group.weight, 0);
    for (const group of covered) weights.set(group, Math.ceil((group.weight * percent) / total));
  }
  return groups.map((group) => {
    const weight = weights.get(group);
    return weight === undefined ? { ...group, endpoints: [] } : { ...group, weight };
  });
}

/** Gives lower priorities to what is farther: own subzone, zone, region, and the rest. */
function preferNear<Item extends Placed>(
  groups: readonly LocalityGroup<Item>[],
  failover: LocalityLbSetting['failover'],
  here: string,
): LocalityGroup<Item>[] {
  const [region, zone, subzone] = partsOf(here);
  const target = failover.find(({ from }) => from === region)?.to;
  return groups.map((group) => {
    const other = partsOf(group.locality);
    const distance =
      other[0] !== region
        ? target === undefined || other[0] === target
          ? 3
          : 4
        : other[1] !== zone
          ? 2
          : other[2] !== subzone
            ? 1
            : 0;
    return { ...group, priority: group.priority * 5 + distance };
  });
}

/** Splits groups by how many of the labels, in order, an endpoint shares with the proxy. */
function preferAlike<Item extends Placed>(
  groups: readonly LocalityGroup<Item>[],
  failoverPriority: readonly string[],
  labels: Labels,
): LocalityGroup<Item>[] {
  const wanted = failoverPriority.map((entry): readonly [string, string | undefined] => {
    const [name = '', value, ...rest] = entry.split('=');
    return [name, value === undefined || rest.length > 0 ? ownValue(labels, name) : value];
  });
  return groups.flatMap((group) => {
    const byPriority = new Map<number, Item[]>();
    for (const endpoint of group.endpoints) {
      const priority = unlikeness(endpoint.labels, wanted);
      const members = byPriority.get(priority);
      if (members === undefined) byPriority.set(priority, [endpoint]);
      else members.push(endpoint);
    }
    return [...byPriority]
      .sort(([a], [b]) => a - b)
      .map(([priority, endpoints]) => ({ ...group, endpoints, weight: weightOf(endpoints), priority }));
  });
}

/**
 * 0 if all labels match; otherwise, the earlier the first mismatch, the higher. A network mismatch, if it comes first,
 * counts more than all others together; the other labels are still compared.
 */
function unlikeness(labels: Labels, wanted: readonly (readonly [string, string | undefined])[]): number {
  let penalty = 0;
  for (const [index, [name, value]] of wanted.entries()) {
    if ((ownValue(labels, name) ?? '') === (value ?? '')) continue;
    if (index > 0 || name !== networkLabel) return penalty + wanted.length - index;
    penalty = wanted.length;
  }
  return penalty;
}

/** Envoy needs priorities from 0 without gaps. */
function compact<Item extends Placed>(groups: readonly LocalityGroup<Item>[]): LocalityGroup<Item>[] {
  const used = [...new Set(groups.map((group) => group.priority))].sort((a, b) => a - b);
  return groups.map((group) => ({ ...group, priority: used.indexOf(group.priority) }));
}

/**
 * Whether a pattern (`region/*`, `region/zone`, `*`) covers a locality; parts that the pattern omits match anything.
 */
export function covers(pattern: string, locality: string): boolean {
  const [region, zone, subzone] = partsOf(pattern);
  const [r, z, s] = partsOf(locality);
  return (
    (region === '*' || region === r) &&
    (zone === '*' || zone === '' || zone === z) &&
    (subzone === '*' || subzone === '' || subzone === s)
  );
}

/** Whether a pattern covers any of these localities. Built once, for comparing thousands with thousands. */
export function coverAny(localities: readonly string[]): (pattern: string) => boolean {
  const covering = new Set<string>();
  for (const locality of localities) {
    const [region, zone, subzone] = partsOf(locality);
    for (const r of ['*', region])
      for (const z of ['*', zone]) for (const s of ['*', subzone]) covering.add([r, z, s].join('/'));
  }
  return (pattern) => {
    const [region, zone, subzone] = partsOf(pattern);
    return covering.has([region, zone || '*', subzone || '*'].join('/'));
  };
}

export function partsOf(locality: string): readonly [string, string, string] {
  const [region = '', zone = '', ...rest] = locality.split('/');
  return [region, zone, rest.join('/')];
}

function weightOf(endpoints: readonly Placed[]): number {
  let sum = 0;
  for (const { weight } of endpoints) sum += weight;
  return Math.min(sum, maxWeight);
}
