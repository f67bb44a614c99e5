/**
 * A shop as its owners mean it: plain data that the run changes at random, {@link objectsOf} writes down as objects, and
 * {@link flowsOf} says how it is used. Whatever it looks like, every route that is in use leads to a ready back end.
 */
export interface World {
  readonly services: Record<string, Service>;
  /** By the host that clients call. */
  readonly routes: Record<string, Routes>;
  readonly servers: Partial<Record<ServerName, Server>>;
  /** What the client's Sidecar imports; `none`: there is none. */
  sidecar: 'none' | 'everything' | 'namespace' | 'used';
  /** The Sidecar has a listener of its own. */
  egressListener: boolean;
  accessLog: boolean;
  registryOnly: boolean;
}

export interface Service {
  /** Called by its name: it goes to its own endpoints when it has no routes. */
  readonly called: boolean;
  kind: 'Service' | 'ServiceEntry';
  readonly protocol: Protocol;
  port: number;
  portName: string;
  /** Which of the back ends' ports of this protocol. */
  target: number;
  /** Back ends, by number. */
  endpoints: number[];
  /** There is an endpoint that is not ready, and where nothing listens. */
  hasDeadEndpoint: boolean;
  rule?: Rule;
}

export type Protocol = 'http' | 'http2' | 'tcp';

export interface Rule {
  /** Name to version. */
  readonly subsets: Record<string, string>;
  /** Which of some connection pools, outlier detections and balancers. */
  policy: number;
}

export interface Routes {
  /** Name of the VirtualService; without one, the host goes to the service of that name. */
  object: string | undefined;
  /** No host goes anywhere without it. */
  readonly required: boolean;
  /** The name of its last route. */
  routeName: string;
  destinations: Destination[];
  /** Where a part of the paths goes. */
  special: Destination[];
  /** Written by someone who made a mistake. */
  invalid: boolean;
}

export interface Destination {
  service: string;
  subset?: string;
}

export type ServerName = 'http' | 'https' | 'tcp' | 'extra';

/** One server of a gateway. Several may be in one object. */
export interface Server {
  object: string;
  portName: string;
  /** Any host of the domain. */
  wide: boolean;
}

/** Ports of a run; nobody else has them. */
export interface Ports {
  /** Of all services that are called by name over HTTP. */
  readonly front: number;
  /** What other services may have. */
  readonly http: readonly number[];
  readonly tcpFront: number;
  readonly tcp: readonly number[];
  readonly httpProxy: number;
  readonly egress: number;
  readonly gateway: Readonly<Record<ServerName, number>>;
  /** Where the back ends listen. */
  readonly targets: Readonly<Record<Protocol, readonly number[]>>;
}

/** A steady stream of requests. */
export interface Flow {
  readonly id: string;
  readonly protocol: Protocol;
  /** A connection for each request. */
  readonly fresh: boolean;
  readonly tls: boolean;
  readonly port: number;
  readonly host: string;
  readonly path: string;
  /** The key of its routes. */
  readonly routes: string;
}

export const NAMESPACE = 'shop';
export const BACKENDS = 6;
export const VERSIONS = ['v1', 'v2', 'v3'] as const;
/** Its back ends fail now and then, and the route tries again. */
export const RETRIED = 'front-1';
const TCP = 'stock';
export const EXTRA_HOST = 'extra.example.com';

export const versionOf = (backend: number): string => VERSIONS[backend % VERSIONS.length]!;
export const addressOf = (backend: number): string => `127.0.77.${backend + 1}`;
export const hostOf = (service: string): string => `${service}.${NAMESPACE}.svc.cluster.local`;

export function firstWorld(ports: Ports): World {
  const service = (called: boolean, protocol: Protocol, port: number, endpoints: number[]): Service => ({
    called,
    protocol,
    port,
    endpoints,
    kind: 'Service',
    portName: protocol,
    target: 0,
    hasDeadEndpoint: false,
  });
  const routes = (object: string | undefined, required: boolean, to: string): Routes => ({
    object,
    required,
    routeName: 'first',
    destinations: [{ service: to }],
    special: [],
    invalid: false,
  });
  return {
    services: {
      'front-1': service(true, 'http', ports.front, [0, 1]),
      'front-2': service(true, 'http', ports.front, [1, 2]),
      'front-3': service(true, 'http', ports.front, [2, 3]),
      'back-1': service(false, 'http', ports.http[0]!, [0, 1, 2, 3, 4, 5]),
      'back-2': service(false, 'http2', ports.http[1]!, [0, 1, 2]),
      'back-3': { ...service(false, 'http', ports.front, [3, 4, 5]), kind: 'ServiceEntry' },
      [TCP]: service(true, 'tcp', ports.tcpFront, [0, 1]),
      'stock-1': service(false, 'tcp', ports.tcp[0]!, [0, 1, 2]),
    },
    routes: {
      [RETRIED]: routes('front-1', true, 'back-1'),
      'front-2': routes('front-2', false, 'back-1'),
      'front-3': routes(undefined, false, 'front-3'),
      'one.example.com': routes('one', true, 'back-1'),
      'two.example.com': routes('two', true, 'back-2'),
      [TCP]: routes('stock', false, 'stock-1'),
      'tcp.example.com': routes('tcp', true, 'stock-1'),
    },
    servers: {
      http: { object: 'public', portName: 'http', wide: false },
      https: { object: 'public', portName: 'https', wide: false },
      tcp: { object: 'public', portName: 'tcp', wide: true },
    },
    sidecar: 'none',
    egressListener: false,
    accessLog: false,
    registryOnly: false,
  };
}

/** Whether requests for this host are of a protocol that routes to such services. */
export function suits(host: string, { protocol }: Service): boolean {
  return isTcp(host) === (protocol === 'tcp');
}

export const isTcp = (host: string): boolean => host === TCP || host === 'tcp.example.com';

/** The back ends that a destination has; none if it is missing. */
export function backendsOf({ services }: World, { service, subset }: Destination): readonly number[] {
  const found = services[service];
  if (found === undefined) return [];
  if (subset === undefined) return found.endpoints;
  const version = found.rule?.subsets[subset];
  return version === undefined ? [] : found.endpoints.filter((each) => versionOf(each) === version);
}

export function destinationsOf(host: string, routes: Routes): readonly Destination[] {
  return routes.object === undefined ? [{ service: host }] : [...routes.destinations, ...routes.special];
}

/** Every route in use leads to a ready back end. */
export function isSound(world: World): boolean {
  return Object.entries(world.routes).every(([host, routes]) =>
    destinationsOf(host, routes).every(
      (to) => backendsOf(world, to).length > 0 && suits(host, world.services[to.service]!),
    ),
  );
}

/** Who may answer the requests of a flow. */
export function answerersOf(world: World, { routes }: Flow): ReadonlySet<number> {
  const to = destinationsOf(routes, world.routes[routes]!);
  return new Set(to.flatMap((destination) => backendsOf(world, destination)));
}

/** All ways in which the shop is used. */
export function flowsOf(world: World, ports: Ports): readonly Flow[] {
  const flows: Flow[] = [];
  const add = (
    routes: string,
    where: string,
    flow: Omit<Flow, 'id' | 'fresh' | 'routes' | 'path'>,
    path = '/',
  ): void => {
    for (const fresh of [false, true]) {
      // Established connections end with the listener's drain, whatever is changed: Envoy's TCP proxy cannot be told.
      if (flow.protocol === 'tcp' && !fresh) continue;
      const id = `${flow.protocol}${flow.tls ? ' over TLS' : ''} ${fresh ? 'new' : 'kept'} ${where} ${routes}${path}`;
      flows.push({ ...flow, id, fresh, routes, path });
    }
  };
  for (const [i, name] of Object.keys(world.routes).entries()) {
    const protocol = i % 2 === 0 ? 'http' : 'http2';
    const other = i % 2 === 0 ? 'http2' : 'http';
    if (name === TCP) {
      add(name, 'sidecar', { protocol: 'tcp', tls: false, port: ports.tcpFront, host: '' });
    } else if (name === 'tcp.example.com') {
      add(name, 'gateway', { protocol: 'tcp', tls: false, port: ports.gateway.tcp, host: '' });
    } else if (name in world.services) {
      const host = `${hostOf(name)}:${ports.front}`;
      add(name, 'sidecar', { protocol, tls: false, port: ports.front, host }, name === RETRIED ? '/fails' : '/');
      add(name, 'proxy', { protocol: other, tls: false, port: ports.httpProxy, host: hostOf(name) });
      if (world.egressListener) add(name, 'egress', { protocol, tls: false, port: ports.egress, host: hostOf(name) });
    } else {
      add(name, 'gateway', { protocol, tls: false, port: ports.gateway.http, host: name });
      if (name !== EXTRA_HOST)
        add(name, 'gateway', { protocol: other, tls: true, port: ports.gateway.https, host: name }, '/special');
      if (world.servers.extra !== undefined)
        add(name, 'extra port', { protocol, tls: false, port: ports.gateway.extra, host: name });
    }
  }
  return flows;
}
