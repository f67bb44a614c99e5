import type { Client } from '../../model/client.ts';
import { type OutboundChain, type ResolvedListener, listenerName } from '../../model/listener.ts';
import type { ListenerSettings, OutboundPolicy } from '../../model/mesh-config.ts';
import { parseCidr } from '../../model/cidr.ts';
import { duration } from '../duration.ts';
import { listenerFilters } from './filters.ts';
import type { FilterChain, FilterChainMatch, Listener, ListenerFilter } from '../gen/types.gen.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { configPath, istioMetadata } from '../istio-metadata.ts';
import { PLAINTEXT_HTTP, RAW_BUFFER, listenerAddress, realListener } from './listener.ts';
import {
  type OutboundContext,
  l4Filters,
  lookupFilters,
  unknownTrafficCluster,
  unknownTrafficFilters,
} from './outbound-filters.ts';

export interface OutboundListenerInput {
  readonly client: Pick<Client, 'traits'>;
  /** From the Sidecar, or else from the mesh. */
  readonly outboundPolicy: OutboundPolicy;
  /** Cluster that gets unknown traffic instead of its own destination; ALLOW_ANY only. */
  readonly egressProxy?: string | undefined;
  readonly settings: ListenerSettings;
}

export interface BuiltListener {
  readonly listener: Listener;
  /** Names of the clusters that the listener itself refers to. */
  readonly clusters: readonly string[];
}

/** The listener for one address and port. There is at least one chain. */
export function buildOutboundListener(resolved: ResolvedListener, input: OutboundListenerInput): BuiltListener {
  const context = contextOf(input);
  const { traits } = context;
  const name = listenerName(resolved);
  const built = resolved.chains.map((chain) => ({ chain, message: buildChain(chain, name, context) }));
  const fallback = built.find(({ chain }) => isMatchAll(chain));
  const specific = built.filter((one) => one !== fallback).map(({ message }) => message);
  const alone = fallback !== undefined && specific.length === 0;
  const [address, ...more] = resolved.bind.addresses;
  const listener: Listener = {
    name,
    address: listenerAddress(address, resolved.port),
    ...(more.length === 0
      ? {}
      : { additionalAddresses: more.map((extra) => ({ address: listenerAddress(extra, resolved.port) })) }),
    trafficDirection: 'OUTBOUND',
    continueOnListenerFiltersTimeout: true,
    ...(traits.outboundExactBalance ? { connectionBalanceConfig: { exactBalance: {} } } : {}),
    ...(resolved.bind.toPort ? realListener : { bindToPort: { value: false } }),
    ...inspectors(resolved.chains, context),
    filterChains: alone ? [fallback.message] : specific,
    ...(alone ? {} : { defaultFilterChain: fallback?.message ?? unknownTraffic(context) }),
  };
  return { listener, clusters: clustersOf(resolved.chains, fallback === undefined, context) };
}

export function contextOf({ client, outboundPolicy, egressProxy, settings }: OutboundListenerInput): OutboundContext {
  return { traits: client.traits, outboundPolicy, egressProxy, settings };
}

/** Protects against clients that never finish their TLS handshake. */
export const CONNECT_TIMEOUT = { seconds: 15 };

function buildChain(chain: OutboundChain, listener: string, context: OutboundContext): FilterChain {
  const match = isMatchAll(chain) ? {} : { filterChainMatch: matchOf(chain) };
  const common = { ...match, transportSocketConnectTimeout: CONNECT_TIMEOUT };
  if (chain.serves.kind === 'l4') {
    const { target, route } = chain.serves.chain;
    return {
      ...common,
      filters: l4Filters(target, context),
      ...(route === undefined
        ? {}
        : {
            metadata: istioMetadata({
              config: configPath(route.ref),
            }),
          }),
    };
  }
  const { routes, grpcWeb, dynamicHost } = chain.serves.claim;
  const { traits, settings } = context;
  const manager = httpConnectionManager({
    direction: 'outbound',
    traits,
    settings,
    statPrefix: `outbound_${listener}`,
    routes,
    grpcWeb,
    filters: { destination: lookupFilters(dynamicHost, context) },
  });
  return { ...common, filters: [manager] };
}

/** For connections that match none of the chains. */
function unknownTraffic(context: OutboundContext): FilterChain {
  return { name: 'PassthroughFilterChain', filterChainMatch: {}, filters: unknownTrafficFilters(context) };
}

function isMatchAll({ serverNames, subnets, plaintextHttp }: OutboundChain): boolean {
  return !plaintextHttp && subnets.length === 0 && (serverNames.length === 0 || serverNames.includes('*'));
}

function matchOf({ serverNames, subnets, plaintextHttp }: OutboundChain): FilterChainMatch {
  const ranges = [...subnets].sort().flatMap((subnet) => {
    const cidr = parseCidr(subnet);
    return cidr === undefined ? [] : [{ addressPrefix: cidr.address, prefixLen: { value: cidr.length } }];
  });
  return {
    ...(plaintextHttp ? { transportProtocol: RAW_BUFFER, applicationProtocols: PLAINTEXT_HTTP } : {}),
    ...(serverNames.length === 0 || serverNames.includes('*') ? {} : { serverNames: [...new Set(serverNames)].sort() }),
    ...(ranges.length === 0 ? {} : { prefixRanges: ranges }),
  };
}

/** Filters that detect what the chains match on. TLS comes first: encrypted bytes are not inspected for HTTP. */
function inspectors(
  chains: readonly OutboundChain[],
  { settings }: OutboundContext,
): Pick<Listener, 'listenerFilters' | 'listenerFiltersTimeout'> {
  const tls = chains.some(
    ({ serverNames, serves }) =>
      serverNames.length > 0 || (serves.kind === 'l4' && serves.chain.target.dynamicHost !== undefined),
  );
  const http = chains.some(({ plaintextHttp }) => plaintextHttp);
  const found: ListenerFilter[] = [];
  if (tls) found.push(listenerFilters.tlsInspector);
  if (http) found.push(listenerFilters.httpInspector);
  return {
    ...(found.length === 0 ? {} : { listenerFilters: found }),
    listenerFiltersTimeout: http ? duration(settings.protocolDetectionTimeout) : { seconds: 0 },
  };
}

function clustersOf(
  chains: readonly OutboundChain[],
  hasUnknownTraffic: boolean,
  context: OutboundContext,
): readonly string[] {
  const clusters = new Set<string>(hasUnknownTraffic ? [unknownTrafficCluster(context)] : []);
  for (const { serves } of chains)
    if (serves.kind === 'l4') for (const { name } of serves.chain.target.clusters) clusters.add(name);
  return [...clusters];
}
