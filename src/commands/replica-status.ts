import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { isObject } from '../api/json.ts';
import { ClusterError } from '../kube/client/cluster-error.ts';
import type {
  IdentitiesRequest,
  ReplicaAnswer,
  ReplicaClusters,
  ReplicaIdentities,
  ReplicaRequest,
  ReplicaStatus,
  StatusRequest,
} from '../cli/program.ts';
import type { PeerAddress } from '../debug/peer-address.ts';
import { UsageError } from '../cli/usage-error.ts';
import type { ClusterReport } from '../debug/cluster-report.ts';
import type { StatusReport } from '../debug/status-report.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { collectionPath } from '../kube/client/paths.ts';
import { forwardPort } from '../kube/client/port-forward.ts';
import { openSource } from '../serve/object-source.ts';

/** How long a replica may take to answer. Milliseconds. */
const PATIENCE = 30_000;
/** The chart's: of its Pods, and of their monitoring port. */
const LABEL = 'app.kubernetes.io/name=fairlead';
const PORT = 15014;

/** `fairlead status`: what each replica says of who has what, those at addresses in their order. */
export function statusOfReplicas(
  { from, proxy }: StatusRequest,
  signal: AbortSignal,
): Promise<readonly ReplicaStatus[]> {
  const query = proxy === undefined ? '' : `?${new URLSearchParams({ proxyID: proxy }).toString()}`;
  return ask(from, { path: `/debug/status${query}`, isReport: isStatus }, signal);
}

/** `fairlead clusters`: what each replica says of the clusters that objects come from. */
export function clustersOfReplicas({ from }: ReplicaRequest, signal: AbortSignal): Promise<readonly ReplicaClusters[]> {
  return ask(from, { path: '/debug/clusterz', isReport: areClusters }, signal);
}

/** `fairlead clusters identities`: who has an address, as each replica knows it from clusters of a ClusterMesh. */
export function identitiesOfReplicas(
  { from, address }: IdentitiesRequest,
  signal: AbortSignal,
): Promise<readonly ReplicaIdentities[]> {
  const query = new URLSearchParams({ address }).toString();
  return ask(from, { path: `/debug/identityz?${query}`, isReport: areIdentities }, signal);
}

interface Question<Report> {
  readonly path: string;
  readonly isReport: (answer: unknown) => answer is Report;
}

async function ask<Report>(
  from: ReplicaRequest['from'],
  question: Question<Report>,
  signal: AbortSignal,
): Promise<readonly ReplicaAnswer<Report>[]> {
  if ('addresses' in from) return askAll(from.addresses.map(atAddress), question, signal);
  const opened = openSource(from.source);
  if (opened.kind !== 'kubernetes') return [];
  try {
    return await askAll(await inCluster(opened.client, from.rootNamespace, signal), question, signal);
  } finally {
    await opened.client.close();
  }
}

function askAll<Report>(
  replicas: readonly Replica[],
  { path, isReport }: Question<Report>,
  signal: AbortSignal,
): Promise<readonly ReplicaAnswer<Report>[]> {
  return Promise.all(
    replicas.map(async ({ name, get }): Promise<ReplicaAnswer<Report>> => {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
      try {
        return { address: name, report: reportIn(await get(path, patience), isReport) };
      } catch (error) {
        signal.throwIfAborted();
        return { address: name, failure: causeOf(error) };
      }
    }),
  );
}

interface Replica {
  readonly name: string;
  readonly get: (path: string, signal: AbortSignal) => Promise<Answer>;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

function atAddress(address: string): Replica {
  if (!URL.canParse(`http://${address}/`)) throw new UsageError(`--address: ${address} is not host:port`);
  return {
    name: address,
    async get(path, signal) {
      const response = await fetch(`http://${address}${path}`, { signal });
      return { status: response.status, body: await response.text() };
    },
  };
}

async function inCluster(client: KubeClient, namespace: string, signal: AbortSignal): Promise<readonly Replica[]> {
  const pods = await runningPods(client, namespace, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw new ClusterError(`Pods in namespace ${namespace} cannot be listed: ${causeOf(cause)}`, { cause });
  });
  if (pods.length === 0)
    throw new ClusterError(
      `no Pod with label ${LABEL} runs in namespace ${namespace}; set --root-namespace, or --address for a server outside a cluster`,
    );
  return pods.map((name) => ({
    name: `${namespace}/${name}`,
    async get(path, signal) {
      const connection = await forwardPort(client, { namespace, name }, PORT, signal);
      return getOver(connection, path, signal);
    },
  }));
}

async function runningPods(client: KubeClient, namespace: string, signal: AbortSignal): Promise<readonly string[]> {
  const path = collectionPath({ group: '', version: 'v1', plural: 'pods' }, namespace);
  const { items } = (await client.get(path, { query: { labelSelector: LABEL }, signal })) as {
    readonly items: readonly {
      readonly metadata: { readonly name: string };
      readonly status?: { readonly phase?: string };
    }[];
  };
  return items.filter(({ status }) => status?.phase === 'Running').map(({ metadata }) => metadata.name);
}

async function getOver(connection: NodeJS.ReadWriteStream, path: string, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'localhost', connection: 'close' };
    request({ path, headers, signal, createConnection: () => connection as never }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    })
      .on('error', reject)
      .end();
  });
}

function reportIn<Report>({ status, body }: Answer, isReport: Question<Report>['isReport']): Report {
  if (status !== 200) throw new Error(`it answers ${status}: ${body.trim()}`);
  let report: unknown;
  try {
    report = JSON.parse(body);
  } catch {
    report = undefined;
  }
  if (!isReport(report)) throw new Error('its answer is not what was asked for; is it Fairlead, in this version?');
  return report;
}

function areClusters(report: unknown): report is readonly ClusterReport[] {
  const isText = (value: unknown): boolean => typeof value === 'string';
  return Array.isArray(report) && report.every((each) => isObject(each) && [each['id'], each['phase']].every(isText));
}

function areIdentities(report: unknown): report is readonly PeerAddress[] {
  return Array.isArray(report) && report.every((each) => isObject(each) && typeof each['cluster'] === 'string');
}

function isStatus(report: unknown): report is StatusReport {
  return isObject(report) && typeof report['at'] === 'string' && areObjects(report['objects'], report['proxies']);
}

function areObjects(...lists: readonly unknown[]): boolean {
  return lists.every((list) => Array.isArray(list) && list.every(isObject));
}

function causeOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
