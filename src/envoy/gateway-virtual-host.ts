import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { Client, DestinationLookup } from '../model/client.ts';
import type { RouteSettings } from '../model/mesh-config.ts';
import type { VirtualServiceModel } from '../model/virtual-service.ts';
import type { Route, VirtualHost } from './gen/types.gen.ts';
import type { Protos } from './proto.ts';
import { isCatchAll } from './route-match.ts';
import { translateHttpRoutes } from './route.ts';
import { bracketed } from './virtual-host-domains.ts';

/** A VirtualService on the servers of a Gateway. */
export interface GatewayRoutes {
  readonly model: VirtualServiceModel;
  /** `namespace/name` */
  readonly gateway: string;
  /** Of the server, not of the listener: what matches compare with. */
  readonly port: number;
  /** Requests reach the server within TLS. */
  readonly secure: boolean;
}

export interface GatewayVirtualHostInput {
  readonly protos: Protos;
  readonly client: Client;
  readonly lookup: DestinationLookup;
  readonly settings: RouteSettings;
  /** Of the first server. */
  readonly port: number;
  /** Hosts that have the same routes, the most specific one first. At least one. */
  readonly hosts: readonly string[];
  /** In order of precedence. None: a host that only redirects to https. */
  readonly routes: readonly GatewayRoutes[];
  readonly httpsRedirect: boolean;
}

export interface BuiltGatewayVirtualHost {
  readonly virtualHost: VirtualHost;
  /** Names of the clusters that its routes name. Sorted, distinct. */
  readonly clusters: readonly string[];
  readonly problems: readonly Problem[];
  readonly origins: readonly ObjectRef[];
}

/** Routes of several VirtualServices follow one another; those that take every request come last. */
export function buildGatewayVirtualHost(input: GatewayVirtualHostInput): BuiltGatewayVirtualHost {
  const { protos, client, lookup, settings, hosts, port } = input;
  const translated = input.routes.map(({ model, gateway, port: listenerPort, secure }) =>
    translateHttpRoutes(model.http, { protos, client, gateway, listenerPort, model, lookup, settings, tls: secure }),
  );
  return {
    virtualHost: {
      name: `${bracketed(hosts[0] ?? '')}:${port}`,
      domains: hosts.map(bracketed),
      routes: catchAllsLast(translated.flatMap(({ routes }) => routes)),
      includeRequestAttemptCount: true,
      ...(input.httpsRedirect ? { requireTls: 'ALL' } : {}),
    },
    clusters: [...new Set(translated.flatMap(({ clusters }) => clusters))].sort(),
    problems: translated.flatMap(({ problems }) => problems),
    origins: [...new Set(translated.flatMap(({ origins }) => origins))],
  };
}

function catchAllsLast(routes: readonly Route[]): readonly Route[] {
  const takesAll = (route: Route): boolean => isCatchAll(route.match ?? {});
  return [...routes.filter((route) => !takesAll(route)), ...routes.filter(takesAll)];
}

/** The virtual host of a table without any: every request is answered with 404. */
export function blackHoleVirtualHost(port: number): VirtualHost {
  return { name: `blackhole:${port}`, domains: ['*'] };
}
