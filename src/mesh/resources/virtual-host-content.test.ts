import { expect, test } from 'vitest';
import type { Client } from '../../model/client.ts';
import { MESH } from '../../model/route-binding.ts';
import type { MeshService } from '../../model/service.ts';
import type { DestinationRuleModel } from '../../model/traffic-policy.ts';
import type { VirtualServiceModel } from '../../model/virtual-service.ts';
import { destinationsOfRoute } from '../../model/virtual-service-parts.ts';
import { reconcileVirtualService } from '../../reconcilers/virtual-service/virtual-service.ts';
import { Encoder } from '../../envoy/encode/encoder.ts';
import { createProtos } from '../../envoy/encode/proto.ts';
import { types } from '../../envoy/encode/proto-types.ts';
import { type Lookup, targetsBy } from '../../envoy/testing/listeners.ts';
import { emptyRouteConfiguration, routeConfigurationHeader } from '../../envoy/route/configuration.ts';
import { buildVirtualHost, catchAllVirtualHost } from '../../envoy/route/virtual-host.ts';
import type { DefaultRouteInput } from '../../settle/default-route.ts';
import { settleVirtualServiceRoutes } from '../../settle/virtual-service-routes.ts';
import { encodeRoutes } from './encoded-routes.ts';
import { defaultContent, routedContent } from './virtual-host-content.ts';

const protos = createProtos();
const encoder = new Encoder(protos);
const service = {
  host: 'a.shop.svc.cluster.local',
  aliases: [],
  origins: [{ kind: 'Service', name: 'a' }],
} as unknown as MeshService;
const client = { namespace: 'shop', traits: { agent: true }, matched: [] } as unknown as Client;
const lookup: Lookup = ({ host, subset }, port) => ({
  kind: 'cluster',
  cluster: `outbound|${port}|${subset}|${host}`,
  service,
  port,
});

function virtualService(...http: object[]): VirtualServiceModel {
  return reconcileVirtualService(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { name: 'v', namespace: 'shop' },
      spec: { hosts: ['a'], http },
    },
    { source: 'test', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
  ).models[0]!;
}

interface Given extends Partial<DefaultRouteInput> {
  readonly virtualService?: VirtualServiceModel;
  readonly host?: string;
  readonly listenerPort?: number;
}

/** Undefined when there is nothing to serve. With its encoded routes read back. */
function build({ virtualService: model, listenerPort = 80, service: served, ...input }: Given) {
  const { host = service.host, port = 80 } = input;
  const targets = targetsBy(lookup, model?.http.flatMap(destinationsOfRoute) ?? [], listenerPort);
  const context = { client, parent: MESH, listenerPort, targets, settings: {} };
  const pieces =
    model === undefined
      ? []
      : [encodeRoutes(settleVirtualServiceRoutes(model.http, { ...context, model }), client.traits, encoder)];
  const byDefault = { service, port, served: true, settings: {}, ...input };
  const found = routedContent(pieces) ?? (served && defaultContent(byDefault, client.traits));
  if (found === undefined) return undefined;
  const { own, encoded } = found;
  const virtualHost = buildVirtualHost({ host, port, domains: ['a.shop', 'a'], ...(own && { routes: own }) });
  const [whole] = encoder.virtualHostsOf(encoder.virtualHost(virtualHost, encoded));
  return { virtualHost: own === undefined ? whole! : virtualHost, ...encoded };
}

const toB = { route: [{ destination: { host: 'b.com' } }] };

test('a service without VirtualService has one route to its own cluster', () => {
  const { virtualHost, clusters, own } = build({ service })!;
  expect(virtualHost).toMatchObject({
    name: 'a.shop.svc.cluster.local:80',
    domains: ['a.shop', 'a'],
    includeRequestAttemptCount: true,
    routes: [
      {
        name: 'default',
        match: { prefix: '/' },
        route: {
          cluster: 'outbound|80||a.shop.svc.cluster.local',
          timeout: { seconds: 0 },
          maxGrpcTimeout: { seconds: 0 },
        },
        decorator: { operation: 'a.shop.svc.cluster.local:80/*' },
      },
    ],
  });
  expect(clusters).toEqual(['outbound|80||a.shop.svc.cluster.local']);
  expect(own?.()).toMatchObject([{ object: service.origins[0], field: '' }]);
});

test('the default route has the hash of the port, and keeps retries free', () => {
  const hash = (name: string) => ({ loadBalancer: { consistentHash: { key: { kind: 'header', name } } } });
  const rule = { policy: hash('top'), portPolicies: { 80: hash('port') }, subsets: [], origins: [{ name: 'rule' }] };
  const { virtualHost, own } = build({ service, rule: rule as unknown as DestinationRuleModel })!;
  expect(virtualHost?.routes?.[0]?.route).toMatchObject({
    hashPolicy: [{ header: { headerName: 'port' } }],
    retryPolicy: { retryHostPredicate: [{}] },
  });
  expect(own?.()).toMatchObject([{ object: { name: 'a' } }, { object: { name: 'rule' } }]);
});

test('a VirtualService has the host, also without a service', () => {
  const model = virtualService(toB);
  expect(build({ service, virtualService: model })).toMatchObject({
    virtualHost: { routes: [{ route: { cluster: 'outbound|80||b.com' } }] },
    clusters: ['outbound|80||b.com'],
  });
  expect(build({ host: '::1', virtualService: model })?.virtualHost).toMatchObject({
    name: '[::1]:80',
  });
});

test('without a route that holds the service is served as usual, and a host without service not at all', () => {
  const model = virtualService({ match: [{ port: 81 }], ...toB });
  expect(build({ service, virtualService: model })?.virtualHost.routes).toMatchObject([{ name: 'default' }]);
  expect(build({ virtualService: model })).toBeUndefined();
});

test('a listener for all ports decides about matches, the port of the service about the default', () => {
  const model = virtualService(
    { match: [{ port: 80 }], ...toB },
    { match: [{ uri: { prefix: '/' } }], redirect: { uri: '/' } },
  );
  expect(build({ service, listenerPort: 0, virtualService: model })?.virtualHost.routes).toMatchObject([
    { redirect: {}, decorator: { operation: 'v:0/*' } },
  ]);
  expect(build({ service, listenerPort: 0, port: 8000 })?.clusters).toEqual([
    'outbound|8000||a.shop.svc.cluster.local',
  ]);
});

test('unknown hosts pass, or are refused', () => {
  expect(catchAllVirtualHost('ALLOW_ANY')).toMatchObject({
    virtualHost: {
      name: 'allow_any',
      domains: ['*'],
      routes: [{ name: 'allow_any', route: { cluster: 'PassthroughCluster', timeout: { seconds: 0 } } }],
    },
    clusters: ['PassthroughCluster'],
  });
  expect(catchAllVirtualHost('ALLOW_ANY', 'outbound|80||egress')).toMatchObject({
    virtualHost: { routes: [{ route: { cluster: 'outbound|80||egress' } }] },
    clusters: ['outbound|80||egress'],
  });
  expect(catchAllVirtualHost('REGISTRY_ONLY', 'outbound|80||egress')).toMatchObject({
    virtualHost: { name: 'block_all', routes: [{ name: 'block_all', directResponse: { status: 502 } }] },
    clusters: [],
  });
});

test('a table is its header followed by its virtual hosts', () => {
  const { virtualHost } = build({ service })!;
  const header = protos.encode(types.route, routeConfigurationHeader('80', false));
  const catchAll = catchAllVirtualHost('ALLOW_ANY').virtualHost;
  const hosts = protos.encode(types.route, { virtualHosts: [virtualHost, catchAll] });
  expect(protos.toJson(types.route, new Uint8Array([...header, ...hosts]))).toMatchObject({
    name: '80',
    validateClusters: false,
    ignorePortInHostMatching: true,
    maxDirectResponseBodySizeBytes: 1048576,
    virtualHosts: [{ name: 'a.shop.svc.cluster.local:80' }, { name: 'allow_any' }],
  });
  expect(emptyRouteConfiguration('x')).toEqual({ name: 'x', validateClusters: { value: false } });
});
