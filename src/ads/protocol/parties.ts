import type { Parties } from './barrier.ts';
import type { Subscription } from './subscription.ts';
import type { ResourceTypes } from '../types.ts';
import type { WorldView } from '../store/world.ts';

interface Stream {
  readonly types: ResourceTypes;
  /** For this long, a client that was connected before may not have asked for everything yet. */
  readonly lingerMs: number;
  readonly view: WorldView;
  readonly resumedAt: number | undefined;
}

/** The roles that subscriptions of a stream have in the barrier. */
export function partiesOf(
  subscriptions: readonly (Subscription | undefined)[],
  { types, lingerMs, view, resumedAt }: Stream,
): Parties {
  const present = subscriptions.filter((subscription) => subscription !== undefined);
  const referrers = present.filter(({ type }) => type.refersTo !== undefined);
  const allAsked = referrers.length === types.filter(({ refersTo }) => refersTo !== undefined).length;
  return {
    guarded: present.find(({ guarded }) => guarded),
    referrers,
    followers: present.filter(({ type }) => type.behind !== undefined),
    view,
    resumed: resumedAt !== undefined,
    silentUntil: allAsked || resumedAt === undefined ? 0 : resumedAt + lingerMs,
  };
}
