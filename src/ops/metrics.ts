import { collectDefaultMetrics, Registry } from 'prom-client';
import { type Labelled, metricsOf } from './metric-factory.ts';
import { servedTypeNames } from '../envoy/encode/served-types.ts';
import { countWebhooks } from './webhook-figures.ts';
import { countProblems, eventsOf, inboundUpdates, registryTypes } from './istio-figures.ts';
import type { Route } from './http-server.ts';
import type { ApiServerFigures, MetricSources } from './metric-sources.ts';

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
  /** Reads a source once per rendering if several metrics use it. */
  const once = <T>(ask: () => T): (() => T) => {
    let asked: { readonly rendering: number; readonly answer: T } | undefined;
    return () => (asked?.rendering === renderings ? asked : (asked = { rendering: renderings, answer: ask() })).answer;
  };
  const started = Date.now();

  const { gauge, counter, gauges, counters, histogram, histograms, total } = metricsOf(registry);
  const { version } = sources;
  const ads = once(sources.ads);
  const commits = once(sources.commits);
  const objects = once(sources.objects);
  const deliveries = once(sources.deliveries);
  const problems = once(() => [...sources.problems()]);
  const withoutEndpoints = once(sources.withoutEndpoints);
  const rejecting = once(() => countByType(sources.rejected()));
  gauges('pilot_info', 'Running version.', ['version'], () => [[{ version }, 1]]);
  gauge('istiod_uptime_seconds', 'Seconds since this process started.', () => (Date.now() - started) / 1000);
  gauge('fairlead_ready', 'Whether this replica is ready for proxies.', () => Number(sources.ready()));

  gauges('pilot_xds', 'Connected proxies.', ['version'], () => [[{ version }, ads().streams]]);
  counters('pilot_xds_pushes', 'Responses sent.', ['type'], () => byType(ads().pushes));
  counters('fairlead_xds_bytes_total', 'Bytes of responses sent.', ['type'], () => byType(ads().bytes));
  counters('pilot_xds_expired_nonce', 'Requests that answer a response that is no longer the newest.', ['type'], () =>
    byType(ads().expired),
  );
  counters('pilot_total_xds_rejects', 'Responses that proxies rejected.', ['type'], () => byType(ads().rejections));
  // Unlike in Istio, no label names the proxy: clients choose their own names.
  for (const shortName of servedTypeNames) {
    gauge(
      `pilot_xds_${shortName}_reject`,
      `Proxies that currently reject ${shortName.toUpperCase()} resources. /debug/syncz names them.`,
      () => rejecting().get(shortName) ?? 0,
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
  counters(
    'fairlead_xds_ended_total',
    'Streams that this replica ended, by gRPC status. The log says why.',
    ['reason'],
    () => Object.entries(ads().ended).map(([reason, count]) => [{ reason }, count]),
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
  counter(
    'fairlead_unexpected_errors_total',
    'Errors that nothing handled; please report them. Must be zero.',
    sources.unexpectedErrors,
  );
  gauge('fairlead_graph_failures', 'Results that are stale because of a bug. Must be zero.', sources.graphFailures);

  gauge('pilot_services', 'Known services.', sources.services);
  gauge(
    'fairlead_held_endpoints',
    'Endpoints that are served although they are no longer listed, because their Pods are ready. /debug/held names them.',
    sources.heldEndpoints,
  );
  gauge('pilot_virt_services', 'Known VirtualServices.', () => objects()['VirtualService'] ?? 0);
  gauges('fairlead_objects', 'Known objects, by kind.', ['kind'], () =>
    Object.entries(objects()).map(([kind, count]) => [{ kind }, count]),
  );
  gauges('fairlead_problems', 'Problems with objects, by kind and reason.', ['kind', 'reason'], () =>
    problems().map(({ reason, object: { kind } }) => [{ kind, reason }, 1]),
  );

  countProblems(gauge, gauges, problems);
  gauge(
    'pilot_conflict_outbound_listener_tcp_over_current_tcp',
    'Listeners for which TCP services compete.',
    sources.listenerConflicts,
  );
  gauge('pilot_eds_no_instances', 'Hosts without endpoints.', () => withoutEndpoints().sent);
  gauge(
    'pilot_dns_cluster_without_endpoints',
    'Hosts without endpoints that proxies resolve.',
    () => withoutEndpoints().resolved,
  );
  counters('pilot_inbound_updates', 'Changes delivered by the source.', ['type'], () =>
    Object.entries(inboundUpdates(deliveries())).map(([type, count]) => [{ type }, count]),
  );

  const { otherClusters: clusters } = sources;
  if (clusters !== undefined) {
    const named = (): ReturnType<typeof clusters.reports> =>
      clusters.reports().filter(({ id, phase }) => id !== '' && phase !== 'closing');
    gauges('istiod_managed_clusters', 'Clusters that objects come from.', ['cluster_type'], () => [
      [{ cluster_type: 'local' }, 1],
      [{ cluster_type: 'remote' }, named().filter(({ phase }) => phase !== 'refused').length],
    ]);
    gauges(
      'istiod_remote_cluster_sync_status',
      'Whether a remote cluster is in this state: 1 or 0. /debug/clusterz says why.',
      ['cluster', 'cluster_type', 'status'],
      () =>
        named().flatMap(({ id, syncStatus }) =>
          ['synced', 'syncing', 'timeout', 'closed'].map(
            (status) => [{ cluster: id, cluster_type: 'remote', status }, Number(status === syncStatus)] as const,
          ),
        ),
    );
    counters(
      'remote_cluster_secret_events_total',
      'Changes of Secrets, or files, that name remote clusters.',
      ['event'],
      () => Object.entries(clusters.events()).map(([event, count]) => [{ event }, count]),
    );
    counter(
      'remote_cluster_sync_timeouts_total',
      'Times that the first reading of a remote cluster took too long.',
      clusters.syncTimeouts,
    );
  }
  const { clusterMeshExport } = sources;
  if (clusterMeshExport !== undefined) {
    const exported = once(clusterMeshExport);
    gauge(
      'fairlead_clustermesh_export_connected',
      'Whether this replica is connected to the etcd that it writes for other clusters. Only the leader ever is.',
      () => Number(exported().endpoint !== undefined),
    );
    gauges(
      'fairlead_clustermesh_export_keys',
      'Keys for the other clusters: in their etcd, still to be written, refused by it.',
      ['state'],
      () => {
        const { keys, pending, refusedInAll } = exported();
        return [
          [{ state: 'written' }, keys],
          [{ state: 'pending' }, pending],
          [{ state: 'refused' }, refusedInAll],
        ];
      },
    );
  }
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
    gauges(
      'fairlead_kind_doubted',
      'Objects that the last list of the kind lacks, kept until another list agrees.',
      ['kind'],
      kinds((k) => k.doubted),
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
    counters('pilot_k8s_cfg_events', "Changes of Istio's objects.", ['type', 'event'], () =>
      eventsOf(deliveries(), (kind) => (kind in registryTypes ? undefined : kind)),
    );
    counters('pilot_k8s_reg_events', "Changes of Kubernetes' own objects.", ['type', 'event'], () =>
      eventsOf(deliveries(), (kind) => registryTypes[kind]),
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

  countWebhooks({ gauge, gauges, counter, counters }, sources);

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

/** Number of proxies that reject something, by type. */
function countByType(rejected: Iterable<{ readonly shortName: string }>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { shortName } of rejected) counts.set(shortName, (counts.get(shortName) ?? 0) + 1);
  return counts;
}

function byType(counts: Readonly<Record<string, number>>): Labelled<'type'> {
  return Object.entries(counts).map(([type, count]) => [{ type }, count]);
}
