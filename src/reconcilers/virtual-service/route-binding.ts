import { withoutGeneration } from '../../api/object.ts';
import { compareText } from '../../model/age.ts';
import { type Labels, printSelector } from '../../model/labels.ts';
import type { RouteBinding, RouteTarget } from '../../model/route-binding.ts';
import { type VirtualServiceModel, parentNamed } from '../../model/virtual-service.ts';
import { destinationsOf } from '../../model/virtual-service-parts.ts';

/** What selection sees of a VirtualService, delegates applied. */
export function routeBindingOf(model: VirtualServiceModel): RouteBinding {
  const { ref, name, namespace, createdAt, hosts, exportTo, http, tcp, tls } = model;
  const requests = http.flatMap(({ matches }) => matches);
  const matches = [...requests, ...[...tcp, ...tls].flatMap((route) => route.matches)];
  const clients = matches.map(({ sourceNamespace }) => sourceNamespace).filter((each) => each !== '');
  const targets = destinationsOf(model).map(({ destination: { host, port } }): RouteTarget => ({
    host,
    ...(port !== undefined && { port }),
  }));
  return {
    ...{ key: `VirtualService/${model.key}`, name, namespace, createdAt, hosts, exportTo },
    ref: withoutGeneration(ref),
    parents: [...new Set(model.gateways)].map(parentNamed),
    hasRequests: http.length > 0,
    hasConnections: tcp.length + tls.length > 0,
    needs: {
      clients: [...new Set(clients)].sort(),
      selectors: selectorsOf(matches),
      // A match that names gateways does not restrict labels.
      routerSelectors: selectorsOf(requests.filter(({ gateways }) => gateways.length === 0)),
      targets: distinct(targets, ({ host, port }) => `${host}|${port ?? ''}`),
    },
  };
}

function selectorsOf(matches: readonly { readonly sourceLabels: Labels }[]): Labels[] {
  const all = matches.map(({ sourceLabels }) => sourceLabels);
  return distinct(
    all.filter((labels) => Object.keys(labels).length > 0),
    printSelector,
  );
}

/** Sorted by key. */
function distinct<T>(all: readonly T[], keyOf: (each: T) => string): T[] {
  const byKey = new Map(all.map((each) => [keyOf(each), each]));
  return [...byKey].sort(([a], [b]) => compareText(a, b)).map(([, each]) => each);
}
