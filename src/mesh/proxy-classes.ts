import type { ConnectedProxy } from '../ads/types.ts';
import type { Graph } from '../cache/graph.ts';
import { viewTraitsKey } from '../model/traits.ts';
import { mostInboundPorts } from '../settle/inbound.ts';
import type { Proxies, ResolvedProxy } from './clients/proxies.ts';
import { type WorkloadClass, portsSelecting } from './clients/workload-classes.ts';
import type { Services } from './objects/services.ts';
import type { Sidecars } from './objects/sidecars.ts';

/** What a proxy shares with others, connected or about to be: what admitting it costs. */
export interface ProxyClasses {
  /** What a proxy would be if it connected now. */
  preview(proxy: ConnectedProxy): ResolvedProxy;
  /** Whether anything is computed for proxies with these traits. */
  isMade(traits: string): boolean;
  /** Key of the views that the proxy has, or would have, or undefined if it is not accepted. */
  viewsOf(proxy: ConnectedProxy): string | undefined;
  /** How many proxies have these views. */
  proxiesWith(views: string): number;
  /** How many ports a workload of this class would serve for its Services, at least 1. */
  portsOf(workload: WorkloadClass): number;
}

interface ProxyClassDeps {
  readonly proxies: Proxies;
  readonly services: Services;
  readonly sidecars: Sidecars;
}

export function proxyClasses(graph: Graph, { proxies, services, sidecars }: ProxyClassDeps): ProxyClasses {
  return {
    preview: proxies.preview,
    isMade: (traits) => proxies.byTraits.get(traits) !== undefined,
    viewsOf(proxy) {
      const resolved = proxies.resolved.get(proxy.stream) ?? proxies.preview(proxy);
      return 'error' in resolved ? undefined : viewTraitsKey(resolved.scope.traits);
    },
    proxiesWith: (views) => proxies.byViewTraits.get(views)?.length ?? 0,
    portsOf(workload) {
      const ingress = sidecars.models.get(workload.sidecar)?.ingress.length ?? 0;
      const ports = Math.max(1, ingress, portsSelecting(workload, graph.present, services));
      return Math.min(ports, mostInboundPorts);
    },
  };
}
