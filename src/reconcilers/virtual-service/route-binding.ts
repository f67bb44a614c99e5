import { withoutGeneration } from '../../api/object.ts';
import { compareText } from '../../model/age.ts';
import { type Labels, printSelector } from '../../model/labels.ts';
import type { Destination } from '../../model/route.ts';
import type { RouteBinding, RouteTarget } from '../../model/route-binding.ts';
import { type VirtualServiceModel, parentNamed } from '../../model/virtual-service.ts';
import { destinationsOf } from '../../model/virtual-service-parts.ts';

/** What selection sees of a VirtualService, delegates applied. */
export function routeBindingOf(model: VirtualServiceModel): RouteBinding {
  const { ref, name, namespace, createdAt, hosts, exportTo, http, tcp, tls } = model;
  const requests = http.flatMap(({ matches }) => matches);
  const matches = [...requests, ...[...tcp, ...tls].flatMap((route) => route.matches)];
  const clients = matches.map(({ sourceNamespace }) => sourceNamespace).filter((each) => each !== '');
  const forwarding = new Set<Destination>(
    http.flatMap(({ action }) => (action.kind === 'forward' ? action.destinations : [])),
  );
  const targets = destinationsOf(model).map(({ destination }): RouteTarget => ({
    host: destination.host,
    ...(destination.port !== undefined && { port: destination.port }),
    takesRequests: forwarding.has(destination),
  }));
  return {
    ...{ key: `VirtualService/${model.key}`, name, namespace, createdAt, hosts, exportTo },
    ref: withoutGeneration(ref),
    parents: [...new Set(model.gateways)].map(parentNamed),
    hasRequests: http.length > 0,
    hasConnections: tcp.length + tls.length > 0,
    features: [
      ...(requests.some(({ claims }) => claims.length > 0) ? (['claims'] as const) : []),
      ...(http.some(({ cors }) => cors !== undefined) ? (['cors'] as const) : []),
    ],
    needs: {
      clients: [...new Set(clients)].sort(),
      selectors: selectorsOf(matches),
      // A match that names gateways does not restrict labels.
      routerSelectors: selectorsOf(requests.filter(({ gateways }) => gateways.length === 0)),
      targets: distinct(targets, ({ host, port, takesRequests }) => `${host}|${port ?? ''}|${takesRequests}`),
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
