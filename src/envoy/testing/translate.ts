import { type ObjectRef, distinctRefs } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Client } from '../../model/client.ts';
import type { MeshService } from '../../model/service.ts';
import type { DestinationRuleModel, HashKey } from '../../model/traffic-policy.ts';
import { type VirtualServiceModel, parentNamed } from '../../model/virtual-service.ts';
import { reconcileVirtualService } from '../../reconcilers/virtual-service/virtual-service.ts';
import { settleVirtualServiceRoutes } from '../../settle/virtual-service-routes.ts';
import { destinationsOfRoute } from '../../model/virtual-service-parts.ts';
import type { Route } from '../gen/types.gen.ts';
import { createProtos, type Json } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { buildRoutes, clustersOf } from '../route/route.ts';
import { type Lookup, targetsBy } from './listeners.ts';

export const protos = createProtos();
const rule = { origins: [{ kind: 'DestinationRule', name: 'hashed' }] } as unknown as DestinationRuleModel;
const service = {} as MeshService;

/** Every host exists except `nowhere`; hosts named after a hash have it. */
const lookup: Lookup = ({ host, subset, port = 80 }) => {
  const name = host.split('.')[0] ?? '';
  const cluster = `outbound|${port}|${subset}|${name}`;
  if (name === 'nowhere') return { kind: 'missing', what: 'host', cluster };
  if (subset === 'none') return { kind: 'missing', what: 'subset', cluster };
  const hash = hashes.get(name);
  return { kind: 'cluster', cluster, service, port, ...(hash === undefined ? {} : { rule, hash }) };
};
const hashes: ReadonlyMap<string, HashKey> = new Map<string, HashKey>([
  ['header', { kind: 'header', name: 'x-user' }],
  ['query', { kind: 'queryParameter', name: 'user' }],
  ['source', { kind: 'sourceIp' }],
  ['cookie', { kind: 'cookie', name: 'c', path: '/p', ttl: 5000, attributes: [{ name: 'SameSite', value: 'Lax' }] }],
]);

const clientOf = (agent: boolean) => ({ namespace: 'shop', traits: { agent }, matched: [] }) as unknown as Client;

interface TranslatedRoutes {
  readonly routes: readonly Route[];
  readonly clusters: readonly string[];
  readonly problems: readonly Problem[];
  readonly origins: readonly ObjectRef[];
}

/** Routes of a VirtualService `v` with these http routes. */
export function translate(http: readonly object[], options?: Parameters<typeof translateModel>[1]): TranslatedRoutes {
  const { models, problems } = reconcileVirtualService(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { name: 'v', namespace: 'shop' },
      spec: { hosts: ['a'], gateways: ['mesh', 'g'], http },
    },
    { source: 'test', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
  );
  if (problems.some(({ reason }) => reason === 'Invalid')) throw new Error(JSON.stringify(problems));
  const model = models[0]!;
  return translateModel(model, options);
}

export function translateModel(
  model: VirtualServiceModel,
  { gateway = 'mesh', listenerPort = 80, tls = false, agent = true } = {},
): TranslatedRoutes {
  const client = clientOf(agent);
  const { rules, ...found } = settleVirtualServiceRoutes(model.http, {
    client,
    parent: parentNamed(gateway),
    listenerPort,
    tls,
    model,
    targets: targetsBy(lookup, model.http.flatMap(destinationsOfRoute), listenerPort),
    settings: {},
  });
  const sources = rules.flatMap((one) => one.sources);
  const origins = distinctRefs(sources.map(({ object }) => object));
  return { routes: buildRoutes(rules, client.traits), clusters: clustersOf(rules), origins, ...found };
}

const config = '/apis/networking.istio.io/v1/namespaces/shop/virtual-service/v';

/** The routes as protobuf JSON, without the parts common to all. */
export function routesOf(http: readonly object[], options?: Parameters<typeof translate>[1]): Json[] {
  const { routes } = translate(http, options);
  const { virtualHosts } = protos.toJson(
    types.route,
    protos.encode(types.route, { virtualHosts: [{ name: 'x', domains: ['*'], routes }] }),
  ) as { virtualHosts: { routes: Record<string, Json>[] }[] };
  return virtualHosts[0]!.routes.map(({ metadata, ...route }) => {
    if (JSON.stringify(metadata) !== JSON.stringify({ filterMetadata: { istio: { config } } }))
      throw new Error('metadata');
    return route;
  });
}

export const to = (...hosts: string[]) => ({ route: hosts.map((host) => ({ destination: { host } })) });
