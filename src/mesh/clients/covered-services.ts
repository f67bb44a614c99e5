import { joinKey, partsOfKey } from '../../api/keys.ts';
import type { Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { spreadHash } from '../../model/hash.ts';
import { hostsMatch, isSubsetOf, wildcardKey, wildcardsOf } from '../../model/host.ts';
import { type MeshService, isRouted } from '../../model/service.ts';
import { type EgressHost, type EgressListener, takesPort } from '../../model/sidecar.ts';
import { SHARDS, type Services } from '../objects/services.ts';

/** The services that a wildcard covers: which ports they have, for whom. */
export interface CoveredServices {
  /** By wildcard and audience: {@link audienceKey}. */
  readonly pieces: Index<CoveredPiece>;
  /** The services of a piece, by its key. */
  readonly members: Index<MeshService>;
  /** Hosts that services in several namespaces have: a client gets one of these services. By wildcard. */
  readonly contested: Index<string>;
  /** Namespaces whose clients see one of these services differently from everyone else. By wildcard. */
  readonly clients: Index<{ readonly suffix: string; readonly client: string }>;
}

/** Some of the services with one suffix, in one namespace and for one audience, whose host nobody else has. */
export interface CoveredPiece {
  /** `*.partner.example` */
  readonly suffix: string;
  readonly namespace: string;
  /** `*`, or the namespace that they are exported to. */
  readonly audience: string;
  readonly ports: readonly number[];
  /** Ports that are served as HTTP. */
  readonly routed: readonly number[];
}

const suffixOf = (host: string): string => wildcardKey(`*${host.slice(host.indexOf('.'))}`);

const audienceKey = (wildcard: string, audience: string): string => joinKey(wildcardKey(wildcard), audience);

function audiencesOf({ exportTo }: MeshService): readonly string[] {
  return exportTo.includes('*') ? ['*'] : exportTo.filter((audience) => audience !== '~');
}

export function declareCoveredServices(graph: Graph, services: Services): CoveredServices {
  const members = graph.index('services by suffix', services.services, (_, service) =>
    audiencesOf(service).map((audience) =>
      joinKey(suffixOf(service.host), service.namespace, audience, spreadHash(service.host) % SHARDS),
    ),
  );
  const pieces = graph.derive('ports by suffix', members, (key, found, read, emit: Emit<CoveredPiece>) => {
    const own = found.filter(({ value }) => read.group(services.byHost, value.host).length === 1);
    if (own.length === 0) return;
    const [suffix = '', namespace = '', audience = ''] = partsOfKey(key);
    const all = own.flatMap(({ value }) => value.ports);
    const numbers = (ports: typeof all) => [...new Set(ports.map((port) => port.number))].sort((a, b) => a - b);
    const routed = all.filter((port) => isRouted(port.protocol));
    emit(key, { suffix, namespace, audience, ports: numbers(all), routed: numbers(routed) });
  });
  const contested = graph.derive('contested hosts', services.byHost, (host, found, _, emit: Emit<string>) => {
    if (found.length > 1) emit(host, host);
  });
  const clientsOfHosts = graph.derive(
    'clients of hosts',
    services.byHost,
    (host, found, _, emit: Emit<{ readonly suffix: string; readonly client: string }>) => {
      const suffix = suffixOf(host);
      for (const client of divergentClients(found.map(({ value }) => value)))
        emit(joinKey(host, client), { suffix, client });
    },
  );
  const clients = graph.derive(
    'clients by suffix',
    graph.index('clients of hosts by suffix', clientsOfHosts, (_, { suffix, client }) => [joinKey(suffix, client)]),
    (key, [first], _, emit: Emit<{ readonly suffix: string; readonly client: string }>) => emit(key, first.value),
  );
  return {
    members,
    pieces: graph.index('ports under wildcards', pieces, (_, { suffix, audience }) =>
      wildcardsOf(suffix).map((wildcard) => audienceKey(wildcard, audience)),
    ),
    contested: graph.index('contested hosts under wildcards', contested, (_, host) => wildcardsOf(suffixOf(host))),
    clients: graph.index('clients under wildcards', clients, (_, { suffix }) => wildcardsOf(suffix)),
  };
}

/**
 * Namespaces whose clients may get another service for a host than everyone else: those that one of its services is
 * exported to by name and, if there are several, those of the services, which come first for clients in their own
 * namespace.
 */
export function divergentClients(services: readonly MeshService[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { exportTo, namespace } of services) {
    if (!exportTo.includes('*')) for (const client of exportTo) if (client !== '~') found.add(client);
    if (services.length > 1) found.add(namespace);
  }
  return found;
}

/** What a wildcard covers, for some clients: ports of services that are all theirs, and hosts to look up one by one. */
export interface Covered {
  readonly ports: ReadonlySet<number>;
  readonly hosts: readonly string[];
}

/**
 * Hosts are looked up one by one only if several services have them, or if the egress listener, or a wildcard that ends
 * within a label, tells services with the same suffix apart.
 *
 * @param client namespace of the clients; empty: what everyone sees.
 */
export function coveredBy(
  wildcard: string,
  { client, listener }: { readonly client: string; readonly listener: EgressListener | undefined },
  which: 'ports' | 'routed',
  read: Reader,
  { pieces, members, contested }: CoveredServices,
): Covered {
  const ports = new Set<number>();
  const hosts = read.group(contested, wildcardKey(wildcard)).map(({ value }) => value);
  for (const audience of client === '' ? ['*'] : ['*', client])
    for (const { key, value: piece } of read.group(pieces, audienceKey(wildcard, audience))) {
      const part = partOf(piece, wildcard, client, listener);
      if (part === 'some') hosts.push(...read.group(members, key).map(({ value }) => value.host));
      if (part === 'all')
        for (const port of piece[which]) if (listener === undefined || takesPort(listener, port)) ports.add(port);
    }
  return { ports, hosts: hosts.filter((host) => isSubsetOf(host, wildcard)) };
}

/** How many of the services of a piece a wildcard covers and an egress listener imports. */
function partOf(
  { suffix, namespace }: CoveredPiece,
  wildcard: string,
  client: string,
  listener: EgressListener | undefined,
): 'none' | 'some' | 'all' {
  const covered = isSubsetOf(suffix, wildcard);
  if (listener === undefined) return covered ? 'all' : 'some';
  const named = listener.hosts.filter((entry) => {
    const target = entry.namespace === '.' ? client : entry.namespace;
    return (target === '*' || target === namespace) && hostsMatch(entry.host, suffix);
  });
  const includes = named.filter(({ excluded }) => !excluded);
  if (includes.length === 0) return 'none';
  const whole = (entry: EgressHost): boolean => isSubsetOf(suffix, entry.host);
  if (named.some((entry) => entry.excluded && whole(entry))) return 'none';
  return covered && includes.some(whole) && includes.length === named.length ? 'all' : 'some';
}
