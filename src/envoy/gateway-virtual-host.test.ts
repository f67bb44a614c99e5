import { expect, test } from 'vitest';
import { createRules } from '../../test/protos/validate-rules.ts';
import { reconcileVirtualService } from '../reconcilers/virtual-service.ts';
import { blackHoleVirtualHost, buildGatewayVirtualHost } from './gateway-virtual-host.ts';
import { types } from './proto-types.ts';
import { buildRoutePiece, cutRoutes } from './route-pieces.ts';
import { clientOf, encoder, lookupAll, protos } from './testing/listeners.ts';

const checkRules = createRules();

/** A virtual host with the routes of one VirtualService for each list, on the port 443 of a server that ends TLS. */
function build(hosts: readonly string[], lists: readonly (readonly object[])[], secure = true) {
  const client = clientOf({ proxyType: 'router' });
  const server = { gateway: 'edge/g', listenerPort: 443, tls: secure };
  const context = { client, lookup: lookupAll, settings: {}, ...server };
  const routes = lists.map((http, i) => {
    const metadata = { name: `v${i}`, namespace: 'edge' };
    const spec = { hosts: ['*'], gateways: ['g'], http };
    const { models } = reconcileVirtualService(
      { apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', metadata, spec },
      { source: 'test', domainSuffix: 'x', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
    );
    const model = models[0]!;
    return cutRoutes(model.http).map((piece) => buildRoutePiece(piece, { ...context, model }, encoder));
  });
  const built = buildGatewayVirtualHost({
    port: 443,
    hosts,
    routes,
    httpsRedirect: false,
  });
  const [virtualHost = { name: '' }] = encoder.virtualHostsOf(encoder.virtualHost(built.virtualHost, built));
  expect(checkRules(types.virtualHost, protos.encode(types.virtualHost, virtualHost))).toEqual([]);
  return { ...built, virtualHost };
}

const to = (host: string, uri?: object) => ({
  ...(uri === undefined ? {} : { match: [{ uri }] }),
  route: [{ destination: { host } }],
});

test('routes that take every request come last, others keep their order', () => {
  const { virtualHost, clusters, origins } = build(
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
  expect(origins.map(({ name }) => name)).toEqual(['v0', 'v1', 'v2']);
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
