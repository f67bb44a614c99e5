import { Concern, type Rollout } from '../rollouts/rollout.ts';
import type { Rollouts } from '../rollouts/rollouts.ts';
import { Batch } from '../store/served.ts';
import type { SharedWork } from '../store/shared-work.ts';
import type { ResourceType } from '../types.ts';
import type { WorldView } from '../store/world.ts';
import type { Subscription } from './subscription.ts';

export interface AskedContext {
  readonly rollouts: Rollouts;
  /** What rollouts under way have brought to a world, by name: one object for worlds that it is the same for. */
  broughtTo(view: WorldView, type: ResourceType): ReadonlyMap<string, readonly Rollout[]>;
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
  const brought = context.broughtTo(view, type);
  if (!asksAll) {
    const batch = new Batch(asked.flatMap((name) => view.resolve(typeUrl, name) ?? []));
    const concern = concernOf(typeUrl, batch, rollouts, brought);
    if (concern !== undefined) awaited.owe(concern);
    return;
  }
  // Nearly everything that clients ask for is the same for many, and in the same batches.
  for (const batch of interest.in(view).batches) {
    const from = [type, rollouts.epoch, batch, brought];
    const concern = context.shared().asked.of(from, () => concernOf(typeUrl, batch, rollouts, brought));
    if (concern !== undefined) awaited.owe(concern);
  }
}

/** What these resources mean for clients that ask for them now. Undefined: nothing that is part of a rollout. */
function concernOf(
  typeUrl: string,
  { items, origins }: Batch,
  rollouts: Rollouts,
  brought: ReadonlyMap<string, readonly Rollout[]>,
): Concern | undefined {
  const names = new Map<string, Rollout[]>();
  const add = (name: string, rollout: Rollout): void => {
    const known = names.get(name);
    if (known === undefined) names.set(name, [rollout]);
    else if (!known.includes(rollout)) known.push(rollout);
  };
  for (const [rollout, found] of rollouts.among(origins)) for (const name of found) add(name, rollout);
  if (brought.size > 0) for (const { name } of items) for (const rollout of brought.get(name) ?? []) add(name, rollout);
  return names.size === 0 ? undefined : new Concern(typeUrl, names);
}
