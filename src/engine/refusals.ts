import { isLocalReason, LEAST_LOCAL } from '../ads/protocol/local-reasons.ts';
import type { Recipient, Refused } from '../ads/rollouts/recipient.ts';
import type { Concern, Rollout } from '../ads/rollouts/rollout.ts';

/** What proxies refuse of one resource, with their words. */
export type Refusals = ReadonlyMap<Recipient, Refused>;

/**
 * The refusals of those who have taken every restriction in the same resource, and the restrictions that the others have
 * yet to take: it may be these that they refuse.
 * @param open of an object, if it is under way.
 */
export function apartFromRestrictions(
  refusals: Refusals,
  open: (key: string) => Rollout | undefined,
): { readonly apart: Refusals; readonly restrictions: ReadonlySet<Rollout> } {
  const known = new Map<Refused['origins'], readonly Rollout[]>();
  const restrictionsIn = ({ origins }: Refused): readonly Rollout[] => {
    let found = known.get(origins);
    if (found === undefined)
      known.set(origins, (found = [...origins].flatMap((key) => open(key) ?? []).filter(({ restricts }) => restricts)));
    return found;
  };
  const apart = new Map<Recipient, Refused>();
  const restrictions = new Set<Rollout>();
  for (const [client, refused] of refusals) {
    const owed = restrictionsIn(refused).filter((each) => isOwed(each, client, refused));
    if (owed.length === 0) apart.set(client, refused);
    for (const each of owed) restrictions.add(each);
  }
  return { apart, restrictions };
}

/** What else the same clients refuse in the same resource, of other objects: changed before or after, taken by nobody. */
export function refusedAlong(
  refusals: Refusals,
  known: ReadonlySet<Rollout>,
  open: { get(key: string): Rollout | undefined },
): ReadonlyMap<Rollout, Concern> {
  const found = new Map<Rollout, Concern>();
  const others = new Map<Refused['origins'], readonly Rollout[]>();
  const othersIn = ({ origins }: Refused): readonly Rollout[] => {
    let rollouts = others.get(origins);
    if (rollouts === undefined) {
      rollouts = [...origins].flatMap((key) => open.get(key) ?? []).filter((each) => !known.has(each));
      others.set(origins, rollouts);
    }
    return rollouts;
  };
  for (const [client, refused] of refusals)
    for (const rollout of othersIn(refused)) {
      if (found.has(rollout)) continue;
      const concern = [...rollout.concerns].find((each) => isRefused(each, client, refused));
      if (concern !== undefined) found.set(rollout, concern);
    }
  return found;
}

function isRefused(concern: Concern, client: Recipient, { typeUrl, name }: Refused): boolean {
  if (concern.typeUrl !== typeUrl || !concern.names.has(name)) return false;
  if (concern.refusals.get(client)?.has(name) !== true) return false;
  return concern.opinionsOn(name).proven.takers.length === 0;
}

function isOwed({ concerns }: Rollout, client: Recipient, { typeUrl, name }: Refused): boolean {
  return [...concerns].some(
    (concern) => concern.typeUrl === typeUrl && concern.names.has(name) && concern.waiting.has(client),
  );
}

/** Nobody else may yet take it: the others of a build are not sent what the first has refused. */
export function areAll(refusals: Refusals, waiting: ReadonlySet<Recipient>): boolean {
  if (refusals.size >= waiting.size) return true;
  const builds = new Set([...refusals.keys()].map(({ build }) => build));
  for (const { build } of waiting) if (!builds.has(build)) return false;
  return true;
}

/** The tenants of those who refuse something for reasons that are not their own, or that several of a build have. */
export function tenantsIn(refusals: Refusals): ReadonlySet<string> {
  const builds = Map.groupBy(refusals.keys(), ({ build }) => build);
  const isShared = [...builds.values()].some((of) => of.length >= LEAST_LOCAL);
  const found = new Set<string>();
  for (const [{ tenant }, { message }] of refusals) if (isShared || !isLocalReason(message)) found.add(tenant);
  return found;
}
