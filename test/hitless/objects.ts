import type { KubernetesObject } from '../../src/api/object.ts';
import {
  addressOf,
  BACKENDS,
  type Destination,
  EXTRA_HOST,
  hostOf,
  isTcp,
  NAMESPACE,
  type Ports,
  RETRIED,
  type Routes,
  type Rule,
  type Server,
  type ServerName,
  type Service,
  versionOf,
  type World,
} from './world.ts';

/** Certificate of the gateway. */
export interface Files {
  readonly certificate: string;
  readonly key: string;
}

/** Everything that says what a world is, by `kind/name`. */
export function objectsOf(world: World, ports: Ports, files: Files): ReadonlyMap<string, KubernetesObject> {
  const objects = [
    meshConfig(world),
    ...Array.from({ length: BACKENDS }, (_, i) => pod(i)),
    ...Object.entries(world.services).flatMap(([name, service]) => serviceObjects(name, service, ports)),
    ...Object.entries(world.routes).flatMap(([host, routes]) =>
      routes.object === undefined ? [] : [virtualService(world, host, { ...routes, object: routes.object })],
    ),
    ...gateways(world, ports, files),
    ...sidecars(world, ports),
  ];
  return new Map(objects.map((each) => [`${each.kind}/${each.metadata.name}`, each]));
}

/** An address where nobody listens. */
const DEAD = '127.0.77.250';

function object(apiVersion: string, kind: string, name: string, fields: object, labels = {}): KubernetesObject {
  return { apiVersion, kind, metadata: { name, namespace: NAMESPACE, labels }, ...fields } as KubernetesObject;
}

function networking(kind: string, name: string, spec: object): KubernetesObject {
  return object('networking.istio.io/v1', kind, name, { spec });
}

function meshConfig({ accessLog, registryOnly }: World): KubernetesObject {
  // Nothing that fails is tried again, where a route does not say so.
  const lines = [
    'defaultHttpRetryPolicy: {attempts: 0}',
    `accessLogFile: "${accessLog ? '/dev/null' : ''}"`,
    `outboundTrafficPolicy: {mode: ${registryOnly ? 'REGISTRY_ONLY' : 'ALLOW_ANY'}}`,
  ];
  const map = object('v1', 'ConfigMap', 'istio', { data: { mesh: lines.join('\n') } });
  return { ...map, metadata: { name: 'istio', namespace: 'istio-system' } };
}

function pod(backend: number): KubernetesObject {
  const fields = {
    spec: { nodeName: 'node', containers: [{ name: 'app', image: 'app' }] },
    status: { phase: 'Running', podIP: addressOf(backend), conditions: [{ type: 'Ready', status: 'True' }] },
  };
  return object('v1', 'Pod', `pod-${backend}`, fields, { version: versionOf(backend) });
}

function serviceObjects(name: string, service: Service, ports: Ports): KubernetesObject[] {
  const { kind, rule } = service;
  const port = ports.targets[service.protocol][service.target]!;
  return [
    ...(kind === 'Service' ? kubernetesService(name, service, port) : [serviceEntry(name, service, port)]),
    ...(rule === undefined ? [] : [networking('DestinationRule', name, destinationRule(name, rule))]),
  ];
}

/** Clients of the HTTP proxy can only call port 80: the proxy does not look at the port in a request. */
function portsOf({ called, protocol, port, portName }: Service): readonly { name: string; number: number }[] {
  const own = { name: portName, number: port };
  return called && protocol !== 'tcp' ? [own, { name: `${portName}-web`, number: 80 }] : [own];
}

function kubernetesService(name: string, service: Service, port: number): KubernetesObject[] {
  const { endpoints, hasDeadEndpoint } = service;
  const named = portsOf(service);
  const spec = {
    type: 'ClusterIP',
    clusterIP: `10.96.${name.indexOf('-') + 1}.${/\d*$/.exec(name)![0] || 0}`,
    selector: { app: name },
    ports: named.map(({ name: portName, number }) => ({
      ...{ name: portName, port: number, protocol: 'TCP', targetPort: port },
    })),
  };
  const ready = endpoints.map((backend) => ({
    addresses: [addressOf(backend)],
    conditions: { ready: true },
    targetRef: { kind: 'Pod', name: `pod-${backend}`, namespace: NAMESPACE },
  }));
  const dead = hasDeadEndpoint ? [{ addresses: [DEAD], conditions: { ready: false } }] : [];
  const slice = {
    addressType: 'IPv4',
    ports: named.map(({ name: portName }) => ({ name: portName, port, protocol: 'TCP' })),
    endpoints: [...ready, ...dead],
  };
  return [
    object('v1', 'Service', name, { spec }),
    object('discovery.k8s.io/v1', 'EndpointSlice', `${name}-a`, slice, { 'kubernetes.io/service-name': name }),
  ];
}

function serviceEntry(name: string, service: Service, port: number): KubernetesObject {
  const { protocol, endpoints } = service;
  const named = portsOf(service);
  return networking('ServiceEntry', name, {
    hosts: [hostOf(name)],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: named.map((each) => ({ ...each, protocol: protocol.toUpperCase() })),
    endpoints: endpoints.map((backend) => ({
      address: addressOf(backend),
      ports: Object.fromEntries(named.map((each) => [each.name, port])),
      labels: { version: versionOf(backend) },
    })),
  });
}

/** All of them change clusters in place; the first is none, since an empty one is not valid. */
const POLICIES: readonly object[] = [
  {},
  { connectionPool: { http: { http2MaxRequests: 2_000 } } },
  { connectionPool: { tcp: { connectTimeout: '7s' } }, loadBalancer: { simple: 'ROUND_ROBIN' } },
  { outlierDetection: { consecutive5xxErrors: 1_000, interval: '5s' }, loadBalancer: { simple: 'RANDOM' } },
];
export const MOST_POLICIES = POLICIES.length;

function destinationRule(name: string, { subsets, policy }: Rule): object {
  return {
    host: hostOf(name),
    ...(policy > 0 && { trafficPolicy: POLICIES[policy] }),
    subsets: Object.entries(subsets).map(([subset, version]) => ({ name: subset, labels: { version } })),
  };
}

function virtualService(world: World, host: string, routes: Routes & { object: string }): KubernetesObject {
  const called = host in world.services;
  const gateways = [...new Set(Object.values(world.servers).map((server) => server.object))].sort();
  const route = (destinations: readonly Destination[]) => ({
    route: destinations.map((to, i) => ({
      destination: destination(world, to),
      weight: Math.floor(100 / destinations.length) + (i === 0 ? 100 % destinations.length : 0),
    })),
  });
  const retries = host === RETRIED ? { attempts: 5, retryOn: '5xx' } : { attempts: 0 };
  const special = { name: 'special', match: [{ uri: { prefix: '/special' } }], ...route(routes.special), retries };
  const rest = { name: routes.routeName, ...route(routes.destinations), retries };
  const match = [{ port: world.services[host]?.port }];
  const tcp = [{ ...route(routes.destinations), ...(called && { match }) }];
  return networking('VirtualService', routes.object, {
    hosts: [called ? hostOf(host) : isTcp(host) ? '*' : host],
    gateways: called ? ['mesh'] : gateways,
    ...(isTcp(host) ? { tcp } : { http: routes.special.length > 0 ? [special, rest] : [rest] }),
    ...(routes.invalid && { http: [{ route: [{ destination: { host: '' }, weight: -1 }] }] }),
  });
}

/** What the VirtualService of a host says while it is valid. */
export function meaningOf(world: World, host: string): KubernetesObject | undefined {
  const routes = world.routes[host];
  const { object } = routes ?? {};
  return routes && object !== undefined
    ? virtualService(world, host, { ...routes, object, invalid: false })
    : undefined;
}

function destination({ services }: World, { service, subset }: Destination): object {
  const number = services[service]!.port;
  return { host: hostOf(service), port: { number }, ...(subset !== undefined && { subset }) };
}

function gateways(world: World, ports: Ports, files: Files): KubernetesObject[] {
  const servers = Object.entries(world.servers) as [ServerName, Server][];
  const names = [...new Set(servers.map(([, { object }]) => object))];
  return names.map((name) =>
    networking('Gateway', name, {
      selector: { istio: 'ingress' },
      servers: servers
        .filter(([, server]) => server.object === name)
        .map(([key, server]) => gatewayServer(world, key, server, ports.gateway[key], files)),
    }),
  );
}

const PROTOCOLS = { http: 'HTTP', extra: 'HTTP', https: 'HTTPS', tcp: 'TCP' } as const;

function gatewayServer(world: World, key: ServerName, server: Server, number: number, files: Files): object {
  const { portName: name, wide } = server;
  const hosts = Object.keys(world.routes).filter((host) => host.endsWith('.example.com') && !isTcp(host));
  return {
    port: { number, name, protocol: PROTOCOLS[key] },
    bind: '127.0.0.1',
    hosts:
      key === 'tcp' ? ['*'] : wide ? ['*.example.com'] : hosts.filter((host) => key !== 'https' || host !== EXTRA_HOST),
    ...(key === 'https' && { tls: { mode: 'SIMPLE', serverCertificate: files.certificate, privateKey: files.key } }),
  };
}

function sidecars(world: World, ports: Ports): KubernetesObject[] {
  const { sidecar, egressListener } = world;
  if (sidecar === 'none' && !egressListener) return [];
  const hosts = { none: ['*/*'], everything: ['*/*'], namespace: ['./*'], used: usedBy(world) }[sidecar];
  const port = { number: ports.egress, protocol: 'HTTP_PROXY', name: 'own' };
  const own = { port, bind: '127.0.0.1', captureMode: 'NONE' };
  return [
    networking('Sidecar', 'client', {
      workloadSelector: { labels: { app: 'client' } },
      egress: [...(egressListener ? [{ ...own, hosts }] : []), { hosts }],
    }),
  ];
}

/** What the client calls, and where that leads. */
function usedBy({ services, routes }: World): string[] {
  const names = Object.entries(routes).flatMap(([host, { object, destinations, special }]) => {
    if (!(host in services)) return [];
    return [host, ...(object === undefined ? [] : [...destinations, ...special].map(({ service }) => service))];
  });
  return [...new Set(names)].sort().map((name) => `./${hostOf(name)}`);
}
