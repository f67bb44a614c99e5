import { KubeConfig } from '@kubernetes/client-node';
import type { Secret } from './api/core.ts';
import { isObject, type Json, textOf } from './api/json.ts';
import type { Kind, KindName } from './api/kinds.ts';
import type { KubernetesObject } from './api/object.ts';
import { deepEqual } from './cache/equal.ts';
import { type Clock, sleep } from './clock.ts';
import { type ClusterStatus, Clusters, PATIENCE } from './clusters/clusters.ts';
import type { RemoteSource, Trouble } from './clusters/connection.ts';
import type { ClusterAccess, KubeconfigRules } from './clusters/kubeconfig.ts';
import {
  type RemoteRefusal,
  type RemoteSecret,
  type SecretRef,
  readRemoteSecret,
  remoteClusters,
} from './clusters/remote-secrets.ts';
import { type ClusterReport, syncStatusOf } from './debug/cluster-report.ts';
import type { Engine } from './engine/engine.ts';
import { type KubeApi, KubeClient } from './kube/client.ts';
import { ClusterReader } from './kube/cluster-reader.ts';
import { PooledKubeConfig } from './kube/credentials.ts';
import type { EventRecorder } from './kube/event-recorder.ts';
import { Informer } from './kube/informer.ts';
import type { Log } from './kube/log.ts';
import { Outages } from './kube/outages.ts';
import { version } from './version.ts';

export interface RemoteClustersOptions {
  /** The own API server, where the Secrets are. */
  readonly api: KubeApi;
  readonly engine: Pick<Engine, 'clusterSink' | 'serveCluster' | 'committer'>;
  readonly clusterId: string;
  readonly rootNamespace: string;
  /** What is read of the own cluster. */
  readonly kinds: readonly Kind<KindName>[];
  readonly rules: KubeconfigRules;
  /** Tells the owner of a Secret. */
  readonly report: EventRecorder['report'];
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly outages: Outages;
  readonly signal: AbortSignal;
}

export interface RemoteClusters {
  /** Resolves once every cluster was read, or had its time. */
  readonly ready: Promise<void>;
  /** What {@link ready} is waiting for, for people. */
  waitingFor(): readonly string[];
  reports(): readonly ClusterReport[];
  /** How often the first reading of a cluster took too long. */
  syncTimeouts(): number;
  /** Resolves once the signal has fired and nothing runs any more. */
  end(): Promise<void>;
}

/** As `istioctl create-remote-secret` labels them. */
const LABEL = 'istio/multiCluster=true';

const remoteKindNames: ReadonlySet<KindName> = new Set(['Namespace', 'Node', 'Pod', 'Service', 'EndpointSlice']);

/** What is read of another cluster. Configuration is that of the own one. */
function remoteKindsOf({ kinds }: Pick<RemoteClustersOptions, 'kinds'>): readonly Kind<KindName>[] {
  return kinds.filter(({ name, multicluster }) => remoteKindNames.has(name) || multicluster === true);
}

/** The clusters that Secrets of the root namespace name: what runs there is of this mesh, too. */
export function followRemoteClusters(options: RemoteClustersOptions): RemoteClusters {
  const { engine, clock, random, signal } = options;
  const clusters = new Clusters<ClusterAccess>({
    start: (id, access, sink, ending) => startReading(id, access, { ...options, sink, signal: ending }),
    sinkOf: (id) => engine.clusterSink(id),
    served: (id, isServed) => engine.serveCluster(id, isServed),
    kinds: remoteKindsOf(options).map(({ name }) => name),
    hold: () => engine.committer.hold(),
    clock,
    random,
  });
  const secrets = new RemoteSecrets(options, clusters);
  const running = secrets.run();
  const isRead = new AbortController();
  const ready = Promise.race([
    secrets.whenKnown,
    sleep(clock, PATIENCE, { signal: AbortSignal.any([signal, isRead.signal]) }),
  ]).then(() => {
    isRead.abort();
    return clusters.whenReady();
  });
  return {
    ready,
    waitingFor: () => [
      ...secrets.waitingFor(),
      ...clusters.statuses().flatMap(({ id, phase, trouble }) => {
        if (phase !== 'connecting' && phase !== 'syncing') return [];
        return [`cluster ${id}${trouble === undefined ? '' : ` (${trouble.reason})`}`];
      }),
    ],
    reports: () => reportsOf(clusters.statuses(), secrets.refusals),
    syncTimeouts: () => clusters.syncTimeouts,
    async end() {
      await running;
      await clusters.end();
    },
  };
}

/** Keeps the clusters as the Secrets say. */
class RemoteSecrets {
  readonly #options: RemoteClustersOptions;
  readonly #clusters: Clusters<ClusterAccess>;
  readonly #informer: Informer;
  /** By name. */
  readonly #known = new Map<string, RemoteSecret>();
  readonly #denied = Promise.withResolvers<void>();
  #refusals: readonly RemoteRefusal[] = [];

  constructor(options: RemoteClustersOptions, clusters: Clusters<ClusterAccess>) {
    const { api, clock, random, log, outages, rootNamespace } = options;
    this.#options = options;
    this.#clusters = clusters;
    this.#informer = new Informer({
      ...{ api, clock, random, log, outages },
      name: 'Secrets of remote clusters',
      type: { group: '', version: 'v1', plural: 'secrets' },
      namespace: rootNamespace,
      query: { labelSelector: LABEL },
      confidential: true,
      shape: { trim, same: deepEqual },
      sink: {
        replace: (objects) => {
          this.#known.clear();
          for (const object of objects) this.#read(object);
          this.#decide();
        },
        upsert: (object) => {
          this.#read(object);
          this.#decide();
        },
        delete: ({ metadata: { name } }) => {
          this.#known.delete(name);
          this.#decide();
        },
        failed: ({ code }) => {
          if (code === 403) this.#denied.resolve();
        },
      },
    });
  }

  get refusals(): readonly RemoteRefusal[] {
    return this.#refusals;
  }

  /** Resolves once they were read, or it is clear that this is not allowed: other clusters may not be wanted. */
  get whenKnown(): Promise<void> {
    return Promise.race([this.#informer.whenSynced, this.#denied.promise]);
  }

  waitingFor(): readonly string[] {
    const { synced, trouble } = this.#informer.stats();
    // Whoever does not allow it wants no other clusters.
    if (synced || trouble?.startsWith('403') === true) return [];
    return [`Secrets of remote clusters${trouble === undefined ? '' : ` (${trouble})`}`];
  }

  run(): Promise<void> {
    return this.#informer.run({ signal: this.#options.signal });
  }

  #read(object: KubernetesObject): void {
    this.#known.set(object.metadata.name, readRemoteSecret(object as Secret, this.#options.rules));
  }

  #decide(): void {
    if (this.#options.signal.aborted) return;
    const { clusters, refusals } = remoteClusters([...this.#known.values()], this.#options.clusterId);
    this.#tell(refusals);
    this.#clusters.want(
      new Map(
        Array.from(clusters, ([id, { secret, access }]) => [
          id,
          { owner: printSecret(secret), ...(access && { access }) },
        ]),
      ),
    );
  }

  #tell(refusals: readonly RemoteRefusal[]): void {
    const before = new Set(this.#refusals.map(keyOf));
    this.#refusals = refusals;
    for (const refusal of refusals) {
      const key = keyOf(refusal);
      if (before.has(key)) continue;
      const { secret, field, message } = refusal;
      this.#options.log.warn('Secret of a remote cluster refused', {
        secret: printSecret(secret),
        problem: `${field} ${message}`,
      });
      const object = { apiVersion: 'v1', kind: 'Secret', ...secret };
      this.#options.report({ key, object, reason: 'RemoteClusterRefused', message: `${field} ${message}` });
    }
  }
}

function trim(raw: Json): KubernetesObject {
  const metadata = isObject(raw['metadata']) ? raw['metadata'] : {};
  const { namespace, name, uid, creationTimestamp } = metadata;
  const data = isObject(raw['data']) ? raw['data'] : {};
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...{ namespace: textOf(namespace), name: textOf(name), uid: textOf(uid) },
      creationTimestamp: textOf(creationTimestamp),
    },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, textOf(value)])),
  };
  return secret;
}

interface Reading extends RemoteClustersOptions {
  readonly sink: ConstructorParameters<typeof ClusterReader>[0]['sink'];
}

/** Reads another Kubernetes. */
function startReading(id: string, access: ClusterAccess, options: Reading): RemoteSource {
  const { rootNamespace, clock, random, sink, signal } = options;
  const log = logOf(options.log, id);
  const api = new KubeClient({
    config: new PooledKubeConfig(() => kubeConfigOf(access)),
    userAgent: `fairlead/${version}`,
  });
  const reader = new ClusterReader({
    ...{ api, sink, kinds: remoteKindsOf(options), rootNamespace, clock, random, log },
    outages: new Outages({ log, clock, signal }),
  });
  return {
    ready: reader.whenReady(),
    ended: reader.run({ signal }).finally(() => api.close()),
    trouble: () => troubleIn(reader, clock),
    figures() {
      const stats = Object.entries(reader.stats());
      return {
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
  if (troubled.length === 0) return undefined;
  const reasons = [...Map.groupBy(troubled, ({ trouble }) => trouble)].map(([trouble, of]) => {
    const who = of.length === stats.length ? '' : `${of.map(({ kind }) => kind).join(', ')}: `;
    return `${who}${trouble}${hintFor(trouble)}`;
  });
  const since = clock.date().getTime() - 1_000 * Math.max(...troubled.map(({ stalenessSeconds }) => stalenessSeconds));
  return { reason: reasons.join('; '), since: new Date(since) };
}

function hintFor(trouble: string): string {
  if (trouble.startsWith('401')) return ' (renew the credentials in the Secret)';
  if (trouble.startsWith('403')) return ' (allow the account of the kubeconfig to list and watch them)';
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

function reportsOf(statuses: readonly ClusterStatus[], refusals: readonly RemoteRefusal[]): readonly ClusterReport[] {
  const byCluster = Map.groupBy(refusals, ({ cluster = '' }) => cluster);
  const textsOf = (id: string): string[] =>
    (byCluster.get(id) ?? []).map(({ secret, field, message }) => `Secret ${printSecret(secret)}: ${field} ${message}`);
  const known = statuses.map(({ id, owner, phase, since, figures, trouble }): ClusterReport => {
    const texts = textsOf(id);
    return {
      ...{ id, secretName: owner, syncStatus: syncStatusOf(phase), kind: 'Kubernetes', phase },
      since: since.toISOString(),
      ...figures,
      ...(trouble && { trouble: { reason: trouble.reason, since: trouble.since.toISOString() } }),
      ...(texts.length > 0 && { refusals: texts }),
    };
  });
  const there = new Set(statuses.map(({ id }) => id));
  const refused = [...byCluster].flatMap(([id, [first]]): ClusterReport[] =>
    id === '' || there.has(id) || first === undefined
      ? []
      : [
          {
            ...{ id, secretName: printSecret(first.secret), syncStatus: 'closed', kind: 'Kubernetes' },
            ...{ phase: 'refused', refusals: textsOf(id) },
          },
        ],
  );
  return [...known, ...refused];
}

function keyOf({ secret, field, message }: RemoteRefusal): string {
  return `${secret.uid} ${field} ${message}`;
}

function printSecret({ namespace, name }: SecretRef): string {
  return `${namespace}/${name}`;
}
