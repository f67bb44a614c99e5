import { X509Certificate, hash } from 'node:crypto';
import { mergeRoots } from './roots.ts';
import { type SigningMaterial, readMaterial } from './signing-material.ts';

/** The entries of a Secret for a CA, see `readMaterial`. */
export type Entries = Readonly<Record<string, string>>;

/**
 * What signs, and what peers are to trust. Replicas share one, so it is plain JSON; moments are in ISO 8601. A root is
 * trusted before it signs, and for as long as something that it has signed may be valid.
 */
export interface Rotation {
  readonly signing: Entries;
  /** Since when. */
  readonly since: string;
  /** The bundle: those that the signing certificates come with first. */
  readonly roots: readonly TrustedRoot[];
  /** How far each replica is; only while the proxies do not all have the bundle. */
  readonly replicas: Readonly<Record<string, Progress>>;
}

export interface TrustedRoot {
  /** PEM. */
  readonly certificate: string;
  /** Since when it is in the bundle. */
  readonly since: string;
  /** All proxies have it: it may sign. */
  readonly distributed: boolean;
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
  /** In how many namespaces the bundle is missing; absent: another replica writes it there. */
  readonly namespaces?: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Until the kubelets have brought a changed ConfigMap to the agents, and all replicas have reported. */
export const MOUNTED = 5 * MINUTE;
/** The default lifetime of certificates, and what a replica may be late. Who has a newer one got the bundle with it. */
export const RENEWED = 25 * HOUR;
/** The longest lifetime of certificates, and the same. */
export const OUTLIVED = (90 * 24 + 1) * HOUR;
/** A replica that has not reported for so long is gone. */
const SILENT = 10 * MINUTE;
/** Old roots at a time: a bundle goes into every namespace and to every proxy. */
export const MOST_RETIRING = 8;

/** What is to be signed with: the entries, and what they mean. */
export interface Plugged {
  readonly entries: Entries;
  readonly material: SigningMaterial;
}

/** The next state; the former one itself if it stays. @param plugged what is to sign as soon as it may. */
export function advance(former: Rotation | undefined, plugged: Plugged, now: Date): Rotation {
  const since = now.toISOString();
  const wanted = plugged.material.roots;
  if (former === undefined) {
    const roots = [...new Set(wanted)].map((certificate) => ({ certificate, since, distributed: true }));
    return { signing: plugged.entries, since, roots, replicas: {} };
  }
  const current = readMaterial(former.signing, now);
  // What has expired signs nothing: there is nothing to wait for.
  const isUrgent = 'problem' in current;
  const known = former.roots.map((root) => ({
    ...root,
    distributed: root.distributed || isUrgent || isDistributed(root, former, now),
  }));
  const added = [...new Set(wanted)]
    .filter((certificate) => !known.some((root) => root.certificate === certificate))
    .map((certificate) => ({ certificate, since, distributed: isUrgent || isRenewal(certificate, known) }));
  const roots = [...known, ...added];

  const { root } = plugged.material;
  const maySign =
    isUrgent ||
    (roots.some(({ certificate, distributed }) => certificate === root && distributed) &&
      (root === current.material.root || !isFull(former)));
  const signing = maySign ? plugged.entries : former.signing;
  const inUse = maySign ? wanted : [...current.material.roots, ...wanted];
  const kept = roots.flatMap((each) => keep(each, inUse, now));
  const first = maySign ? wanted : inUse;
  const order = ({ certificate }: TrustedRoot): number =>
    first.includes(certificate) ? first.indexOf(certificate) : Infinity;
  const isSame = JSON.stringify(signing) === JSON.stringify(former.signing);
  const next: Rotation = {
    signing,
    since: isSame ? former.since : since,
    roots: kept.sort((a, b) => order(a) - order(b) || 0),
    replicas: kept.every(({ distributed }) => distributed) ? {} : former.replicas,
  };
  return JSON.stringify(next) === JSON.stringify(former) ? former : next;
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
export function isDistributing({ roots }: Rotation): boolean {
  return roots.some(({ distributed }) => !distributed);
}

function isDistributed({ since }: TrustedRoot, rotation: Rotation, now: Date): boolean {
  const age = now.getTime() - Date.parse(since);
  if (age >= RENEWED) return true;
  const reports = Object.values(rotation.replicas).filter(({ at }) => now.getTime() - Date.parse(at) < SILENT);
  const id = bundleId(bundleOf(rotation));
  return (
    age >= MOUNTED &&
    reports.some(({ namespaces }) => namespaces === 0) &&
    reports.every(({ bundle, proxies, namespaces = 0 }) => bundle === id && proxies === 0 && namespaces === 0)
  );
}

/** With the key and the name of a root that all have, as a renewed one: it verifies whatever that one does. */
function isRenewal(pem: string, known: readonly TrustedRoot[]): boolean {
  const certificate = new X509Certificate(pem);
  return known.some(({ certificate: other, distributed }) => {
    const root = new X509Certificate(other);
    return distributed && root.subject === certificate.subject && root.publicKey.equals(certificate.publicKey);
  });
}

function isFull({ roots }: Rotation): boolean {
  return roots.filter(({ until }) => until !== undefined).length >= MOST_RETIRING;
}

function keep(root: TrustedRoot, inUse: readonly string[], now: Date): TrustedRoot[] {
  const { until, ...rest } = root;
  if (inUse.includes(root.certificate)) return [rest];
  // Nothing was signed with it.
  if (!root.distributed) return [];
  if (until === undefined) return [{ ...rest, until: new Date(now.getTime() + OUTLIVED).toISOString() }];
  return now.getTime() < Date.parse(until) ? [root] : [];
}
