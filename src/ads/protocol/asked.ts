import type { BroughtIn } from '../rollouts/brought.ts';
import { Concern, type Rollout } from '../rollouts/rollout.ts';
import type { Rollouts } from '../rollouts/rollouts.ts';
import { eachOrigins } from '../store/origins.ts';
import { Batch } from '../store/served.ts';
import type { SharedWork } from '../store/shared-work.ts';
import type { ResourceType } from '../types.ts';
import type { WorldView } from '../store/world.ts';
import type { Subscription } from './subscription.ts';

export interface AskedContext {
  readonly rollouts: Rollouts;
  /** The same objects for worlds that have the same batch. */
  broughtIn(batch: Batch, view: WorldView, type: ResourceType): BroughtIn;
  /** A new one with each publication. */
  shared(): SharedWork;
}

/**
 * What the client has just asked for may have been changed by objects that others are being waited for.
 * @param owedAll whether everything was owed before it asked.
 */
export function awaitAsked(subscription: Subscription, view: WorldView, owedAll: boolean, context: AskedContext): void {
  const asked = subscription.takeAsked();
  const asksAll = subscription.all && !owedAll;
  if (context.rollouts.size > 0 && (asksAll || asked.length > 0))
    awaitNames(subscription, view, asksAll, asked, context);
}

function awaitNames(
  subscription: Subscription,
  view: WorldView,
  asksAll: boolean,
  asked: readonly string[],
  context: AskedContext,
): void {
  const { rollouts } = context;
  const { type, awaited } = subscription;
  const { typeUrl } = type;
  if (asksAll) {
    for (const concern of concernsOfAll(subscription, view, context)) awaited.owe(concern);
    return;
  }
  const batch = new Batch(asked.flatMap((name) => view.resolve(typeUrl, name) ?? []));
  const concern = concernOf(typeUrl, batch, rollouts, context.broughtIn(batch, view, type));
  if (concern !== undefined) awaited.owe(concern);
}

/** Nearly everything that clients ask for is the same for many, and in the same batches: that is one concern for them all. */
function concernsOfAll({ type, interest }: Subscription, view: WorldView, context: AskedContext): readonly Concern[] {
  const { rollouts } = context;
  const [common, own]: [Concern[], Concern[]] = [[], []];
  for (const batch of interest.in(view).batches) {
    const brought = context.broughtIn(batch, view, type);
    const from = [type, rollouts.epoch, batch, brought.names, ...brought.whole];
    const concern = context.shared().asked.of(from, () => concernOf(type.typeUrl, batch, rollouts, brought));
    if (concern !== undefined) (brought.isCommon ? common : own).push(concern);
  }
  return common.length === 0 ? own : [Concern.together(common), ...own];
}

/** What these resources mean for clients that ask for them now. Undefined: nothing that is part of a rollout. */
function concernOf(
  typeUrl: string,
  { items, origins }: Batch,
  rollouts: Rollouts,
  brought: BroughtIn,
): Concern | undefined {
  const names = new Map<string, Set<Rollout>>();
  const add = (name: string, found: readonly Rollout[]): void => {
    if (found.length === 0) return;
    let known = names.get(name);
    if (known === undefined) names.set(name, (known = new Set()));
    for (const rollout of found) known.add(rollout);
  };
  for (const rollout of rollouts.among(origins)) for (const name of origins.get(rollout.key)!) add(name, [rollout]);
  for (const { name, resource } of items)
    if ('children' in resource.body) eachOrigins(resource.body, (keys) => add(name, rollouts.among(keys)));
  for (const [name, found] of brought.names) add(name, found);
  if (brought.whole.length > 0) for (const { name } of items) add(name, brought.whole);
  return names.size === 0
    ? undefined
    : new Concern(typeUrl, new Map(Array.from(names, ([name, found]) => [name, [...found]])));
}
