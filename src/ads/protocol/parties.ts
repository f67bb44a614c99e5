import type { BarrierTimes } from './barrier-times.ts';
import type { Referring } from './uses.ts';
import type { Subscription } from './subscription.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';
import type { WorldView } from '../store/world.ts';

/** The subscriptions of one stream, by their role in the barrier. */
export interface Parties extends Referring {
  /** What others refer to: clusters. */
  readonly guarded: Subscription | undefined;
  /** What belongs to the guarded resources: assignments. */
  readonly followers: readonly Subscription[];
  readonly view: WorldView;
}

interface Kind {
  readonly types: ResourceTypes;
  /** For `lingerMs`, a client that was connected before may not have asked for everything yet. */
  readonly times: Pick<BarrierTimes, 'lingerMs'>;
}

interface Stream {
  readonly view: WorldView;
  readonly resumedAt: number | undefined;
}

/** The roles that subscriptions of a stream have in the barrier. */
export function partiesOf(
  subscriptions: readonly (Subscription | undefined)[],
  { types, times: { lingerMs } }: Kind,
  { view, resumedAt }: Stream,
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

/** Whether resources of other types refer to those of this one. */
export function isGuarded({ typeUrl }: ResourceType, types: ResourceTypes): boolean {
  return types.some(({ refersTo }) => refersTo === typeUrl);
}
