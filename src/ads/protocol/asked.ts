import { Concern, type Rollout } from '../rollouts/rollout.ts';
import type { Rollouts } from '../rollouts/rollouts.ts';
import { Batch } from '../store/served.ts';
import type { SharedWork } from '../store/shared-work.ts';
import type { WorldView } from '../store/world.ts';
import type { Subscription } from './subscription.ts';

export interface AskedContext {
  readonly rollouts: Rollouts;
  /** What rollouts under way have brought to a world, by name. */
  broughtTo(view: WorldView, typeUrl: string): ReadonlyMap<string, readonly Rollout[]>;
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
  const { type, interest, awaited } = subscription;
  const { typeUrl } = type;
  const shared = context.shared();
  const from = [type, view, rollouts.epoch];
  const concernIn = (batches: readonly Batch[]): Concern | undefined => {
    const brought = shared.brought.of(from, () => context.broughtTo(view, typeUrl));
    return concernOf(typeUrl, batches, rollouts, brought);
  };
  let concern: Concern | undefined;
  if (asksAll) concern = shared.asked.of([...from, ...interest.key], () => concernIn(interest.in(view).batches));
  else concern = concernIn([new Batch(asked.flatMap((name) => view.resolve(typeUrl, name) ?? []))]);
  if (concern !== undefined) awaited.owe(concern);
}

/** What these resources mean for clients that ask for them now. Undefined: nothing that is part of a rollout. */
function concernOf(
  typeUrl: string,
  batches: readonly Pick<Batch, 'items' | 'origins'>[],
  rollouts: Rollouts,
  brought: ReadonlyMap<string, readonly Rollout[]>,
): Concern | undefined {
  const names = new Map<string, Rollout[]>();
  const add = (name: string, rollout: Rollout): void => {
    const known = names.get(name);
    if (known === undefined) names.set(name, [rollout]);
    else if (!known.includes(rollout)) known.push(rollout);
  };
  for (const batch of batches)
    for (const [rollout, found] of rollouts.among(batch.origins)) for (const name of found) add(name, rollout);
  if (brought.size > 0)
    for (const { items } of batches)
      for (const { name } of items) for (const rollout of brought.get(name) ?? []) add(name, rollout);
  return names.size === 0 ? undefined : new Concern(typeUrl, names);
}
