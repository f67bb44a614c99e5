/**
 * Objects in, resources out: joins the graph, the committer and the ADS server, for either source. Around it:
 *
 * - what is asked for: `catalog.ts` (how clients request each type of resource), `admission.ts` and `demand-budgets.ts`
 *   (what may be computed for proxies), `kinds.ts` (a new kind of proxy in several commits), `departures.ts` (what a proxy
 *   had stays for a minute)
 * - which objects are in force: `generations.ts`, `waiting-objects.ts`, `kept-generations.ts` (what the cluster keeps of
 *   that), `mesh-config-choice.ts` (decision 0116), `namespace-filter.ts` (decision 0083), `endpoint-history.ts`
 * - what is known of them: `progress.ts` (here), `replicas.ts` (everywhere), `object-statuses.ts` (what a status says),
 *   `failure-reports.ts` (our bugs, for the owners of the objects affected)
 */
import type { AdsLimits } from '../ads/transport/limits.ts';
import { Admission, type AdmissionRefusal } from './admission.ts';
import { type AdsServer, startAdsServer } from '../ads/transport/server.ts';
import type { AdsServerOptions, AdsLog, ListenAddress, SecureOptions } from '../ads/transport/server-options.ts';
import type { TenantOf } from '../ads/tenant.ts';
import type { Questions, Refusal } from '../ads/types.ts';
import { configKinds, kindsWithCompanions } from '../api/kinds.ts';
import type { ObjectSink } from '../api/source.ts';
import { Graph, type Input } from '../cache/graph.ts';
import { Askers } from './askers.ts';
import { catalog } from './catalog.ts';
import { Committer } from './committer.ts';
import { CredentialStore } from '../credentials/credential-store.ts';
import { DemandBudgets, demandLimits } from './demand-budgets.ts';
import { Departures } from './departures.ts';
import { Discovery } from './discovery.ts';
import { type Amend, Encoder } from '../envoy/encode/encoder.ts';
import type { Protos } from '../envoy/encode/proto.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { type Mesh, buildMesh } from '../mesh.ts';
import { isServed } from '../mesh/findings/conditions.ts';
import { type MeshOptions, ONE } from '../mesh/inputs.ts';
import { EndpointHistory } from './endpoint-history.ts';
import { reportFailures } from './failure-reports.ts';
import { Kinds } from './kinds.ts';
import { NamespaceFilter } from './namespace-filter.ts';
import { ObjectWriter } from './object-writer.ts';
import { Generations } from './generations.ts';
import { type ObjectGeneration, ProgressOfObjects } from './progress.ts';
import { PeerHistory } from './peer-history.ts';
import { WaitingObjects } from './waiting-objects.ts';

/** Replaces the defaults: shorter in tests. */
export type AdsTimes = Pick<AdsServerOptions, 'times' | 'tickMs' | 'unguarded'>;

export interface EngineOptions {
  readonly mesh: MeshOptions;
  /** In which this runs. */
  readonly namespace?: string | undefined;
  readonly revision?: string;
  readonly protos: Protos;
  /** Where proxies connect without TLS; absent: nowhere. */
  readonly plaintext?: ListenAddress;
  readonly secure?: SecureOptions;
  readonly questions?: Questions;
  readonly batch: { readonly quiet: number; readonly max: number };
  /** Objects arrive one by one: a change waits for those that belong to it. */
  readonly arrivesPiecemeal?: boolean;
  readonly log: AdsLog;
  readonly refused: (refusal: Refusal) => void;
  readonly limits?: Partial<AdsLimits>;
  readonly notAdmitted: (refusal: AdmissionRefusal) => void;
  /** How large the heap of this process may become. */
  readonly heapBytes: number;
  readonly adsTimes?: AdsTimes;
  /** What proxies may reject goes to one proxy of a build first, and what they reject is taken back; absent: true. */
  readonly canaries?: boolean;
  readonly tenantOf?: TenantOf;
  /** Changes finished messages: tests have proxies refuse them. */
  readonly amend?: Amend;
  /** See {@link CommitterOptions}; absent: throws. */
  readonly broken?: (error: unknown) => void;
  /** Replaces the system clock: tests skip time. */
  readonly clock?: Clock;
  readonly signal: AbortSignal;
}

/** Objects in, resources out: the graph, the way into it, and the ADS server that its commits feed. */
export interface Engine {
  readonly mesh: Mesh;
  readonly committer: Committer;
  /** Where those of the own cluster go. */
  readonly objects: NamespaceFilter;
  readonly writer: Pick<ObjectWriter, 'touched' | 'deliveries'>;
  /** Calls back when discovery selectors select namespaces of a cluster from now on, or no longer. */
  onSelection(observer: (cluster: string, namespaces: readonly string[]) => void): void;
  /** Where objects of another cluster go. They are served in one mesh with ours while {@link serveCluster} says so. */
  clusterSink(id: string): NamespaceFilter;
  serveCluster(id: string, isServed: boolean): void;
  readonly credentials: CredentialStore;
  readonly ads: AdsServer;
  readonly progress: ProgressOfObjects;
  readonly generations: Pick<Generations, 'found' | 'rejectedElsewhere'>;
  /** True from the first commit until {@link drain}. */
  readonly ready: () => boolean;
  readonly draining: () => boolean;
  /** When proxies were first served, on the clock; undefined: not yet. */
  readonly servingSince: () => number | undefined;
  /** Of the mesh config. */
  readonly trustDomain: () => string;
  /** The same of the accounts of a cluster; undefined: it is not served. */
  readonly trustDomainOf: (cluster: string) => string | undefined;
  readonly admission: Pick<Admission, 'refusals' | 'denied'>;
  /** Calls back when everything that a change means for a proxy is on its way; milliseconds since the change came. */
  onConverged(observer: (ms: number) => void): void;
  /** The first commit: call when the source has delivered everything it knows. Proxies are served from then on. */
  open(): Promise<void>;
  /** Makes the engine not ready, and sends the proxies away over this many milliseconds. */
  drain(ms: number): Promise<void>;
}

/** Rejects with a {@link ListenError}. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const { clock = systemClock } = options;
  const graph = new Graph();
  const encoder = new Encoder(options.protos, options.amend && { amend: options.amend });
  const mesh = buildMesh(graph, encoder);
  const { inputs } = mesh;
  const [config, companions] = [configKinds, kindsWithCompanions].map(
    (of) => new Set<Input<unknown>>(of.map(({ name }) => inputs.objects[name])),
  ) as [Set<Input<unknown>>, Set<Input<unknown>>];
  const committer = new Committer(graph, {
    ...options.batch,
    isConfig: (input) => config.has(input),
    hasCompanions: (input) => companions.has(input),
    slice: 10,
    clock,
    broken:
      options.broken ??
      ((error) => {
        throw error;
      }),
    signal: options.signal,
  });
  const budgets = new DemandBudgets(
    () => demandLimits(options.heapBytes, mesh.services.size),
    () => clock.now(),
  );
  const departures = new Departures(
    inputs.proxies,
    (write) => committer.write(write),
    {
      now: () => clock.now(),
      after: (ms, fn) => clock.after(ms, () => graph.contain('departures', fn)),
    },
    {
      signal: options.signal,
      forgotten: (stream) => {
        kinds.gone(stream);
        budgets.release(stream);
      },
      peerOf: (stream) => budgets.admitted(stream)?.peer,
    },
  );
  const kinds = new Kinds({
    proxies: inputs.proxies,
    enter: (proxy) => departures.connected(proxy),
    leave: (stream) => committer.write(inputs.proxies.write(stream, undefined)),
    isBusy: () => committer.stats.pending > 0,
    isMade: (traits) => mesh.isMade(traits),
    viewsOf: (proxy) => mesh.viewsOf(proxy),
    proxiesWith: (views) => mesh.proxiesWith(views),
    makeShards: (views, shards) => committer.write(inputs.shardsMade.write(views, shards)),
    services: () => mesh.services.size,
    now: () => clock.now(),
  });
  const askers = new Askers((stream, typeUrls) =>
    committer.write(inputs.asked.write(stream, typeUrls && { typeUrls })),
  );
  committer.onCommit(() => kinds.committed());
  const admission = new Admission({
    budgets,
    departures,
    preview: (proxy) => mesh.preview(proxy),
    portsOf: (workload) => mesh.portsOf(workload),
    refused: (refusal) => graph.contain('refusals', () => options.notAdmitted(refusal)),
  });
  const credentials = new CredentialStore({
    write: (key, credential) => committer.write(inputs.credentials.write(key, credential)),
    clock,
    signal: options.signal,
  });
  const peers = new PeerHistory({
    inputs,
    write: (write) => committer.write(write),
    clock,
    isServing: () => ready,
    signal: options.signal,
  });
  const isInForce = (key: string, object: ObjectGeneration): boolean => isServed(mesh.verdictOf(key), object);
  const progress = new ProgressOfObjects({ inputs, clock, isInForce });
  const generations = new Generations({
    inputs,
    progress,
    write: (write) => committer.write(write),
    isInForce,
    canaries: options.canaries ?? true,
    isLibrary({ stream }) {
      const proxy = mesh.proxies.get(stream);
      return proxy !== undefined && 'scope' in proxy && proxy.scope.traits.family === 'grpc';
    },
    clock,
    signal: options.signal,
  });
  progress.onChange((keys) => graph.contain('generations', () => generations.progressed(keys)));
  const endpoints = new EndpointHistory({
    inputs,
    write: (write) => committer.write(write),
    clock,
    signal: options.signal,
  });
  let ready = false;
  let servingSince: number | undefined;
  let draining = false;
  const discovery = new Discovery();
  let selection: ((cluster: string, namespaces: readonly string[]) => void) | undefined;
  let converged: ((ms: number) => void) | undefined;
  const ads = await startAdsServer({
    ...(options.plaintext && { plaintext: options.plaintext }),
    ...options.adsTimes,
    ...(options.limits && { limits: options.limits }),
    ...(options.secure && { secure: options.secure }),
    ...(options.questions && { questions: options.questions }),
    types: catalog(encoder),
    rollouts: progress.rollouts,
    ...(options.canaries !== undefined && { canaries: options.canaries }),
    ...(options.tenantOf && { tenantOf: options.tenantOf }),
    after: (ms, work) => void clock.after(ms, work),
    events: {
      admit: (proxy, peer) => admission.admit(proxy, peer),
      connected: (proxy) => kinds.connected(proxy, budgets.admitted(proxy.stream)?.demand.traits),
      isDeferred: (stream) => kinds.isDeferred(stream),
      disconnected: (proxy) =>
        graph.contain('departures', () => {
          askers.left(proxy.stream);
          kinds.disconnected(proxy.stream);
          departures.disconnected(proxy);
        }),
      refused: (refusal) => graph.contain('refusals', () => options.refused(refusal)),
      asked: (stream, typeUrl) => askers.asked(stream, typeUrl),
      converged: (ms) => graph.contain('convergence', () => converged?.(ms)),
    },
    log: options.log,
    ready: () => ready,
    now: () => clock.now(),
    ...(clock === systemClock && { idle: () => performance.eventLoopUtilization().idle }),
    signal: options.signal,
  });
  graph.observe((draft) => {
    progress.published(draft);
    generations.published();
    ads.apply(mesh.publicationOf(draft, progress.rolloutsIn(draft)), committer.changedAt);
  }, 'ads');
  reportFailures(
    mesh,
    (write) => committer.write(write),
    ({ collection, key, error }) =>
      options.log.warn('Internal error contained: please report it', { collection, key, err: error }),
  );
  committer.write(inputs.options.write(ONE, options.mesh));
  const waiting = options.arrivesPiecemeal
    ? new WaitingObjects({
        ...options.mesh,
        inputs,
        write: (write) => committer.write(write),
        isServing: () => ready,
        clock,
        signal: options.signal,
      })
    : undefined;
  const writer = new ObjectWriter({
    source: options.mesh.clusterId,
    revision: options.revision,
    inputs,
    credentials,
    peers,
    generations,
    endpoints,
    waiting,
    write: (write) => committer.write(write),
  });
  const writerOf = (id: string): ObjectSink =>
    new ObjectWriter({
      source: id,
      isRemote: true,
      revision: options.revision,
      inputs,
      // Credentials and configuration are those of the own cluster.
      ...{ credentials: { found: nothing }, peers: { changed: nothing }, generations: { changed: nothing } },
      endpoints: { changed: nothing, listed: (_, deliver) => deliver(), caughtUp: nothing },
      waiting,
      write: (write) => committer.write(write),
    });
  return {
    mesh,
    committer,
    objects: new NamespaceFilter({
      discovery,
      sink: writer,
      own: {
        rootNamespace: options.mesh.rootNamespace,
        namespace: options.namespace,
        revision: options.revision,
      },
      changed: (namespaces) => selection?.(options.mesh.clusterId, namespaces),
    }),
    writer,
    onSelection(observer) {
      selection = observer;
    },
    clusterSink: (id) =>
      new NamespaceFilter({
        ...{ discovery, sink: writerOf(id) },
        changed: (namespaces) => selection?.(id, namespaces),
      }),
    serveCluster: (id, isServed) => committer.write(inputs.remoteClusters.write(id, isServed ? { id } : undefined)),
    credentials,
    ads,
    progress,
    generations,
    ready: () => ready && !draining,
    draining: () => draining,
    servingSince: () => servingSince,
    trustDomain: () => mesh.trustDomain(),
    trustDomainOf: (cluster) => mesh.trustDomainOf(cluster),
    admission,
    onConverged(observer) {
      converged = observer;
    },
    async open() {
      committer.open();
      await committer.settled();
      ready = true;
      servingSince = clock.now();
    },
    drain(ms) {
      draining = true;
      return ads.drain(ms);
    },
  };
}

function nothing(): void {}
