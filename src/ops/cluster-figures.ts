import { eventsOf, registryTypes } from './istio-figures.ts';
import type { Labelled, MetricFactory, Once } from './metric-factory.ts';
import type { ApiServerFigures, MetricSources } from './metric-sources.ts';

/** Where objects come from, and what is written there. */
export function countClusters(factory: MetricFactory, sources: MetricSources, once: Once): void {
  countApiServer(factory, sources, once);
  countOtherClusters(factory, sources, once);
  countStatusWrites(factory, sources);
}

function countApiServer({ gauge, gauges, counter, counters }: MetricFactory, sources: MetricSources, once: Once): void {
  if (sources.apiServer === undefined) return;
  const deliveries = once(sources.deliveries);
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

function countOtherClusters(
  { gauge, gauges, counter, counters }: MetricFactory,
  sources: MetricSources,
  once: Once,
): void {
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
}

function countStatusWrites({ gauge, gauges, counters }: MetricFactory, { status, leader, files }: MetricSources): void {
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
}
