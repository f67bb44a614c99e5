import { KubeConfig } from '@kubernetes/client-node';
import type { Json } from '../api/json.ts';
import type { Kind, KindName } from '../api/kinds.ts';
import type { ObjectSink } from '../api/source.ts';
import { type Clock, aborted } from '../base/clock.ts';
import type { RemoteSource, Trouble } from '../clusters/connection.ts';
import type { ClusterAccess } from '../clusters/kubeconfig.ts';
import { TOO_LARGE } from '../kube/client/body.ts';
import { type Budget, OVER_BUDGET } from '../kube/client/budget.ts';
import { KubeClient } from '../kube/client/client.ts';
import { ClusterReader, FOREIGN_RESPONSE } from '../kube/reading/cluster-reader.ts';
import { PooledKubeConfig } from '../kube/client/credentials.ts';
import { FreshNamespaces } from '../kube/reading/fresh-namespaces.ts';
import type { Log } from '../kube/client/log.ts';
import { Outages } from '../kube/client/outages.ts';
import { Pace } from '../kube/client/pace.ts';
import { MeshConfigChoice } from '../sources/mesh-config-choice.ts';
import { meshConfigNames } from '../api/mesh-config-names.ts';
import type { TokenIssuer } from '../secure/token-issuer.ts';
import { version } from '../base/version.ts';
import type { ClusterCredentials } from './cluster-credentials.ts';
import { RemoteAccount } from './remote-account.ts';
import type { RootDistribution } from './root-distribution.ts';

/** How fast responses are read in the long run, and at once: a first list is not slowed down. */
const BYTES_PER_SECOND = 4 * 1024 * 1024;
const BYTES_AT_ONCE = 128 * 1024 * 1024;
/** The same for answers to single questions, and the longest of these. Bytes; each counts as 16 KiB at least. */
const ANSWERS_PER_SECOND = 2 * 1024 * 1024;
const ANSWERS_AT_ONCE = 32 * 1024 * 1024;
const LARGEST_ANSWER = 256 * 1024;

/** Nobody waits for them if the account may not read them. */
const optionalKinds: ReadonlySet<KindName> = new Set(['ConfigMap', 'WorkloadEntry', 'ServiceExport', 'ServiceImport']);
const remoteKindNames: ReadonlySet<KindName> = new Set([
  ...(['Namespace', 'Node', 'Pod', 'Service', 'EndpointSlice'] as const),
  ...optionalKinds,
]);
/**
 * What is read of another cluster, as by Istio. Other configuration is that of the own one; of the mesh config, only the
 * trust domain counts.
 *
 * @param own what is read of the own cluster.
 */
export function remoteKinds(own: readonly Kind<KindName>[]): readonly Kind<KindName>[] {
  return own.filter(({ name }) => remoteKindNames.has(name));
}

export interface RemoteClusterOptions {
  readonly access: ClusterAccess;
  readonly sink: ObjectSink;
  readonly rootNamespace: string;
  readonly revision?: string;
  readonly ownKinds: readonly Kind<KindName>[];
  /** For what is kept of it. */
  readonly budget: Budget;
  /** Absent: this control plane signs nothing. */
  readonly distribution?: RootDistribution;
  /** What reads Secrets for proxies there. */
  readonly credentials: Pick<ClusterCredentials, 'join' | 'isWantedOf'>;
  /** Whether no discovery selector selects the namespace. */
  readonly leavesOut: (namespace: string) => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Another Kubernetes. */
export interface RemoteKubernetes extends RemoteSource {
  /** What its API server says about tokens. */
  readonly tokens: TokenIssuer;
  readNamespace(name: string, caller: string): Promise<Json | undefined>;
}

/** Reads another Kubernetes. */
export function readRemoteCluster(id: string, options: RemoteClusterOptions): RemoteKubernetes {
  const { access, rootNamespace, revision, ownKinds, budget, distribution, credentials, clock, random, signal } =
    options;
  const log = logOf(options.log, id);
  const config = new PooledKubeConfig(() => kubeConfigOf(access));
  const shared = { config, userAgent: `fairlead/${version}` };
  const pace = (rate: number, burst: number): Pace => new Pace({ rate, burst, clock });
  const api = new KubeClient({ ...shared, largest: FOREIGN_RESPONSE, pace: pace(BYTES_PER_SECOND, BYTES_AT_ONCE) });
  // Nobody waits for an answer because much is being read.
  const asking = new KubeClient({
    ...shared,
    largest: LARGEST_ANSWER,
    pace: pace(ANSWERS_PER_SECOND, ANSWERS_AT_ONCE),
  });
  const writesRoots = (): boolean => distribution?.controls(id) === true;
  const injectionWebhook = distribution?.injectionWebhook;
  const reviewsAccess = (): boolean => credentials.isWantedOf(id);
  const account = new RemoteAccount({
    api: asking,
    reviewsAccess,
    writesRoots,
    injectionWebhook,
    clock,
    random,
    signal,
  });
  const fresh = new FreshNamespaces(asking, clock, signal);
  const outages = new Outages({ log, clock, signal });
  const reader = new ClusterReader({
    sink: new MeshConfigChoice({ sink: options.sink, rootNamespace, revision }),
    ...{ api, kinds: remoteKinds(ownKinds), optional: optionalKinds, rootNamespace, clock, random, log },
    meshConfigs: meshConfigNames(revision),
    foreign: { budget },
    outages,
  });
  const ready = reader.whenReady();
  /** Starts what only a cluster that is served gets: watches of Secrets, and the roots. */
  const serve = async (): Promise<void> => {
    await Promise.race([ready, aborted(signal)]);
    if (signal.aborted) return;
    const parts = { cluster: id, api, budget, clock, random, log, outages, signal };
    credentials.join({
      ...parts,
      longestEvent: FOREIGN_RESPONSE,
      review: (who) => account.maySeeSecrets(who),
      toGrant: `allow the account of the kubeconfig to list and watch it in cluster ${id}`,
    });
    await distribution?.join({ ...parts, leavesOut: options.leavesOut });
  };
  return {
    ready,
    ended: Promise.all([reader.run({ signal }), account.run(), serve()]).then(() => api.close()),
    readNamespace: (name, caller) => fresh.read(name, caller),
    tokens: { cluster: id, review: (token) => account.review(token) },
    trouble: () => troubleIn(reader, clock),
    figures() {
      const stats = Object.entries(reader.stats());
      const missingRights = account.missingRights();
      const unreadable = stats.reduce((sum, [, { malformed }]) => sum + malformed, 0);
      return {
        ...(unreadable > 0 && { unreadable }),
        ...(missingRights.length > 0 && { missingRights }),
        memory: { used: budget.used, most: budget.most },
        objects: Object.fromEntries(stats.map(([kind, { objects }]) => [kind, objects])),
        stalenessSeconds: Math.max(0, ...stats.map(([, { stalenessSeconds }]) => stalenessSeconds)),
      };
    },
  };
}

/** The trouble of most kinds, and which these are; it began when the last of them was heard. */
function troubleIn(reader: ClusterReader, clock: Clock): Trouble | undefined {
  const stats = Object.entries(reader.stats());
  const troubled = stats.flatMap(([kind, { trouble, stalenessSeconds }]) =>
    trouble === undefined ? [] : [{ kind, trouble, stalenessSeconds }],
  );
  if (troubled.length === 0) return troubleOfReading(reader, clock);
  const reasons = [...Map.groupBy(troubled, ({ trouble }) => trouble)].map(([trouble, of]) => {
    const who = of.length === stats.length ? '' : `${of.map(({ kind }) => kind).join(', ')}: `;
    return `${who}${trouble}${hintFor(trouble)}`;
  });
  const since = clock.date().getTime() - 1_000 * Math.max(...troubled.map(({ stalenessSeconds }) => stalenessSeconds));
  return { reason: reasons.join('; '), since: new Date(since) };
}

/** A list may be long, or never end. */
function troubleOfReading(reader: ClusterReader, clock: Clock): Trouble | undefined {
  const waiting = reader.waitingFor();
  if (waiting.length === 0) return undefined;
  return { reason: `${waiting.join(', ')}: being read`, since: clock.date() };
}

function hintFor(trouble: string): string {
  if (trouble.startsWith('401')) return ' (renew the credentials in the kubeconfig)';
  if (trouble.startsWith('403')) return ' (allow the account of the kubeconfig to list and watch them)';
  if (trouble === OVER_BUDGET) return ' (what was known stays; give Fairlead more memory)';
  if (trouble.endsWith(TOO_LARGE)) return ` (an object is longer than ${FOREIGN_RESPONSE / 1024 / 1024} MiB)`;
  if (/^ERR_OSSL/.test(trouble)) return ' (the certificates or the key in the kubeconfig cannot be read)';
  if (/^(ERR_TLS_CERT|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH)/.test(trouble))
    return ' (the certificate of the server is not one that the kubeconfig trusts)';
  return '';
}

function kubeConfigOf(access: ClusterAccess): KubeConfig {
  const { server, insecure, tlsServerName, certificateAuthority, token, login, clientCertificate } = access;
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [
      {
        name: 'remote',
        server,
        skipTLSVerify: insecure,
        ...(tlsServerName !== undefined && { tlsServerName }),
        ...(certificateAuthority !== undefined && { caData: certificateAuthority }),
      },
    ],
    users: [
      {
        name: 'remote',
        ...(token !== undefined && { token }),
        ...login,
        ...(clientCertificate && { certData: clientCertificate.certificate, keyData: clientCertificate.key }),
      },
    ],
    contexts: [{ name: 'remote', cluster: 'remote', user: 'remote' }],
    currentContext: 'remote',
  });
  return config;
}

function logOf(log: Log, cluster: string): Log {
  return {
    debug: (message, fields) => log.debug(message, { cluster, ...fields }),
    info: (message, fields) => log.info(message, { cluster, ...fields }),
    warn: (message, fields) => log.warn(message, { cluster, ...fields }),
    error: (message, fields) => log.error(message, { cluster, ...fields }),
  };
}
