import { expect, test } from 'vitest';
import { createRules } from '../../../test/protos/validate-rules.ts';
import { reconcileVirtualService } from '../../reconcilers/virtual-service/virtual-service.ts';
import { types } from '../../envoy/encode/proto-types.ts';
import { blackHoleVirtualHost, buildVirtualHost } from '../../envoy/route/virtual-host.ts';
import { bracketed } from '../../model/host.ts';
import { destinationsOfRoute } from '../../model/virtual-service-parts.ts';
import { parentNamed } from '../../model/virtual-service.ts';
import type { SettledRoutes } from '../../model/route.ts';
import { cutRoutes } from '../../settle/cut-routes.ts';
import { settleVirtualServiceRoutes } from '../../settle/virtual-service-routes.ts';
import { clientOf, encoder, lookupAll, protos, targetsBy } from '../../envoy/testing/listeners.ts';
import { encodeRoutes, joinRoutes, reachedOf } from './encoded-routes.ts';

const checkRules = createRules();

/** A virtual host with the routes of one VirtualService for each list, on the port 443 of a server that ends TLS. */
function build(hosts: readonly string[], lists: readonly (readonly object[])[], secure = true) {
  const client = clientOf({ proxyType: 'router' });
  const server = { parent: parentNamed('edge/g'), listenerPort: 443, tls: secure };
  const context = { client, settings: {}, ...server };
  const pieces = lists.flatMap((http, i) => {
    const metadata = { name: `v${i}`, namespace: 'edge' };
    const spec = { hosts: ['*'], gateways: ['g'], http };
    const { models } = reconcileVirtualService(
      { apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', metadata, spec },
      { source: 'test', domainSuffix: 'x', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
    );
    const model = models[0]!;
    const targets = targetsBy(lookupAll, model.http.flatMap(destinationsOfRoute), 443);
    const settled = cutRoutes(model.http).map((piece) =>
      settleVirtualServiceRoutes(piece, { ...context, targets, model }),
    );
    return reachedOf(settled.map((piece) => encodeRoutes(piece, client.traits, encoder)));
  });
  const built = joinRoutes(pieces);
  const empty = buildVirtualHost({ host: hosts[0]!, port: 443, domains: hosts.map(bracketed) });
  const [virtualHost = { name: '' }] = encoder.virtualHostsOf(encoder.virtualHost(empty, built));
  expect(checkRules(types.virtualHost, protos.encode(types.virtualHost, virtualHost))).toEqual([]);
  return { ...built, virtualHost };
}

const to = (host: string, uri?: object) => ({
  ...(uri === undefined ? {} : { match: [{ uri }] }),
  route: [{ destination: { host } }],
});

test('routes that take every request come last, others keep their order', () => {
  const { virtualHost, clusters } = build(
    ['a.com', '*.com'],
    [[to('a.x', { exact: '/1' }), to('b.x')], [to('c.x', { prefix: '/2' }), to('d.x', { regex: '.*' })], [to('e.x')]],
  );
  expect(virtualHost).toMatchObject({
    name: 'a.com:443',
    domains: ['a.com', '*.com'],
    includeRequestAttemptCount: true,
  });
  expect(virtualHost.routes?.map(({ route }) => route?.cluster)).toEqual(
    ['a', 'c', 'b', 'd', 'e'].map((name) => `outbound|443||${name}.x`),
  );
  expect(clusters).toHaveLength(5);
});

test('a redirect without a scheme stays where the request came from', () => {
  const redirect = (secure: boolean) =>
    build(['a.com'], [[{ redirect: { port: 443 } }]], secure).virtualHost.routes?.[0]?.redirect;
  expect(redirect(true)?.portRedirect).toBeUndefined();
  expect(redirect(false)?.portRedirect).toBe(443);
});

test('an IPv6 address stands in brackets, as requests name it', () => {
  expect(build(['2001:db8::1'], [[to('a.x')]]).virtualHost).toMatchObject({
    name: '[2001:db8::1]:443',
    domains: ['[2001:db8::1]'],
  });
});

test('a table without hosts has one for all that answers nothing', () => {
  const empty = blackHoleVirtualHost(80);
  expect(empty).toEqual({ name: 'blackhole:80', domains: ['*'] });
  expect(checkRules(types.virtualHost, protos.encode(types.virtualHost, empty))).toEqual([]);
});

/**
 * A front end of its own: paths and the clusters behind them, the longest path first, whoever asks for it. Without a
 * cluster, requests fail.
 */
const settlePaths = (table: Readonly<Record<string, string>>): SettledRoutes => ({
  rules: Object.entries(table).map(([path, cluster], i) => ({
    name: path,
    owner: undefined,
    sources: [{ object: paths, field: `spec.paths[${i}]` }],
    matches: [
      { ...anything, uri: { kind: 'pathPrefix', value: path } },
      { ...anything, uri: { kind: 'exact', value: `${path}.html` } },
    ],
    precedence: -path.length,
    operation: cluster,
    action: {
      kind: 'forward',
      backends: [{ target: cluster === '' ? { kind: 'invalid', reason: 'host' } : { kind: 'cluster', cluster } }],
      mirrors: [],
      retriesStay: false,
      invalidStatus: 500,
    },
  })),
  isComplete: false,
  problems: [],
});
const paths = { source: 'test', group: 'example.com', kind: 'Paths', namespace: '', name: 'p' };
const anything = { name: '', statPrefix: '', ignoreUriCase: false, headers: [], claims: [], queryParams: [] };

test('another front end has routes by its own precedence, merged with those of others', () => {
  const [one, other] = [
    { '/a': 'x', '/a/b/c': 'y' },
    { '/a/b': 'z', '/a/b/gone': '' },
  ].map((table) => encodeRoutes(settlePaths(table), clientOf().traits, encoder));
  const { clusters, ...content } = joinRoutes([one!, other!]);
  expect(clusters).toEqual(['x', 'y', 'z']);
  const empty = buildVirtualHost({ host: 'a.com', port: 80, domains: ['a.com'] });
  const [virtualHost] = encoder.virtualHostsOf(encoder.virtualHost(empty, { ...content, clusters }));
  const routes = virtualHost?.routes ?? [];
  expect(routes.map(({ match, route }) => [match?.pathSeparatedPrefix ?? match?.path, route?.cluster])).toEqual([
    ['/a/b/gone', 'UnknownService'],
    ['/a/b/gone.html', 'UnknownService'],
    ['/a/b/c', 'y'],
    ['/a/b/c.html', 'y'],
    ['/a/b', 'z'],
    ['/a/b.html', 'z'],
    ['/a', 'x'],
    ['/a.html', 'x'],
  ]);
  expect(routes.map(({ route }) => route?.clusterNotFoundResponseCode)).toEqual(
    routes.map(() => 'INTERNAL_SERVER_ERROR'),
  );
  expect(routes[0]?.decorator?.operation).toBe('/a/b/gone*');
});
