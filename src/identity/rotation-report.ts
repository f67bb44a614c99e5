import { X509Certificate } from 'node:crypto';
import { nameOf } from './chain.ts';
import { type Rotation, type TrustedRoot, MOUNTED, isDistributing } from './rotation.ts';
import { readMaterial } from './signing-material.ts';

/** A rotation for people. Moments are in ISO 8601. */
export interface RotationReport {
  readonly step: 'Stable' | 'Distributing' | 'Retiring';
  readonly since: string;
  /** What the next step waits for; absent: no step follows. */
  readonly waitingFor?: string;
  readonly roots: readonly RootReport[];
}

export interface RootReport {
  readonly subject: string;
  /** SHA-256 of the certificate, as OpenSSL prints it. */
  readonly fingerprint: string;
  readonly expires: string;
  /** `next`: it signs once all proxies trust it. `retiring`: it has signed, and is trusted until that has expired. */
  readonly role: 'signing' | 'next' | 'trusted' | 'retiring';
  /** Since when it is in the bundle. */
  readonly since: string;
  readonly until?: string;
}

export function reportOf(rotation: Rotation, now: Date): RotationReport {
  const current = readMaterial(rotation.signing, now);
  const signing = 'problem' in current ? '' : current.material.root;
  const roots = rotation.roots.map((root) => rootReport(root, signing));
  if (isDistributing(rotation)) {
    const missing = rotation.roots.filter(({ by }) => by !== undefined);
    const [since, by] = [latest(missing.map((root) => root.since)), latest(missing.map((root) => root.by!))];
    return { step: 'Distributing', since, waitingFor: waitsFor(rotation, since, by, now), roots };
  }
  const [until] = roots.flatMap((root) => root.until ?? []).sort();
  if (until === undefined) return { step: 'Stable', since: rotation.since, roots };
  const waitingFor = `certificates signed by a retiring root to expire, at ${until}`;
  return { step: 'Retiring', since: rotation.since, waitingFor, roots };
}

/** One line for each step from one state to another. */
export function stepsBetween(former: Rotation, next: Rotation): { message: string; root: string; until?: string }[] {
  const before = new Map(former.roots.map((root) => [root.certificate, root]));
  const after = new Set(next.roots.map(({ certificate }) => certificate));
  const step = (message: string, { certificate, until }: TrustedRoot) => {
    const { subject, fingerprint } = namesOf(certificate);
    return { message, root: subject, fingerprint, ...(until !== undefined && { until }) };
  };
  return [
    ...next.roots.flatMap((root) => {
      const was = before.get(root.certificate);
      if (was === undefined) return [step('Root certificate added: it will sign once all proxies trust it', root)];
      if (root.by === undefined && was.by !== undefined)
        return [step('Root certificate is trusted by all proxies', root)];
      if (root.until !== undefined && was.until === undefined) return [step('Root certificate no longer signs', root)];
      return [];
    }),
    ...former.roots
      .filter(({ certificate }) => !after.has(certificate))
      .map((root) => step('Root certificate dropped: it is no longer trusted', root)),
  ];
}

const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`;

/** Of moments. */
const latest = (moments: readonly string[]): string => [...moments].sort().at(-1) ?? '';

function rootReport({ certificate, since, by, until }: TrustedRoot, signing: string): RootReport {
  const role =
    certificate === signing ? 'signing' : until !== undefined ? 'retiring' : by === undefined ? 'trusted' : 'next';
  return { ...namesOf(certificate), role, since, ...(until !== undefined && { until }) };
}

function namesOf(pem: string): Pick<RootReport, 'subject' | 'fingerprint' | 'expires'> {
  const certificate = new X509Certificate(pem);
  const { fingerprint256: fingerprint, validToDate } = certificate;
  return { subject: nameOf(certificate), fingerprint, expires: validToDate.toISOString() };
}

/** What {@link advance} looks at, in words. */
function waitsFor({ replicas }: Rotation, since: string, by: string, now: Date): string {
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  const reports = Object.values(replicas);
  const [proxies, namespaces] = [
    sum(reports.map((report) => report.proxies)),
    sum(reports.map((report) => report.namespaces ?? 0)),
  ];
  const waits = [
    ...(proxies > 0 ? [`${count(proxies, 'proxy', 'proxies')} to acknowledge the roots`] : []),
    ...(namespaces > 0 ? [`${count(namespaces, 'namespace', 'namespaces')} to get the ConfigMap`] : []),
  ];
  if (waits.length > 0) return `${waits.join(' and ')}, at most until ${by}`;
  const mounted = Date.parse(since) + MOUNTED;
  return now.getTime() < mounted
    ? `mounted ConfigMaps to follow, until ${new Date(mounted).toISOString()}`
    : `replicas to report, at most until ${by}`;
}
