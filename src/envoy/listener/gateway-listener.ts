import { type SecretProvider, isProvided, serverResources, socketProvider } from '../../model/credential.ts';
import type { GatewayChain, SettledGatewayListener, SniChain } from '../../model/gateway.ts';
import type { ListenerSettings } from '../../model/mesh-config.ts';
import type { Traits } from '../../model/traits.ts';
import { listenerAccessLogs } from './access-log.ts';
import { downstreamTls } from '../tls/downstream.ts';
import { listenerFilters } from './filters.ts';
import type { Filter, FilterChain } from '../gen/types.gen.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { MESH } from './inbound-match.ts';
import { listenerAddress, realListener } from './listener.ts';
import type { SecurityFilters } from '../security/authorization.ts';
import { type FilterContext, l4Filters } from './outbound-filters.ts';
import { type BuiltListener, CONNECT_TIMEOUT } from './outbound-listener.ts';

export interface GatewayListenerInput {
  /** Has at least one chain, or is to have others. */
  readonly listener: SettledGatewayListener;
  readonly traits: Traits;
  readonly settings: ListenerSettings;
  readonly security: SecurityFilters;
  /** Absent: all secrets are the control plane's. */
  readonly secretProvider?: SecretProvider | undefined;
}

/** One listener of a router, without the chains of servers with AUTO_PASSTHROUGH: see {@link sniFilterChain}. */
export function buildGatewayListener(input: GatewayListenerInput): BuiltListener {
  const { traits, settings } = input;
  const { name, address, port, chains, forwardsFor } = input.listener;
  const logs = listenerAccessLogs(settings);
  const looksIntoTls =
    forwardsFor.length > 0 || chains.some(({ serverNames, tls }) => serverNames.length > 0 || tls !== undefined);
  const inspectors = [
    // The PROXY header comes before TLS.
    ...(settings.gatewayTopology.proxyProtocol ? [listenerFilters.proxyProtocol] : []),
    ...(looksIntoTls ? [listenerFilters.tlsInspector] : []),
  ];
  const clusters = chains.flatMap(({ serves }) =>
    serves.kind === 'l4' ? serves.target.clusters.map((cluster) => cluster.name) : [],
  );
  return {
    listener: {
      name,
      address: listenerAddress(address, port),
      trafficDirection: 'OUTBOUND',
      ...realListener,
      ...(traits.outboundExactBalance ? { connectionBalanceConfig: { exactBalance: {} } } : {}),
      ...(inspectors.length === 0 ? {} : { listenerFilters: inspectors }),
      filterChains: chains.map((chain) => filterChain(chain, input)),
      ...(logs.length === 0 ? {} : { accessLog: logs }),
    },
    clusters: [...new Set([...clusters, ...input.security.clusters, ...providersOf(input)])].sort(),
  };
}

/**
 * Connections are forwarded as they are. Only those that offer a protocol of the mesh are: what they are led to takes
 * them for mutual TLS.
 */
export function sniFilterChain({ serverName, target }: SniChain, context: FilterContext): FilterChain {
  return {
    filterChainMatch: { serverNames: [serverName], applicationProtocols: MESH },
    filters: l4Filters(target, context),
    transportSocketConnectTimeout: CONNECT_TIMEOUT,
  };
}

/** Secrets come through this cluster. That of the provider in the Pod is always there. */
function providersOf({ listener, secretProvider }: GatewayListenerInput): readonly string[] {
  const asks = ({ tls }: GatewayChain): boolean => {
    const { pairs, roots } = tls === undefined ? { pairs: [], roots: '' } : serverResources(tls);
    return [...pairs, roots].some(isProvided);
  };
  if (secretProvider === undefined || secretProvider === socketProvider) return [];
  return listener.chains.some(asks) ? [secretProvider.cluster] : [];
}

function filterChain(chain: GatewayChain, input: GatewayListenerInput): FilterChain {
  const { serverNames, tls } = chain;
  const any = serverNames.length === 0 || serverNames.includes('*');
  return {
    ...(any ? {} : { filterChainMatch: { serverNames: [...serverNames].sort() } }),
    filters: filtersOf(chain, input),
    ...(tls && { transportSocket: downstreamTls({ ...input, tls }) }),
    transportSocketConnectTimeout: CONNECT_TIMEOUT,
  };
}

function filtersOf({ serves }: GatewayChain, input: GatewayListenerInput): readonly Filter[] {
  const { listener, traits, settings, security } = input;
  if (serves.kind === 'l4') return [...security.network, ...l4Filters(serves.target, { traits, settings })];
  const { routes, statName, grpcWeb } = serves;
  return [
    httpConnectionManager({
      direction: 'gateway',
      traits,
      settings,
      statPrefix: `outbound_${listener.name}`,
      ...(statName === '' ? {} : { statName }),
      routes,
      grpcWeb,
      filters: security.http,
    }),
  ];
}
