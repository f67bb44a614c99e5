import type { AuthorizationStep } from '../../model/authorization.ts';
import type { FilterChain, HttpFilter, Listener } from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { socketAddress } from '../encode/wrappers.ts';
import { authorizationFilters } from '../security/authorization.ts';
import { grpcDownstreamTls } from '../tls/grpc.ts';
import { httpFilters, networkFilter } from './filters.ts';

export interface GrpcServerInput {
  readonly port: number;
  /** Otherwise plaintext: a gRPC server does not tell the two apart. */
  readonly isMutualTls: boolean;
  /** Each is enforced. */
  readonly authorization: readonly AuthorizationStep[];
}

/** What one port of a gRPC server accepts, and from whom. */
export function grpcServerChain({ port, isMutualTls, authorization }: GrpcServerInput): FilterChain {
  const name = isMutualTls ? 'inbound-mtls' : 'inbound-plaintext';
  const manager = any(types.httpConnectionManager, {
    statPrefix: `inbound_${port}`,
    routeConfig: {
      name: `inbound|${port}||`,
      virtualHosts: [{ name, domains: ['*'], routes: [{ match: { prefix: '/' }, nonForwardingAction: {} }] }],
    },
    httpFilters: [...authorization.flatMap(filtersOf), httpFilters.router],
  });
  return {
    name,
    filters: [networkFilter('http_connection_manager', manager)],
    ...(isMutualTls && { transportSocket: grpcDownstreamTls() }),
  };
}

/** gRPC accepts a name only once. */
function filtersOf(step: AuthorizationStep, index: number): readonly HttpFilter[] {
  return authorizationFilters([step], { agent: false }).map((filter) => ({
    ...filter,
    name: `${filter.name}.${step.action}.${index}`,
  }));
}

/** As the server asks for it, by the address that it listens on: what the template in its bootstrap makes of that. */
export function grpcServerListener(address: string, port: number, chain: FilterChain): Listener {
  const host = address.includes(':') ? `[${address}]` : address;
  return {
    name: `xds.istio.io/grpc/lds/inbound/${host}:${port}`,
    address: { socketAddress: socketAddress(address, port) },
    filterChains: [chain],
  };
}
