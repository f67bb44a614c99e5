import { collectDefaultMetrics, Registry } from 'prom-client';
import { countClusters } from './cluster-figures.ts';
import type { Route } from './http-server.ts';
import { type Once, metricsOf } from './metric-factory.ts';
import type { MetricSources } from './metric-sources.ts';
import { countObjects } from './object-figures.ts';
import { countProxies } from './proxy-figures.ts';
import { countWebhooks } from './webhook-figures.ts';

export interface Metrics {
  /** A commit was published. Seconds: since its first change, and of work. */
  committed(delay: number, work: number): void;
  /** A proxy was sent everything that a change means for it, this many seconds after the change arrived. */
  converged(seconds: number): void;
  /** A response was handed to a connection. */
  sent(type: string, bytes: number): void;
  /** A connection has taken what it was handed, after this many seconds. */
  taken(seconds: number): void;
  /** A commit was published because of these. */
  triggered(reasons: Iterable<string>): void;
  /** An admission of a Pod was answered, after this many seconds. */
  admitted(seconds: number): void;
  /** `/metrics` */
  readonly route: Route;
}

/** Names are Istio's where it has them, because alerts and dashboards use them. */
export function createMetrics(sources: MetricSources, clock: () => number = () => performance.now()): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  let renderings = 0;
  const rendering = new Rendering(() => {
    renderings++;
    return registry.metrics();
  }, clock);
  const once: Once = <T>(ask: () => T): (() => T) => {
    let asked: { readonly rendering: number; readonly answer: T } | undefined;
    return () => (asked?.rendering === renderings ? asked : (asked = { rendering: renderings, answer: ask() })).answer;
  };
  const started = Date.now();

  const factory = metricsOf(registry);
  const { gauge, counter, gauges, histogram, histograms, total } = factory;
  const { version } = sources;
  const commits = once(sources.commits);
  gauges('pilot_info', 'Running version.', ['version'], () => [[{ version }, 1]]);
  gauge('istiod_uptime_seconds', 'Seconds since this process started.', () => (Date.now() - started) / 1000);
  gauge('fairlead_ready', 'Whether this replica is ready for proxies.', () => Number(sources.ready()));

  counter(
    'fairlead_log_lines_suppressed_total',
    'Log lines dropped because their message repeated too often.',
    sources.suppressedLines,
  );
  counter('fairlead_commits_total', 'Batches of changes published.', () => commits().commits);
  counter('fairlead_changes_total', 'Changed objects in the published batches.', () => commits().writes);
  gauge('fairlead_changes_pending', 'Changes waiting for the next batch.', () => commits().pending);

  counter(
    'fairlead_unexpected_errors_total',
    'Errors that nothing handled; please report them. Must be zero.',
    sources.unexpectedErrors,
  );
  gauge('fairlead_graph_failures', 'Results that are stale because of a bug. Must be zero.', sources.graphFailures);

  countProxies(factory, sources, once);
  countObjects(factory, sources, once);
  countClusters(factory, sources, once);
  countWebhooks(factory, sources);

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
  const sizes = histograms(
    'pilot_xds_config_size_bytes',
    'Sizes of responses.',
    [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000],
    'type',
  );
  const sending = histogram(
    'pilot_xds_send_time',
    'Time until a connection has taken what it was handed, in seconds.',
    [0.01, 0.1, 1, 3, 5, 10, 20, 30],
  );
  const admissions =
    sources.webhooks &&
    histogram(
      'sidecar_injection_time_seconds',
      'Time to decide about a Pod, in seconds.',
      [0.001, 0.005, 0.01, 0.05, 0.1, 1, 5],
    );
  const triggers = total('pilot_push_triggers', 'Batches of changes published, by what they were about.', ['type']);
  return {
    sent: (type, bytes) => sizes(type).observe(bytes),
    taken: (seconds) => sending.observe(seconds),
    triggered(reasons) {
      for (const type of reasons) triggers.inc({ type });
    },
    admitted: (seconds) => admissions?.observe(seconds),
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
