import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { VirtualHost } from './gen/types.gen.ts';
import { type RoutePiece, joinPieces, reachedPieces } from './route-pieces.ts';
import { bracketed } from './virtual-host-domains.ts';

export interface GatewayVirtualHostInput {
  /** Of the first server. */
  readonly port: number;
  /** Hosts that have the same routes, the most specific one first. At least one. */
  readonly hosts: readonly string[];
  /** Of each VirtualService, in order of precedence. None: a host that only redirects to https. */
  readonly routes: readonly (readonly RoutePiece[])[];
  readonly httpsRedirect: boolean;
}

export interface BuiltGatewayVirtualHost {
  readonly virtualHost: VirtualHost;
  /** Encoded routes, which it has in place of its own. */
  readonly routes: readonly Uint8Array[];
  /** Names of the clusters that its routes name. Sorted, distinct. */
  readonly clusters: readonly string[];
  readonly problems: readonly Problem[];
  readonly origins: readonly ObjectRef[];
}

/** Routes of several VirtualServices follow one another; those that take every request come last. */
export function buildGatewayVirtualHost(input: GatewayVirtualHostInput): BuiltGatewayVirtualHost {
  const { hosts, port } = input;
  const pieces = input.routes.flatMap(reachedPieces);
  const routes = [...pieces.map((piece) => piece.routes), ...pieces.map(({ catchAll }) => catchAll)];
  return {
    virtualHost: {
      name: `${bracketed(hosts[0] ?? '')}:${port}`,
      domains: hosts.map(bracketed),
      includeRequestAttemptCount: true,
      ...(input.httpsRedirect ? { requireTls: 'ALL' } : {}),
    },
    routes: routes.filter(({ length }) => length > 0),
    ...joinPieces(pieces),
  };
}

/** The virtual host of a table without any: every request is answered with 404. */
export function blackHoleVirtualHost(port: number): VirtualHost {
  return { name: `blackhole:${port}`, domains: ['*'] };
}
