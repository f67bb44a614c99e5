import { hash } from 'node:crypto';
import { mergeRoots, signerOf } from './roots.ts';
import { type SigningMaterial, readMaterial } from './signing-material.ts';

/** The entries of a Secret for a CA, see `readMaterial`. */
export type Entries = Readonly<Record<string, string>>;

/**
 * What signs, and what peers are to trust. Replicas share one, so it is plain JSON; moments are in ISO 8601. A root is
 * trusted before it signs, and for as long as something that it has signed may be valid.
 */
export interface Rotation {
  readonly signing: Entries;
  /** We made it, nobody plugged it in; absent: not known. */
  readonly own?: boolean;
  /** Since when. */
  readonly since: string;
  /** The bundle: those that the signing certificates come with first. */
  readonly roots: readonly TrustedRoot[];
  /** When the last certificate expires that was signed for longer than a day; absent: there was none. */
  readonly longest?: string;
  /** How far each replica is; only while the proxies do not all have the bundle. */
  readonly replicas: Readonly<Record<string, Progress>>;
}

export interface TrustedRoot {
  /** PEM. */
  readonly certificate: string;
  /** Since when it is in the bundle. */
  readonly since: string;
  /** When all proxies will have it at the latest; absent: they do, and it may sign. */
  readonly by?: string;
  /** When the last certificate that it signed will have expired; absent: it is in use, or will be. */
  readonly until?: string;
}

/** What one replica still waits for. */
export interface Progress {
  /** When this was so. */
  readonly at: string;
  /** See {@link bundleId}: the bundle that it hands out. */
  readonly bundle: string;
  /** How many of its proxies have not acknowledged that bundle. */
  readonly proxies: number;
  /** Since when there were none; absent: there are. */
  readonly noneSince?: string;
  /** In how many namespaces the bundle is missing; absent: another replica writes it there. */
  readonly namespaces?: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Until the kubelets have brought a changed ConfigMap to the agents, and all replicas have reported. */
export const MOUNTED = 5 * MINUTE;
/** Certificates of this lifetime, the default, are not recorded. */
const DAY = 24 * HOUR;
/** How much later than others a replica may learn of a step. */
const LATE = HOUR;
/** A replica that has not reported for so long is gone. */
const SILENT = 10 * MINUTE;
/** A proxy whose stream has ended is back within this, at one of the replicas; Envoy tries again within 30 s. */
export const RECONNECTED = 2 * MINUTE;
/** Old roots at a time: a bundle goes into every namespace and to every proxy. */
export const MOST_RETIRING = 8;

/** What is to be signed with: the entries, and what they mean. */
export interface Plugged {
  /** See {@link Rotation}. */
  readonly own?: boolean;
  readonly entries: Entries;
  readonly material: SigningMaterial;
}

/**
 * The first state: all proxies have these roots, or get them with their first certificates.
 * @param published what they trust besides: somebody may have signed with it, or be about to.
 */
export function begin({ entries, material, own }: Plugged, now: Date, published: readonly string[] = []): Rotation {
  const since = now.toISOString();
  const roots = [...new Set(material.roots)].map<TrustedRoot>((certificate) => ({ certificate, since }));
  const known = new Set(material.roots);
  const expired = expiryOfAll(undefined, now);
  const others = published
    .filter((certificate) => !known.has(certificate))
    .slice(0, MOST_RETIRING)
    .map((certificate) => ({ certificate, since, by: expired, until: expired }));
  return { signing: entries, ...(own !== undefined && { own }), since, roots: [...roots, ...others], replicas: {} };
}

/**
 * The next state; the former one itself if it stays.
 * @param plugged what is to sign as soon as it may; undefined: that cannot be read now.
 */
export function advance(former: Rotation, plugged: Plugged | undefined, now: Date): Rotation {
  const since = now.toISOString();
  const wanted =
    plugged?.material.roots ??
    former.roots.flatMap(({ certificate, until }) => (until === undefined ? [certificate] : []));
  const current = readMaterial(former.signing, now);
  // What has expired signs nothing: there is nothing to wait for.
  const isUrgent = plugged !== undefined && 'problem' in current;
  const isAcknowledged = isDistributing(former) && isAcknowledgedByAll(former, now);
  const isDistributed = (since: string, by: string): boolean =>
    now.getTime() >= Date.parse(by) || (isAcknowledged && now.getTime() >= Date.parse(since) + MOUNTED);
  const known = former.roots.map<TrustedRoot>(({ by, ...root }) =>
    by === undefined || isUrgent || isDistributed(root.since, by) ? root : { ...root, by },
  );
  // Whoever has a newer certificate got the roots with it.
  const expired = expiryOfAll(former.longest, now);
  const knownPems = new Set(known.map(({ certificate }) => certificate));
  const unknown = [...new Set(wanted)].filter((certificate) => !knownPems.has(certificate));
  const trusted = new Set(
    unknown.length === 0
      ? []
      : known.flatMap(({ certificate, by }) => (by === undefined ? [signerOf(certificate)] : [])),
  );
  const added = unknown.map((certificate) => ({
    certificate,
    since,
    ...(!isUrgent && !trusted.has(signerOf(certificate)) && { by: expired }),
  }));
  const roots: readonly TrustedRoot[] = [...known, ...added];

  const present = 'problem' in current ? { roots: [], root: '' } : current.material;
  const root = plugged?.material.root;
  const maySign =
    isUrgent ||
    (roots.some(({ certificate, by }) => certificate === root && by === undefined) &&
      (root === present.root || !isFull(former)));
  const inUse = maySign ? wanted : [...present.roots, ...wanted];
  const kept = roots.flatMap((each) => keep(each, inUse, now, expired));
  const first = maySign ? wanted : inUse;
  const order = ({ certificate }: TrustedRoot): number =>
    first.includes(certificate) ? first.indexOf(certificate) : Infinity;
  const switched = maySign && !sameEntries(plugged!.entries, former.signing);
  const next: Rotation = {
    ...former,
    ...(switched && { signing: plugged!.entries, since }),
    ...(plugged?.own !== undefined &&
      (switched || sameEntries(plugged.entries, former.signing)) && { own: plugged.own }),
    roots: kept.sort((a, b) => order(a) - order(b) || 0),
    replicas: isDistributing({ roots: kept }) ? reporting(former, now) : {},
  };
  return JSON.stringify(next) === JSON.stringify(former) ? former : next;
}

/** The state with what a replica reports, while that matters. */
export function withReport(
  rotation: Rotation,
  replica: string,
  report: Pick<Progress, 'bundle' | 'proxies' | 'namespaces'>,
  now: Date,
): Rotation {
  if (!isDistributing(rotation)) return rotation;
  const { [replica]: before } = reporting(rotation, now);
  const at = now.toISOString();
  const noneSince = before?.bundle === report.bundle ? (before.noneSince ?? at) : at;
  const next: Progress = { at, ...report, ...(report.proxies === 0 && { noneSince }) };
  return { ...rotation, replicas: { ...rotation.replicas, [replica]: next } };
}

/** The state in which a certificate may be signed that expires then; the former one itself if it is one. */
export function allow(former: Rotation, expires: Date, now: Date): Rotation {
  const { longest } = former;
  if (expires.getTime() <= now.getTime() + DAY || (longest !== undefined && expires.getTime() <= Date.parse(longest)))
    return former;
  // A day more, for those that come next.
  return { ...former, longest: new Date(expires.getTime() + DAY).toISOString() };
}

/** In whatever order. */
export function sameEntries(a: Entries, b: Entries): boolean {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((name) => a[name] === b[name]);
}

/** All its roots as PEM, for peers. */
export function bundleOf({ roots }: Pick<Rotation, 'roots'>): string {
  return mergeRoots(roots.map(({ certificate }) => certificate));
}

/** A short text that is different for each bundle. */
export function bundleId(bundle: string): string {
  return hash('sha256', bundle).slice(0, 16);
}

/** Some root is in the bundle that proxies may not have yet. */
export function isDistributing({ roots }: Pick<Rotation, 'roots'>): boolean {
  return roots.some(({ by }) => by !== undefined);
}

function isAcknowledgedByAll(rotation: Rotation, now: Date): boolean {
  const reports = Object.values(reporting(rotation, now));
  const id = bundleId(bundleOf(rotation));
  return (
    reports.some(({ namespaces }) => namespaces === 0) &&
    reports.every(
      ({ bundle, noneSince, namespaces = 0 }) =>
        bundle === id &&
        noneSince !== undefined &&
        now.getTime() - Date.parse(noneSince) >= RECONNECTED &&
        namespaces === 0,
    )
  );
}

/** Without the replicas that are gone. */
function reporting({ replicas }: Rotation, now: Date): Rotation['replicas'] {
  const present = Object.entries(replicas).filter(([, { at }]) => now.getTime() - Date.parse(at) < SILENT);
  return Object.fromEntries(present);
}

/** When the last certificate has expired that may have been signed by now. */
function expiryOfAll(longest: string | undefined, now: Date): string {
  return new Date(Math.max(now.getTime() + DAY, Date.parse(longest ?? now.toISOString())) + LATE).toISOString();
}

function isFull({ roots }: Rotation): boolean {
  return roots.filter(({ until }) => until !== undefined).length >= MOST_RETIRING;
}

function keep(root: TrustedRoot, inUse: readonly string[], now: Date, expired: string): TrustedRoot[] {
  const { until, ...rest } = root;
  if (inUse.includes(root.certificate)) return [rest];
  // Nothing was signed with it.
  if (root.by !== undefined && until === undefined) return [];
  if (until === undefined) return [{ ...rest, until: expired }];
  return now.getTime() < Date.parse(until) ? [root] : [];
}
