import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { servedTypeNames } from '../served-types.ts';
import type { Route } from './http-server.ts';

/**
 * Where the values come from. All are read at each scrape; counters are totals since the start. Absent parts have no
 * metrics: a directory has no API server.
 */
export interface MetricSources {
  readonly version: string;
  readonly ready: () => boolean;
  readonly ads: () => AdsFigures;
  /** One entry per connected proxy and type of which it rejects the current version of a resource. */
  readonly refused: () => Iterable<{ readonly shortName: string }>;
  /** Proxies that were not admitted, by the budget that was full. */
  readonly notAdmitted: () => Readonly<Record<string, number>>;
  /** Callers on the secure port that did not prove who they are, or are not who they say, by reason. */
  readonly unauthenticated?: () => Iterable<readonly [string, number]>;
  /** When the certificates expire that the authority signs with; undefined: there is none yet. */
  readonly authority?: () => { readonly root: Date; readonly chain: Date } | undefined;
  readonly suppressedLines: () => number;
  readonly commits: () => { readonly commits: number; readonly writes: number; readonly pending: number };
  /** Graph entries that keep an old value because their transform threw. */
  readonly graphFailures: () => number;
  readonly services: () => number;
  /** By kind. */
  readonly objects: () => Readonly<Record<string, number>>;
  readonly problems: () => Iterable<{ readonly reason: string; readonly object: { readonly kind: string } }>;
  readonly apiServer?: () => ApiServerFigures;
  readonly status?: () => {
    readonly writes: number;
    readonly conflicts: number;
    readonly failures: number;
    readonly pending: number;
  };
  readonly leader?: () => boolean;
  readonly files?: () => Iterable<{ readonly severity: string }>;
}

export interface AdsFigures {
  readonly streams: number;
  readonly pendingStreams: number;
  readonly waitingForWorld: number;
  readonly waitingForPlace: number;
  readonly waitingForRoom: number;
  readonly waitingToBegin: number;
  readonly waitingForTurn: number;
  readonly resources: number;
  /** Bugs that ended a stream. */
  readonly failures: number;
  /** Streams on the slow path. */
  readonly indirect: number;
  /** By the type's short name. */
  readonly pushes: Readonly<Record<string, number>>;
  readonly bytes: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  /** Waits for an acknowledgement that timed out. */
  readonly timeouts: number;
  /** Number of times that a response with clusters was unanswered for long. */
  readonly overdue: number;
  /** Streams and connections refused or ended because of a limit, by limit. */
  readonly limits: Readonly<Record<string, number>>;
}

export interface ApiServerFigures {
  readonly relists: number;
  readonly malformedObjects: number;
  readonly stalenessSeconds: number;
  readonly kinds: Readonly<
    Record<
      string,
      { readonly synced: boolean; readonly installed: boolean; readonly events: number; readonly errors: number }
    >
  >;
}

export interface Metrics {
  /** A commit was published. Seconds: since its first change, and of work. */
  committed(delay: number, work: number): void;
  /** A proxy was sent everything that a change means for it, this many seconds after the change arrived. */
  converged(seconds: number): void;
  /** `/metrics` */
  readonly route: Route;
}

/** Names are Istio's where it has them, because alerts and dashboards use them. */
export function createMetrics(sources: MetricSources, clock: () => number = () => performance.now()): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  let renderings = 0;
  const rendering = new Rendering(() => {
    renderings++;
    return registry.metrics();
  }, clock);
  /** Reads a source once per rendering if several metrics use it. */
  const once = <T>(ask: () => T): (() => T) => {
    let asked: { readonly rendering: number; readonly answer: T } | undefined;
    return () => (asked?.rendering === renderings ? asked : (asked = { rendering: renderings, answer: ask() })).answer;
  };
  const started = Date.now();

  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  const counter = (name: string, help: string, value: () => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  };
  const gauges = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    values: () => Labelled<L>,
  ): void => {
    new Gauge({
      name,
      help,
      registers,
      labelNames,
      collect() {
        this.reset();
        for (const [labels, value] of values()) this.inc(labels, value);
      },
    });
  };
  const counters = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    values: () => Labelled<L>,
  ): void => {
    new Counter({
      name,
      help,
      registers,
      labelNames,
      collect() {
        this.reset();
        for (const [labels, value] of values()) this.inc(labels, value);
      },
    });
  };

  const { version } = sources;
  const ads = once(sources.ads);
  const commits = once(sources.commits);
  const objects = once(sources.objects);
  const refusing = once(() => countByType(sources.refused()));
  gauges('pilot_info', 'Running version.', ['version'], () => [[{ version }, 1]]);
  gauge('istiod_uptime_seconds', 'Seconds since this process started.', () => (Date.now() - started) / 1000);
  gauge('fairlead_ready', 'Whether this replica is ready for proxies.', () => Number(sources.ready()));

  gauges('pilot_xds', 'Connected proxies.', ['version'], () => [[{ version }, ads().streams]]);
  counters('pilot_xds_pushes', 'Responses sent.', ['type'], () => byType(ads().pushes));
  counters('fairlead_xds_bytes_total', 'Bytes of responses sent.', ['type'], () => byType(ads().bytes));
  counters('pilot_total_xds_rejects', 'Responses that proxies rejected.', ['type'], () => byType(ads().refusals));
  // Unlike in Istio, no label names the proxy: clients choose their own names.
  for (const shortName of servedTypeNames) {
    gauge(
      `pilot_xds_${shortName}_reject`,
      `Proxies that currently reject ${shortName.toUpperCase()} resources. /debug/syncz names them.`,
      () => refusing().get(shortName) ?? 0,
    );
  }
  gauge('fairlead_xds_behind', 'Proxies that do not have the newest config yet.', () => ads().pendingStreams);
  gauges('fairlead_xds_waiting', 'Connected proxies that are waiting, and for what.', ['for'], () => [
    [{ for: 'config' }, ads().waitingForWorld],
    [{ for: 'place' }, ads().waitingForPlace],
    [{ for: 'room' }, ads().waitingForRoom],
    [{ for: 'start' }, ads().waitingToBegin],
    [{ for: 'turn' }, ads().waitingForTurn],
  ]);
  counters(
    'fairlead_xds_limited_total',
    'Streams and connections that a limit refused or ended, by limit.',
    ['reason'],
    () => Object.entries(ads().limits).map(([reason, count]) => [{ reason }, count]),
  );
  counters('fairlead_xds_not_admitted_total', 'Proxies that were not admitted, by limit.', ['for'], () =>
    Object.entries(sources.notAdmitted()).map(([kind, count]) => [{ for: kind }, count]),
  );
  const { unauthenticated } = sources;
  if (unauthenticated !== undefined)
    counters('fairlead_secure_refused_total', 'Callers refused on the secure port, by reason.', ['reason'], () =>
      [...unauthenticated()].map(([reason, count]) => [{ reason }, count]),
    );
  const { authority } = sources;
  if (authority !== undefined) {
    const seconds = (part: 'root' | 'chain') => (): Labelled<never> => {
      const expires = authority()?.[part];
      return expires === undefined ? [] : [[{}, expires.getTime() / 1000]];
    };
    gauges(
      'citadel_server_root_cert_expiry_timestamp',
      'When the root certificate expires under which this replica signs, in seconds since 1970.',
      [],
      seconds('root'),
    );
    gauges(
      'citadel_server_cert_chain_expiry_timestamp',
      'When the first certificate of the chain expires with which this replica signs, in seconds since 1970.',
      [],
      seconds('chain'),
    );
  }
  gauge('fairlead_xds_resources', 'Resources kept encoded.', () => ads().resources);

  counter(
    'fairlead_log_lines_suppressed_total',
    'Log lines dropped because their message repeated too often.',
    sources.suppressedLines,
  );
  counter('fairlead_commits_total', 'Batches of changes published.', () => commits().commits);
  counter('fairlead_changes_total', 'Changed objects in the published batches.', () => commits().writes);
  gauge('fairlead_changes_pending', 'Changes waiting for the next batch.', () => commits().pending);

  counter(
    'fairlead_xds_ack_timeouts_total',
    'Changes sent before the proxy had acknowledged what they depend on.',
    () => ads().timeouts,
  );
  counter('fairlead_xds_overdue_total', 'Times a proxy was late to acknowledge its clusters.', () => ads().overdue);
  counter('pilot_total_xds_internal_errors', 'Streams ended by a bug. Must be zero.', () => ads().failures);
  counter(
    'fairlead_xds_slow_streams_total',
    'Streams on the slow path through the gRPC library. Must be zero.',
    () => ads().indirect,
  );
  gauge('fairlead_graph_failures', 'Results that are stale because of a bug. Must be zero.', sources.graphFailures);

  gauge('pilot_services', 'Known services.', sources.services);
  gauge('pilot_virt_services', 'Known VirtualServices.', () => objects()['VirtualService'] ?? 0);
  gauges('fairlead_objects', 'Known objects, by kind.', ['kind'], () =>
    Object.entries(objects()).map(([kind, count]) => [{ kind }, count]),
  );
  gauges('fairlead_problems', 'Problems with objects, by kind and reason.', ['kind', 'reason'], () =>
    Array.from(sources.problems(), ({ reason, object: { kind } }) => [{ kind, reason }, 1]),
  );

  const { status, leader, files } = sources;
  if (sources.apiServer !== undefined) {
    const apiServer = once(sources.apiServer);
    const kinds = (value: (kind: ApiServerFigures['kinds'][string]) => number) => (): Labelled<'kind'> =>
      Object.entries(apiServer().kinds).map(([kind, figures]) => [{ kind }, value(figures)]);
    gauges(
      'fairlead_kind_synced',
      'Whether every object of the kind is known.',
      ['kind'],
      kinds((k) => Number(k.synced)),
    );
    gauges(
      'fairlead_kind_installed',
      'Whether the API server knows the kind.',
      ['kind'],
      kinds((k) => Number(k.installed)),
    );
    counters(
      'fairlead_kind_events_total',
      'Changes sent by the API server.',
      ['kind'],
      kinds((k) => k.events),
    );
    counters(
      'fairlead_kind_errors_total',
      'Failed lists and watches.',
      ['kind'],
      kinds((k) => k.errors),
    );
    gauge(
      'fairlead_api_server_staleness_seconds',
      'Seconds since the API server was last heard from.',
      () => apiServer().stalenessSeconds,
    );
    counter('fairlead_relists_total', 'Times a kind was listed again.', () => apiServer().relists);
    counter(
      'fairlead_malformed_objects_total',
      'Objects from the API server that could not be read.',
      () => apiServer().malformedObjects,
    );
  }
  if (status !== undefined) {
    counters(
      'fairlead_status_writes_total',
      'Writes of conditions that succeeded, conflicted or failed.',
      ['result'],
      () => {
        const { writes, conflicts, failures } = status();
        return [
          [{ result: 'written' }, writes],
          [{ result: 'conflict' }, conflicts],
          [{ result: 'failed' }, failures],
        ];
      },
    );
    gauge('fairlead_status_pending', 'Objects waiting for their conditions.', () => status().pending);
  }
  if (leader !== undefined) gauge('fairlead_leader', 'Whether this replica writes conditions.', () => Number(leader()));
  if (files !== undefined)
    gauges('fairlead_file_reports', 'Problems with files, by severity.', ['severity'], () =>
      Array.from(files(), ({ severity }) => [{ severity }, 1]),
    );

  const histogram = (name: string, help: string, buckets: number[]): Histogram =>
    new Histogram({ name, help, buckets, registers });
  const debounce = histogram(
    'pilot_debounce_time',
    'Time from a change until it is published, in seconds.',
    [0.01, 0.1, 0.5, 1, 3, 5, 10, 20, 30],
  );
  const work = histogram(
    'pilot_pushcontext_init_seconds',
    'Time to compute the effect of a batch of changes, in seconds.',
    [0.001, 0.01, 0.1, 0.5, 1, 3, 5],
  );
  const convergence = histogram(
    'pilot_proxy_convergence_time',
    'Time from a change until everything that it changes for a proxy is sent to that proxy, in seconds.',
    [0.1, 0.5, 1, 3, 5, 10, 20, 30],
  );
  return {
    converged: (seconds) => convergence.observe(seconds),
    committed: (delay, seconds) => {
      debounce.observe(delay);
      work.observe(seconds);
    },
    route: async () => ({ type: registry.contentType, body: await rendering.now() }),
  };
}

/** How long a text is reused: rendering blocks the thread for milliseconds, and any client may scrape. Milliseconds. */
const KEPT_MS = 1_000;

/** Shares one text between requests within a second. */
class Rendering {
  readonly #render: () => Promise<string>;
  readonly #clock: () => number;
  #kept: { readonly at: number; readonly text: Promise<string> } | undefined;

  constructor(render: () => Promise<string>, clock: () => number) {
    this.#render = render;
    this.#clock = clock;
  }

  now(): Promise<string> {
    const at = this.#clock();
    if (this.#kept === undefined || at - this.#kept.at >= KEPT_MS) {
      const text = this.#render();
      this.#kept = { at, text };
      // The next request tries again.
      text.catch(() => {
        this.#kept = undefined;
      });
    }
    return this.#kept.text;
  }
}

type Labelled<L extends string> = readonly (readonly [Record<L, string>, number])[];

/** Number of proxies that reject something, by type. */
function countByType(refused: Iterable<{ readonly shortName: string }>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { shortName } of refused) counts.set(shortName, (counts.get(shortName) ?? 0) + 1);
  return counts;
}

function byType(counts: Readonly<Record<string, number>>): Labelled<'type'> {
  return Object.entries(counts).map(([type, count]) => [{ type }, count]);
}
