/**
 * Objects in, resources out: joins the graph, the committer and the ADS server, for either source. Around it:
 *
 * - the ways in: `object-entry.ts` (objects), `proxy-entry.ts` (proxies), `object-listeners.ts` (who hears of which kinds),
 *   `wanted.ts` (a worker answers what the graph asks the world for)
 * - what is asked for: `catalog.ts` (how clients request each type of resource), `admission.ts` and `demand-budgets.ts`
 *   (what may be computed for proxies), `kinds.ts` (a new kind of proxy in several commits), `departures.ts` (what a proxy
 *   had stays for a minute)
 * - which objects are in force: `generations.ts`, `waiting-objects.ts`, `kept-generations.ts` (what the cluster keeps of
 *   that), `endpoint-history.ts` (endpoints that a list lost)
 * - what is known of them: `progress.ts` (here), `replicas.ts` (everywhere), `object-statuses.ts` (what a status says),
 *   `failure-reports.ts` (our bugs, for the owners of the objects affected)
 */
import type { AdsLimits } from '../ads/transport/limits.ts';
import type { Admission, AdmissionRefusal } from './admission.ts';
import { type AdsServer, startAdsServer } from '../ads/transport/server.ts';
import type { AdsServerOptions, AdsLog, ListenAddress, SecureOptions } from '../ads/transport/server-options.ts';
import type { TenantOf } from '../ads/tenant.ts';
import type { Questions, Rejection } from '../ads/types.ts';
import { configKinds, kindsWithCompanions } from '../api/kinds.ts';
import { Graph, type Input } from '../cache/graph.ts';
import { catalog } from './catalog.ts';
import { Committer } from './committer.ts';
import type { EngineCore } from './core.ts';
import { type Amend, Encoder } from '../envoy/encode/encoder.ts';
import type { Protos } from '../envoy/encode/proto.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { type Mesh, buildMesh } from '../mesh.ts';
import { ONE } from '../mesh/inputs.ts';
import { reportFailures } from './failure-reports.ts';
import type { Generations } from './generations.ts';
import { type ObjectEntry, type ObjectEntryOptions, objectEntry } from './object-entry.ts';
import type { ObjectWriter } from './object-writer.ts';
import { proxyEntry } from './proxy-entry.ts';

/** Replaces the defaults: shorter in tests. */
export type AdsTimes = Pick<AdsServerOptions, 'times' | 'tickMs' | 'unguarded'>;

export interface EngineOptions extends ObjectEntryOptions {
  readonly protos: Protos;
  /** Where proxies connect without TLS; absent: nowhere. */
  readonly plaintext?: ListenAddress;
  readonly secure?: SecureOptions;
  readonly questions?: Questions;
  readonly batch: { readonly quiet: number; readonly max: number };
  readonly log: AdsLog;
  readonly rejected: (rejection: Rejection) => void;
  readonly limits?: Partial<AdsLimits>;
  readonly notAdmitted: (refusal: AdmissionRefusal) => void;
  /** How large the heap of this process may become. */
  readonly heapBytes: number;
  readonly adsTimes?: AdsTimes;
  readonly tenantOf?: TenantOf;
  /** Changes finished messages: tests have proxies reject them. */
  readonly amend?: Amend;
  /** See {@link CommitterOptions}; absent: throws. */
  readonly broken?: (error: unknown) => void;
  /** Replaces the system clock: tests skip time. */
  readonly clock?: Clock;
  readonly signal: AbortSignal;
}

/** Objects in, resources out: the graph, the way into it, and the ADS server that its commits feed. */
export interface Engine extends Pick<
  ObjectEntry,
  'credentials' | 'progress' | 'objects' | 'clusterSink' | 'onSelection'
> {
  readonly mesh: Mesh;
  readonly committer: Committer;
  readonly writer: Pick<ObjectWriter, 'touched' | 'deliveries'>;
  /** Whether objects of another cluster are served in one mesh with ours. */
  serveCluster(id: string, isServed: boolean): void;
  readonly ads: AdsServer;
  readonly generations: Pick<Generations, 'found' | 'rejectedElsewhere'>;
  /** True from the first commit until {@link drain}. */
  readonly ready: () => boolean;
  readonly draining: () => boolean;
  /** When proxies were first served, on the clock; undefined: not yet. */
  readonly servingSince: () => number | undefined;
  /** Of the mesh config. */
  readonly trustDomain: () => string;
  /** The same of the accounts of a cluster, or undefined if it is not served. */
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
  const { clock = systemClock, signal } = options;
  const encoder = new Encoder(options.protos, options.amend && { amend: options.amend });
  const mesh = buildMesh(new Graph(), encoder);
  const { graph, inputs, clusters } = mesh;
  const committer = committerOf(mesh, options, clock);
  const core: EngineCore = { mesh, committer, clock, signal };
  const serving = new Serving(clock);
  const proxies = proxyEntry(core, options);
  const objects = objectEntry(core, () => serving.hasBegun, options);
  const { progress, generations } = objects;
  let converged: ((ms: number) => void) | undefined;
  const ads = await startAdsServer({
    ...adsOptions(options, clock),
    types: catalog(encoder),
    rollouts: progress.rollouts,
    events: {
      ...proxies.events,
      rejected: (rejection) => graph.contain('rejections', () => options.rejected(rejection)),
      converged: (ms) => graph.contain('convergence', () => converged?.(ms)),
    },
    ready: () => serving.hasBegun,
  });
  graph.observe((draft) => {
    progress.published(draft);
    generations.published();
    ads.apply(mesh.publicationOf(draft, progress.rolloutsIn(draft)), committer.changedAt);
  }, 'ads');
  logFailures(core, options.log);
  committer.write(inputs.options.write(ONE, options.mesh));
  return {
    mesh,
    committer,
    ...objects,
    serveCluster: (id, isServed) => committer.write(inputs.remoteClusters.write(id, isServed ? { id } : undefined)),
    ads,
    ready: () => serving.hasBegun && !serving.isEnding,
    draining: () => serving.isEnding,
    servingSince: () => serving.since,
    trustDomain: () => clusters.trustDomain(),
    trustDomainOf: (cluster) => clusters.trustDomainOf(cluster),
    admission: proxies.admission,
    onConverged(observer) {
      converged = observer;
    },
    async open() {
      committer.open();
      await committer.settled();
      serving.begin();
    },
    drain(ms) {
      serving.end();
      return ads.drain(ms);
    },
  };
}

/** Whether proxies are served. */
class Serving {
  readonly #clock: Clock;
  #since: number | undefined;
  #isEnding = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get hasBegun(): boolean {
    return this.#since !== undefined;
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** On the clock. */
  get since(): number | undefined {
    return this.#since;
  }

  begin(): void {
    this.#since = this.#clock.now();
  }

  end(): void {
    this.#isEnding = true;
  }
}

function committerOf({ graph, inputs }: Mesh, options: EngineOptions, clock: Clock): Committer {
  const inputsOf = (kinds: typeof configKinds): ReadonlySet<Input<unknown>> =>
    new Set<Input<unknown>>(kinds.map(({ name }) => inputs.objects[name]));
  const [config, companions] = [inputsOf(configKinds), inputsOf(kindsWithCompanions)];
  return new Committer(graph, {
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
}

/** What is the same for every mesh. */
function adsOptions(
  { plaintext, adsTimes, limits, secure, questions, canaries, tenantOf, log, signal }: EngineOptions,
  clock: Clock,
): Omit<AdsServerOptions, 'types' | 'rollouts' | 'events' | 'ready'> {
  return {
    ...(plaintext && { plaintext }),
    ...adsTimes,
    ...(limits && { limits }),
    ...(secure && { secure }),
    ...(questions && { questions }),
    ...(canaries !== undefined && { canaries }),
    ...(tenantOf && { tenantOf }),
    after: (ms, work) => void clock.after(ms, work),
    log,
    now: () => clock.now(),
    ...(clock === systemClock && { idle: () => performance.eventLoopUtilization().idle }),
    signal,
  };
}

function logFailures({ mesh, committer }: EngineCore, log: AdsLog): void {
  reportFailures(
    mesh,
    (write) => committer.write(write),
    ({ collection, key, error }) =>
      log.warn('Internal error contained: please report it', { collection, key, err: error }),
  );
}
