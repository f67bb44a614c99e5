import { isLocalReason, LEAST_LOCAL } from '../ads/protocol/local-reasons.ts';
import type { Recipient, Rejected } from '../ads/rollouts/recipient.ts';
import type { Concern, Rollout } from '../ads/rollouts/rollout.ts';

/** What proxies reject of one resource, with their words. */
export type Rejections = ReadonlyMap<Recipient, Rejected>;

/**
 * The rejections of those who have taken every restriction in the same resource, and the restrictions that the others have
 * yet to take: it may be these that they reject.
 * @param open of an object, if it is under way.
 */
export function apartFromRestrictions(
  rejections: Rejections,
  open: (key: string) => Rollout | undefined,
): { readonly apart: Rejections; readonly restrictions: ReadonlySet<Rollout> } {
  const known = new Map<Rejected['origins'], readonly Rollout[]>();
  const restrictionsIn = ({ origins }: Rejected): readonly Rollout[] => {
    let found = known.get(origins);
    if (found === undefined)
      known.set(origins, (found = [...origins].flatMap((key) => open(key) ?? []).filter(({ restricts }) => restricts)));
    return found;
  };
  const apart = new Map<Recipient, Rejected>();
  const restrictions = new Set<Rollout>();
  for (const [client, rejected] of rejections) {
    const owed = restrictionsIn(rejected).filter((each) => isOwed(each, client, rejected));
    if (owed.length === 0) apart.set(client, rejected);
    for (const each of owed) restrictions.add(each);
  }
  return { apart, restrictions };
}

/** What else the same clients reject in the same resource, of other objects: changed before or after, taken by nobody. */
export function rejectedAlong(
  rejections: Rejections,
  known: ReadonlySet<Rollout>,
  open: { get(key: string): Rollout | undefined },
): ReadonlyMap<Rollout, Concern> {
  const found = new Map<Rollout, Concern>();
  const others = new Map<Rejected['origins'], readonly Rollout[]>();
  const othersIn = ({ origins }: Rejected): readonly Rollout[] => {
    let rollouts = others.get(origins);
    if (rollouts === undefined) {
      rollouts = [...origins].flatMap((key) => open.get(key) ?? []).filter((each) => !known.has(each));
      others.set(origins, rollouts);
    }
    return rollouts;
  };
  for (const [client, rejected] of rejections)
    for (const rollout of othersIn(rejected)) {
      if (found.has(rollout)) continue;
      const concern = [...rollout.concerns].find((each) => isRejected(each, client, rejected));
      if (concern !== undefined) found.set(rollout, concern);
    }
  return found;
}

function isRejected(concern: Concern, client: Recipient, { typeUrl, name }: Rejected): boolean {
  if (concern.typeUrl !== typeUrl || !concern.names.has(name)) return false;
  if (concern.rejections.get(client)?.has(name) !== true) return false;
  return concern.opinionsOn(name).proven.takers.length === 0;
}

function isOwed({ concerns }: Rollout, client: Recipient, { typeUrl, name }: Rejected): boolean {
  return [...concerns].some(
    (concern) => concern.typeUrl === typeUrl && concern.names.has(name) && concern.waiting.has(client),
  );
}

/** Nobody else may yet take it: the others of a build are not sent what the first has rejected. */
export function areAll(rejections: Rejections, waiting: ReadonlySet<Recipient>): boolean {
  if (rejections.size >= waiting.size) return true;
  const builds = new Set([...rejections.keys()].map(({ build }) => build));
  for (const { build } of waiting) if (!builds.has(build)) return false;
  return true;
}

/** The tenants of those who reject something for reasons that are not their own, or that several of a build have. */
export function tenantsIn(rejections: Rejections): ReadonlySet<string> {
  const builds = Map.groupBy(rejections.keys(), ({ build }) => build);
  const isShared = [...builds.values()].some((of) => of.length >= LEAST_LOCAL);
  const found = new Set<string>();
  for (const [{ tenant }, { message }] of rejections) if (isShared || !isLocalReason(message)) found.add(tenant);
  return found;
}
