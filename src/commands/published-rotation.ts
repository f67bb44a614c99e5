import { isObject } from '../api/json.ts';
import { ClusterError } from '../kube/client/cluster-error.ts';
import type { ClusterSettings } from '../config/config.ts';
import type { RotationReport } from '../identity/rotation-report.ts';
import { publishedReport } from '../kube/writing/root-certificates.ts';
import { openSource } from '../serve/object-source.ts';

/** What proxies in a cluster trust, as the leader has published it, or undefined if it has not. */
export async function publishedRotation(
  { source, rootNamespace }: ClusterSettings,
  signal: AbortSignal,
): Promise<RotationReport | undefined> {
  const opened = openSource(source);
  if (opened.kind !== 'kubernetes') return undefined;
  const place = `ConfigMap ${rootNamespace}/istio-ca-root-cert`;
  let text: string | undefined;
  try {
    text = await publishedReport(opened.client, rootNamespace, signal);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ClusterError(`${place} cannot be read: ${reason}`, { cause });
  }
  if (text === undefined) return undefined;
  const report = readReport(text);
  if (report === undefined) throw new ClusterError(`${place}: its annotation is not valid; the leader will rewrite it`);
  return report;
}

function readReport(text: string): RotationReport | undefined {
  let report: unknown;
  try {
    report = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isValid =
    isObject(report) &&
    areTexts(report, ['step', 'since'], ['waitingFor']) &&
    Array.isArray(report['roots']) &&
    report['roots'].every(
      (root) => isObject(root) && areTexts(root, ['subject', 'fingerprint', 'expires', 'role', 'since'], ['until']),
    );
  return isValid ? (report as unknown as RotationReport) : undefined;
}

function areTexts(
  object: Readonly<Record<string, unknown>>,
  present: readonly string[],
  optional: readonly string[],
): boolean {
  const isText = (name: string): boolean => typeof object[name] === 'string';
  return present.every(isText) && optional.every((name) => object[name] === undefined || isText(name));
}
