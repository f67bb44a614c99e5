import { countProblems, inboundUpdates } from './istio-figures.ts';
import type { MetricFactory, Once } from './metric-factory.ts';
import type { MetricSources } from './metric-sources.ts';

/** Objects, what is wrong with them, and services without endpoints. */
export function countObjects({ gauge, gauges, counters }: MetricFactory, sources: MetricSources, once: Once): void {
  const objects = once(sources.objects);
  const deliveries = once(sources.deliveries);
  const problems = once(() => [...sources.problems()]);
  const withoutEndpoints = once(sources.withoutEndpoints);
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
}
