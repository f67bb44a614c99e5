import { isDeepStrictEqual } from 'node:util';
import { meaningOf, MOST_POLICIES } from './objects.ts';
import {
  BACKENDS,
  backendsOf,
  type Destination,
  EXTRA_HOST,
  isSound,
  type Ports,
  type Routes,
  type Rule,
  type Service,
  suits,
  VERSIONS,
  type World,
} from './world.ts';

export type Random = () => number;

/** A step from one sound world to the next: what changed, in words, and the worlds on the way if it is taken slowly. */
export interface Change {
  readonly what: string;
  readonly world: World;
  /** What a careful owner applies one after the other: first what is new, then the routes, then the removals. */
  readonly steps: readonly World[];
}

/** The next world: one to four things change at the same time, and every route that led to one of them is mended. */
export function changeOf(world: World, ports: Ports, random: Random): Change {
  const pick = picker(random);
  for (;;) {
    const next = structuredClone(world);
    const what = Array.from({ length: 1 + pick.below(4) }, () => {
      const [name, kind] = pick.of(Object.entries(KINDS));
      const detail = kind(next, pick, ports);
      return detail === undefined ? undefined : `${name} ${detail}`.trim();
    }).filter((each) => each !== undefined);
    const mended = mend(next, world, pick);
    keepValid(next, world);
    if (what.length === 0 || !isSound(next)) continue;
    return { what: [...what, ...mended].join(', '), world: next, steps: slowly(world, next) };
  }
}

interface Pick {
  below(most: number): number;
  of<T>(list: readonly T[]): T;
  chance(part: number): boolean;
}

function picker(random: Random): Pick {
  const below = (most: number): number => Math.floor(random() * most);
  return { below, of: (list) => list[below(list.length)]!, chance: (part) => random() < part };
}

/** Changes one thing, and says which; undefined: there is nothing to change. */
type Kind = (world: World, pick: Pick, ports: Ports) => string | undefined;

const KINDS: Readonly<Record<string, Kind>> = {
  'move endpoints': ({ services }, pick) => {
    const [name, service] = pick.of(Object.entries(services));
    service.endpoints = someBackends(pick);
    return `of ${name} to ${service.endpoints.join('+')}`;
  },
  'dead endpoint': ({ services }, pick) => {
    const [name, service] = pick.of(Object.entries(services));
    service.hasDeadEndpoint = !service.hasDeadEndpoint;
    return `of ${name}`;
  },
  'add subset': ({ services }, pick) => {
    const [name, service] = pick.of(Object.entries(services));
    const rule = (service.rule ??= { subsets: {}, policy: 0 });
    const subset = pick.of(SUBSETS.filter((each) => !(each in rule.subsets)).concat('s1'));
    rule.subsets[subset] = pick.of(VERSIONS);
    return `${subset} of ${name}`;
  },
  'remove subset': ({ services }, pick) => {
    const name = pick.of(Object.keys(services).filter((each) => Object.keys(subsetsOf(services[each]!)).length > 0));
    if (name === undefined) return undefined;
    const subset = pick.of(Object.keys(subsetsOf(services[name]!)));
    delete services[name]!.rule!.subsets[subset];
    return `${subset} of ${name}`;
  },
  'create or delete rule': ({ services }, pick) => {
    const [name, service] = pick.of(Object.entries(services));
    if (service.rule !== undefined) delete service.rule;
    else service.rule = newRule(pick);
    return `of ${name}`;
  },
  'change policy': ({ services }, pick) => {
    const [name, service] = pick.of(Object.entries(services));
    (service.rule ??= newRule(pick)).policy = pick.below(MOST_POLICIES);
    return `of ${name}`;
  },
  'change port': ({ services }, pick, ports) => {
    const free = Object.entries(services).filter(([, { called }]) => !called);
    if (free.length === 0) return undefined;
    const [name, service] = pick.of(free);
    service.port = pick.of(service.protocol === 'tcp' ? ports.tcp : [...ports.http, ports.front]);
    return `of ${name}`;
  },
  'change target port': ({ services }, pick, ports) => {
    const [name, service] = pick.of(Object.entries(services));
    service.target = pick.below(ports.targets[service.protocol].length);
    return `of ${name}`;
  },
  'rename port': ({ services }, pick) => {
    const [name, service] = pick.of(Object.entries(services));
    service.portName = `${service.protocol}-${pick.below(3)}`;
    return `of ${name}`;
  },
  'create or delete service': ({ services }, pick, ports) => {
    const name = `back-${1 + pick.below(6)}`;
    if (name in services) delete services[name];
    else services[name] = newService(pick, pick.of(['http', 'http2']), pick.of([...ports.http, ports.front]));
    return name;
  },
  // Former connections of the gateway go on with the former table while they drain.
  'replace what a renamed server leads to': ({ services, routes, servers }, pick, ports) => {
    const used = Object.entries(routes).flatMap(([host, { destinations }]) =>
      host.endsWith('.example.com') ? destinations.map(({ service }) => service) : [],
    );
    const former = used.filter((name) => name.startsWith('back-') && name in services);
    const free = [1, 2, 3, 4, 5, 6].map((i) => `back-${i}`).filter((name) => !(name in services));
    if (former.length === 0 || free.length === 0 || servers.https === undefined) return undefined;
    const [gone, name] = [pick.of(former), pick.of(free)];
    delete services[gone];
    services[name] = newService(pick, pick.of(['http', 'http2']), pick.of([...ports.http, ports.front]));
    servers.https.portName = `https-${pick.below(100)}`;
    return `from ${gone} to ${name}`;
  },
  'create or delete TCP service': ({ services }, pick, ports) => {
    const name = `stock-${1 + pick.below(3)}`;
    if (name in services) delete services[name];
    else services[name] = newService(pick, 'tcp', pick.of(ports.tcp));
    return name;
  },
  'make it the other kind of service': ({ services }, pick) => {
    const [name, service] = pick.of(Object.entries(services));
    service.kind = service.kind === 'Service' ? 'ServiceEntry' : 'Service';
    return name;
  },
  reroute: (world, pick) => {
    const [host, routes] = pick.of(Object.entries(world.routes));
    const ready = readyFor(world, host);
    routes.destinations = Array.from({ length: 1 + pick.below(3) }, () => pick.of(ready));
    if (pick.chance(0.3)) routes.special = pick.chance(0.5) ? [] : [pick.of(ready)];
    return host;
  },
  'rename route': ({ routes }, pick) => {
    const [host, each] = pick.of(Object.entries(routes));
    each.routeName = `route-${pick.below(100)}`;
    return `of ${host}`;
  },
  'rename VirtualService': ({ routes }, pick) => {
    const [host, each] = pick.of(Object.entries(routes));
    if (each.object === undefined) return undefined;
    each.object = `${host.split('.')[0]}-${pick.below(100)}`;
    return `of ${host}`;
  },
  'create or delete VirtualService': ({ routes }, pick) => {
    const [host, each] = pick.of(Object.entries(routes).filter(([, { required }]) => !required));
    each.object = each.object === undefined ? `${host}-${pick.below(100)}` : undefined;
    return `of ${host}`;
  },
  'make VirtualService valid or invalid': ({ routes }, pick) => {
    const [host, each] = pick.of(Object.entries(routes).filter(([, { required }]) => required));
    each.invalid = !each.invalid;
    return `of ${host}`;
  },
  'rename Gateway': ({ servers }, pick) => {
    const server = pick.of(Object.values(servers));
    server.object = pick.of(['public', 'second', `public-${pick.below(100)}`]);
    return `to ${server.object}`;
  },
  'rename port of Gateway': ({ servers }, pick) => {
    const [name, server] = pick.of(Object.entries(servers));
    server.portName = `${name}-${pick.below(100)}`;
    return name;
  },
  'change hosts of Gateway': ({ servers }, pick) => {
    const [name, server] = pick.of(Object.entries(servers));
    server.wide = !server.wide;
    return name;
  },
  'open or close port of Gateway': ({ servers }, pick) => {
    if (servers.extra !== undefined) delete servers.extra;
    else servers.extra = { object: pick.of(['public', 'extra']), portName: 'extra', wide: pick.chance(0.5) };
    return servers.extra === undefined ? 'closed' : 'opened';
  },
  'add or remove host of Gateway': (world, pick) => {
    const { routes } = world;
    if (EXTRA_HOST in routes) delete routes[EXTRA_HOST];
    else routes[EXTRA_HOST] = newRoutes('extra', pick.of(readyFor(world, EXTRA_HOST)));
    return '';
  },
  'change Sidecar': (world, pick) => {
    world.sidecar = pick.of(['none', 'everything', 'namespace', 'used']);
    return `to ${world.sidecar}`;
  },
  'open or close listener of Sidecar': (world) => {
    world.egressListener = !world.egressListener;
    return '';
  },
  'change access log': (world) => {
    world.accessLog = !world.accessLog;
    return '';
  },
  'change what unknown hosts get': (world) => {
    world.registryOnly = !world.registryOnly;
    return '';
  },
};

const SUBSETS = ['s1', 's2', 's3', 's4', 's5'];

function subsetsOf({ rule }: Service): Record<string, string> {
  return rule?.subsets ?? {};
}

function someBackends(pick: Pick): number[] {
  const all = Array.from({ length: BACKENDS }, (_, i) => i);
  const some = all.filter(() => pick.chance(0.5));
  return some.length > 0 ? some : [pick.below(BACKENDS)];
}

function newRule(pick: Pick): Rule {
  const subsets = SUBSETS.filter(() => pick.chance(0.4)).map((subset) => [subset, pick.of(VERSIONS)]);
  return { policy: pick.below(MOST_POLICIES), subsets: Object.fromEntries(subsets) as Record<string, string> };
}

function newService(pick: Pick, protocol: Service['protocol'], port: number): Service {
  return {
    called: false,
    protocol,
    port,
    kind: pick.of(['Service', 'ServiceEntry']),
    portName: protocol,
    target: 0,
    endpoints: someBackends(pick),
    hasDeadEndpoint: false,
    ...(pick.chance(0.5) && { rule: newRule(pick) }),
  };
}

function newRoutes(object: string, to: Destination): Routes {
  return { object, required: true, routeName: 'first', destinations: [to], special: [], invalid: false };
}

/** Where requests for this host may go. */
function readyFor(world: World, host: string): readonly Destination[] {
  const all = Object.entries(world.services).filter(([, service]) => suits(host, service));
  return all
    .flatMap(([service, { rule }]): Destination[] => [
      { service },
      ...Object.keys(rule?.subsets ?? {}).map((subset) => ({ service, subset })),
    ])
    .filter((to) => backendsOf(world, to).length > 0);
}

/**
 * Whatever is routed to something that is no longer ready goes elsewhere, and to what is new much goes at once. Says
 * what.
 */
function mend(world: World, former: World, pick: Pick): string[] {
  const mended: string[] = [];
  const choose = (host: string): Destination => {
    const all = readyFor(world, host);
    const fresh = all.filter((to) => backendsOf(former, to).length === 0);
    return pick.of(fresh.length > 0 && pick.chance(0.7) ? fresh : all);
  };
  for (const [host, routes] of Object.entries(world.routes)) {
    const mendOne = (to: Destination): Destination => {
      const found = world.services[to.service];
      const isReady = found !== undefined && suits(host, found) && backendsOf(world, to).length > 0;
      if (isReady && !pick.chance(0.1)) return to;
      mended.push(`send ${host} elsewhere`);
      return choose(host);
    };
    routes.destinations = routes.destinations.map(mendOne);
    routes.special = routes.special.map(mendOne);
  }
  return mended;
}

/** What is in force of an invalid object is what it said before: whoever changes that makes it valid. */
function keepValid(world: World, former: World): void {
  for (const [host, routes] of Object.entries(world.routes)) {
    if (!isDeepStrictEqual(meaningOf(world, host), meaningOf(former, host))) routes.invalid = false;
  }
}

/** The same change in several commits; one step if there is no way in which each of them is sound. */
function slowly(from: World, to: World): readonly World[] {
  const { services } = structuredClone(to);
  for (const [name, former] of Object.entries(from.services)) {
    const present = services[name];
    if (present === undefined) services[name] = structuredClone(former);
    else {
      if (shapeOf(present) !== shapeOf(former)) return [to];
      present.endpoints = [...new Set([...present.endpoints, ...former.endpoints])].sort();
      if (former.rule !== undefined) {
        present.rule ??= { policy: former.rule.policy, subsets: {} };
        Object.assign(present.rule.subsets, { ...former.rule.subsets, ...present.rule.subsets });
      }
    }
  }
  const added = { ...structuredClone(from), services };
  const routed = { ...structuredClone(to), services };
  return isSound(added) && isSound(routed) ? [added, routed, to] : [to];
}

function shapeOf({ kind, port, portName, target }: Service): string {
  return JSON.stringify([kind, port, portName, target]);
}
