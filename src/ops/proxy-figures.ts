import { servedTypeNames } from '../envoy/encode/served-types.ts';
import type { Labelled, MetricFactory, Once } from './metric-factory.ts';
import type { MetricSources } from './metric-sources.ts';

/** Streams, what is sent on them, and who may have one. */
export function countProxies(
  { gauge, gauges, counter, counters }: MetricFactory,
  sources: MetricSources,
  once: Once,
): void {
  const { version } = sources;
  const ads = once(sources.ads);
  const rejecting = once(() => countByType(sources.rejected()));
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
