import { expect, test } from 'vitest';
import type { Client } from '../model/client.ts';
import { MESH } from '../model/route-binding.ts';
import type { RouteScope } from './route-scope.ts';
import { conditionsOf, matchCanHold, virtualServiceFor } from './virtual-service-selection.ts';
import type { HttpMatch, HttpRoute, VirtualServiceModel } from '../model/virtual-service.ts';

const client = { namespace: 'own', matched: ['app=client'] as readonly string[] } as Client;
const scope: RouteScope = { client, parent: MESH, listenerPort: 80 };

const match = (conditions: Partial<HttpMatch>): HttpMatch => ({
  name: '',
  statPrefix: '',
  ignoreUriCase: false,
  headers: [],
  claims: [],
  queryParams: [],
  port: 0,
  sourceLabels: {},
  sourceNamespace: '',
  gateways: [],
  ...conditions,
});

const route = (...matches: HttpMatch[]) =>
  ({ matches, action: { kind: 'directResponse', status: 200 } }) as unknown as HttpRoute;

function candidate(name: string, matched: string, settings: Partial<VirtualServiceModel> = {}) {
  const model = { key: name, namespace: 'other', gateways: ['mesh'], exportTo: ['*'], http: [route()], ...settings };
  return { matched, model: conditionsOf(model as VirtualServiceModel) };
}

const winner = (...candidates: ReturnType<typeof candidate>[]) =>
  virtualServiceFor(candidates, { client, listenerPort: 80 })?.key;

test('an exact host wins over wildcards, and the longer wildcard over the shorter', () => {
  expect(winner(candidate('exact', 'a.b.c'), candidate('long', '*.b.c'), candidate('short', '*.c'))).toBe('exact');
  expect(winner(candidate('long', '*.b.c'), candidate('short', '*.c'))).toBe('long');
});

test('private comes before exported, exported before public, and then the given order counts', () => {
  const open = candidate('open', 'a');
  const exported = candidate('exported', 'a', { exportTo: ['own', 'third'] });
  const own = candidate('own', 'a', { namespace: 'own', exportTo: ['own'] });
  expect(winner(open, exported, own)).toBe('own');
  expect(winner(open, exported)).toBe('exported');
  expect(winner(open, candidate('later', 'a'))).toBe('open');
});

test('what is hidden does not count', () => {
  const hidden = candidate('hidden', 'a', { exportTo: ['third'] });
  expect(winner(hidden)).toBeUndefined();
  expect(winner(hidden, candidate('wild', '*'))).toBe('wild');
  expect(winner()).toBeUndefined();
});

test('one without any route for the client leaves the host to the next one of that exact host, but to no wildcard', () => {
  const pruned = { http: [route(match({ port: 81 }))] };
  expect(winner(candidate('pruned', 'a', pruned), candidate('next', 'a'))).toBe('next');
  expect(winner(candidate('pruned', 'a', pruned), candidate('wild', '*'))).toBeUndefined();
  expect(winner(candidate('pruned', '*', pruned), candidate('next', '*'))).toBeUndefined();
});

test.each<[string, Partial<HttpMatch>, boolean]>([
  ['nothing', {}, true],
  ['the port', { port: 80 }, true],
  ['another port', { port: 81 }, false],
  ['labels of the client', { sourceLabels: { app: 'client' } }, true],
  ['labels of others', { sourceLabels: { app: 'x' } }, false],
  ['the namespace', { sourceNamespace: 'own' }, true],
  ['another namespace', { sourceNamespace: 'x' }, false],
  ['the gateway', { gateways: ['x/g', 'mesh'] }, true],
  ['another gateway', { gateways: ['x/g'] }, false],
  ['the gateway and labels of others', { gateways: ['mesh'], sourceLabels: { app: 'x' } }, true],
])('whether a match holds that names %s', (_, conditions, holds) => {
  expect(matchCanHold(match(conditions), scope)).toBe(holds);
});
