import type { Json } from '../api/json.ts';
import { listIn, metadataOf, textIn, textsIn } from './pod.ts';

/** What a Pod is one of. */
export interface Workload {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/** From a Pod's labels and owner, as Istio names workloads: what makes the ReplicaSets or Jobs rather than one of these. */
export function workloadOf(pod: Json): Workload {
  const metadata = metadataOf(pod);
  const owner = listIn(metadata, 'ownerReferences').find(({ controller }) => controller === true);
  if (owner === undefined) {
    // A name that was made for it says nothing more.
    const name = textIn(metadata, 'generateName').replace(/-$/, '') || textIn(metadata, 'name');
    return { apiVersion: 'v1', kind: 'Pod', name };
  }
  const [apiVersion, kind, name] = [textIn(owner, 'apiVersion'), textIn(owner, 'kind'), textIn(owner, 'name')];
  const hash = textsIn(metadata, 'labels')['pod-template-hash'];
  if (kind === 'ReplicaSet' && hash !== undefined && name.endsWith(`-${hash}`))
    return { apiVersion, kind: 'Deployment', name: name.slice(0, -hash.length - 1) };
  // A CronJob appends the time at which the Job was due, in minutes.
  const [, cron] = /^(.+)-\d{8,11}$/.exec(name) ?? [];
  if (kind === 'Job' && cron !== undefined) return { apiVersion, kind: 'CronJob', name: cron };
  return { apiVersion, kind, name };
}

/** Its path in the API, as in Istio's metadata of proxies. */
export function ownerPath({ apiVersion, kind, name }: Workload, namespace: string): string {
  const path = kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  return `kubernetes://apis/${apiVersion}/namespaces/${namespace}/${path.toLowerCase()}/${name}`;
}

/** A name as the value of a label: those of workloads may be longer. */
export function asLabel(text: string): string {
  return text
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}
