import { NewLeaves, Origins, originKey } from '../ads/store/origins.ts';
import type { EncodedResource } from '../ads/store/resource.ts';
import { NO_ROLLOUTS, type Rollout } from '../ads/rollouts/rollout.ts';
import type { Rollouts } from '../ads/rollouts/rollouts.ts';
import type { Change, Draft, Write } from '../cache/graph.ts';
import type { RolloutsOf } from '../mesh/publication.ts';

/**
 * Which rollouts the changes of a draft are part of.
 * @param keyOf the key of the rollout that a write belongs to, if it is to an object with conditions.
 */
export function rolloutsIn(
  draft: Pick<Draft, 'causesOf' | 'writes'>,
  rollouts: Rollouts,
  keyOf: (write: Write) => string | undefined,
): RolloutsOf {
  if (rollouts.size === 0) return NONE;
  const known = new Map<object, readonly Rollout[]>();
  const leaves = new NewLeaves();
  const origins = new Origins();
  const rolloutsOf = (writes: readonly Write[]): readonly Rollout[] => {
    const keys = new Set(writes.flatMap((write) => keyOf(write) ?? []));
    const found = [...keys].flatMap((key) => rollouts.get(key) ?? []);
    return found.length === 0 ? NO_ROLLOUTS : found;
  };
  const ofChange = ({ causes }: Pick<Change<unknown>, 'causes'>): readonly Rollout[] => {
    let found = known.get(causes);
    if (found === undefined) known.set(causes, (found = rolloutsOf(draft.causesOf(causes))));
    return found;
  };
  let all: readonly Rollout[] | undefined;
  return {
    ofChange,
    // A proxy's old world may have changed with the rest, and its new world is new to it.
    ofWorld: () => (all ??= rolloutsOf(draft.writes)),
    ofResource: (change, before, after) => {
      const caused = ofChange(change);
      const originated = rolloutsOfNewOrigins({ leaves, origins, rollouts }, before, after, caused);
      return originated.length === 0 ? caused : [...caused, ...originated];
    },
  };
}

const none = (): readonly Rollout[] => NO_ROLLOUTS;
const NONE: RolloutsOf = { ofChange: none, ofWorld: none, ofResource: none };

/**
 * The rollouts of objects that this resource was not made from before: they may have waited for another object. A
 * resource that was made from an object before and changes for another reason is not the object's change: endpoints
 * that come and go would keep its rollout waiting for ever.
 */
function rolloutsOfNewOrigins(
  { leaves, origins, rollouts }: { readonly leaves: NewLeaves; readonly origins: Origins; readonly rollouts: Rollouts },
  before: EncodedResource | undefined,
  after: EncodedResource | undefined,
  caused: readonly Rollout[],
): readonly Rollout[] {
  const found = new Set<Rollout>();
  if (after === undefined) return NO_ROLLOUTS;
  const asked = new Set<string>();
  for (const leaf of leaves.of(after.body, before?.body))
    for (const origin of leaf.origins) {
      const key = originKey(origin);
      if (asked.size === asked.add(key).size) continue;
      const rollout = rollouts.get(key);
      if (rollout === undefined || caused.includes(rollout)) continue;
      if (before === undefined || !origins.has(before.body, key)) found.add(rollout);
    }
  return found.size === 0 ? NO_ROLLOUTS : [...found];
}
