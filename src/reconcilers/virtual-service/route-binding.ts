import { withoutGeneration } from '../../api/object.ts';
import { printSelector } from '../../model/labels.ts';
import type { RouteBinding, RouteTarget } from '../../model/route-binding.ts';
import { type VirtualServiceModel, parentNamed } from '../../model/virtual-service.ts';
import { destinationsOf, matchesOf } from '../../model/virtual-service-parts.ts';

/** What selection sees of a VirtualService, delegates applied. */
export function routeBindingOf(model: VirtualServiceModel): RouteBinding {
  const { key, ref, name, namespace, createdAt, hosts, exportTo } = model;
  const matches = matchesOf(model);
  const selectors = matches.map(({ sourceLabels }) => sourceLabels).filter((each) => Object.keys(each).length > 0);
  const clients = matches.map(({ sourceNamespace }) => sourceNamespace).filter((each) => each !== '');
  const targets = destinationsOf(model).map(({ destination: { host, port } }): RouteTarget => ({
    host,
    ...(port !== undefined && { port }),
  }));
  return {
    ref: withoutGeneration(ref),
    ...{ key, name, namespace, createdAt, hosts, exportTo },
    parents: [...new Set(model.gateways)].map(parentNamed),
    hasRequests: model.http.length > 0,
    hasConnections: model.tcp.length + model.tls.length > 0,
    needs: {
      clients: [...new Set(clients)],
      selectors: distinct(selectors, printSelector),
      targets: distinct(targets, ({ host, port }) => `${host}|${port ?? ''}`),
    },
  };
}

function distinct<T>(all: readonly T[], keyOf: (each: T) => string): T[] {
  return [...new Map(all.map((each) => [keyOf(each), each])).values()];
}
