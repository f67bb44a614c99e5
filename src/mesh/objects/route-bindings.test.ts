import { expect, test } from 'vitest';
import { Graph } from '../../cache/graph.ts';
import type { Client } from '../../model/client.ts';
import { MESH, type Parent, type RouteBinding } from '../../model/route-binding.ts';
import { type FoundRoutes, type RouteFrontEnd, declareRouteBindings } from './route-bindings.ts';

const GATEWAY: Parent = { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'shop', name: 'edge' };

const binding = (name: string, createdAt: string, hosts: readonly string[], ...parents: Parent[]): RouteBinding => ({
  key: `VirtualService/test/shop/${name}`,
  ref: { source: 'test', group: 'networking.istio.io', kind: 'VirtualService', namespace: 'shop', name },
  ...{ name, namespace: 'shop', createdAt, hosts, parents },
  exportTo: ['*'],
  hasRequests: true,
  hasConnections: false,
  features: [],
  needs: { clients: [], selectors: [], routerSelectors: [], targets: [] },
});

/** Its routes all apply, except those named `idle`. */
const frontEnd = (kind: string, bindings: RouteFrontEnd['bindings']): RouteFrontEnd => ({
  kind,
  bindings,
  rules: {
    isExclusive: false,
    chosen: (_, found) => found.filter(({ key }) => !key.endsWith('/idle')),
    canHold: () => true,
    dependsOnNamespace: () => false,
    connections: () => undefined,
    unverifiedClaims: () => [],
    countPieces: () => 0,
    destinations: () => [],
    settle: () => undefined,
  },
});

test('of several kinds that have a host, the first one with rules for the client keeps it, with all its routes', () => {
  const graph = new Graph();
  const { chosen } = declareRouteBindings(
    graph,
    ['One', 'Other'].map((kind) => frontEnd(kind, graph.input<RouteBinding>(kind))),
  );
  const found = (kind: string, name: string, matched = 'a.test'): FoundRoutes => ({
    ...{ key: `${kind}/test/shop/${name}`, matched },
  });
  const scope = { client: {} as Client, listenerPort: 80 };
  const names = (...all: readonly FoundRoutes[]) =>
    chosen(graph.present, all, scope).map(({ key }) => key.split('/').at(-1));
  expect(names(found('Other', 'old'), found('One', 'a'), found('One', 'b'))).toEqual(['a', 'b']);
  expect(names(found('Other', 'old'), found('One', 'idle'))).toEqual(['old']);
  expect(names(found('Other', 'exact'), found('One', 'wild', '*.test'))).toEqual(['exact']);
  expect(names()).toEqual([]);
});

test('routes of the mesh are found by host, whatever kind of object they are from, and those of gateways alone are not', () => {
  const graph = new Graph();
  const [one, other] = ['one', 'other'].map((kind) => graph.input<RouteBinding>(kind)) as [
    ReturnType<typeof graph.input<RouteBinding>>,
    ReturnType<typeof graph.input<RouteBinding>>,
  ];
  const frontEnds = [frontEnd('One', one), frontEnd('Other', other)];
  const { all, byHost, byWildcard } = declareRouteBindings(graph, frontEnds);
  const made = [
    binding('young', '2030', ['a.test', '*.b.test'], MESH),
    binding('old', '2020', ['a.test'], GATEWAY, MESH),
    binding('gateway', '2010', ['a.test', '*.b.test'], GATEWAY),
  ];
  graph.commit(made.map((each, i) => (i === 1 ? other : one).write(`test/shop/${each.name}`, each)));
  const names = (members: readonly { readonly value: RouteBinding }[]) => members.map(({ value }) => value.name);
  expect(names(graph.present.group(byHost, 'a.test'))).toEqual(['old', 'young']);
  expect(names(graph.present.group(byWildcard, '*.b.test'))).toEqual(['young']);
  expect(all.get('VirtualService/test/shop/gateway')).toEqual(made[2]);
  graph.commit([other.write('test/shop/old', undefined)]);
  expect(names(graph.present.group(byHost, 'a.test'))).toEqual(['young']);
});
