import type { Batch } from './served.ts';
import { Concern, type Rollout } from './rollout.ts';
import { type Rollouts } from './rollouts.ts';

/** What these resources mean for clients that ask for them now. Undefined: nothing that is part of a rollout. */
export function concernOf(
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
