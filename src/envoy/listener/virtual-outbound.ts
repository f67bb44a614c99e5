import { httpProxyPort } from '../../model/listener.ts';
import { loopbackAddresses } from '../../model/traits.ts';
import { listenerAccessLogs } from './access-log.ts';
import { blackHoleCluster } from '../../model/cluster-names.ts';
import type { FilterChain, Listener } from '../gen/types.gen.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { PLAINTEXT_HTTP, listenerAddress, realListener, redirectedAddresses } from './listener.ts';
import { catchAllVirtualHost } from '../route/virtual-host.ts';
import { routeConfigurationHeader } from '../route/configuration.ts';
import { duration } from '../duration.ts';
import { listenerFilters } from './filters.ts';
import {
  type OutboundContext,
  blackHoleFilter,
  lookupFilters,
  unknownTrafficCluster,
  unknownTrafficFilters,
} from './outbound-filters.ts';
import { type BuiltListener, CONNECT_TIMEOUT, type OutboundListenerInput, contextOf } from './outbound-listener.ts';

/**
 * The listener that receives redirected connections. It passes each one to the listener for its original destination,
 * and keeps those that have none. Absent if nothing is redirected.
 */
export function virtualOutbound(input: OutboundListenerInput): BuiltListener | undefined {
  const context = contextOf(input);
  const { traits, settings } = context;
  const port = settings.proxyListenPort;
  if (traits.interception === 'NONE' || port <= 0) return undefined;
  const logs = listenerAccessLogs(settings);
  const looksUp = context.outboundPolicy === 'ALLOW_ANY_DYNAMIC_DNS';
  const requests = looksUp ? unknownRequests(context) : undefined;
  const listener: Listener = {
    name: 'virtualOutbound',
    ...redirectedAddresses(traits, port),
    trafficDirection: 'OUTBOUND',
    useOriginalDst: { value: true },
    ...(traits.interception === 'TPROXY' ? { transparent: { value: true } } : {}),
    ...realListener,
    ...(logs.length === 0 ? {} : { accessLog: logs }),
    ...(looksUp
      ? {
          listenerFilters: [listenerFilters.httpInspector],
          listenerFiltersTimeout: duration(settings.protocolDetectionTimeout || longestDetectionMs),
          continueOnListenerFiltersTimeout: true,
        }
      : {}),
    filterChains: [
      {
        name: 'virtualOutbound-blackhole',
        filterChainMatch: { destinationPort: { value: port } },
        filters: [blackHoleFilter],
      },
      ...(requests === undefined ? [] : [requests.chain]),
      { name: 'virtualOutbound-catchall-tcp', filters: unknownTrafficFilters(context) },
    ],
  };
  const clusters = new Set([blackHoleCluster, unknownTrafficCluster(context), ...(requests?.clusters ?? [])]);
  return { listener, clusters: [...clusters] };
}

/**
 * Every redirected connection is inspected here, also those to services: one whose server speaks first waits this long.
 * Istio waits for 15 s, and then closes it.
 */
const longestDetectionMs = 100;

/** Requests in plaintext to ports without a listener, for hosts that nobody knows. */
function unknownRequests(context: OutboundContext): { chain: FilterChain; clusters: readonly string[] } {
  const { traits, settings, outboundPolicy, egressProxy } = context;
  const { virtualHost, clusters } = catchAllVirtualHost(outboundPolicy, egressProxy);
  const manager = httpConnectionManager({
    direction: 'outbound',
    traits,
    settings,
    statPrefix: 'outbound_virtualOutbound_allow_any_dynamic_dns',
    routes: { ...routeConfigurationHeader('allow_any_dynamic_dns', false), virtualHosts: [virtualHost] },
    filters: { destination: lookupFilters(undefined, context) },
  });
  const chain: FilterChain = {
    name: 'virtualOutbound-catchall-tcp-http',
    filterChainMatch: { applicationProtocols: PLAINTEXT_HTTP },
    filters: [manager],
  };
  return { chain, clusters };
}

/** The listener that clients use as their HTTP proxy, if the proxy or the mesh names a port for it. */
export function httpProxyListener(input: OutboundListenerInput): BuiltListener | undefined {
  const context = contextOf(input);
  const { traits, settings } = context;
  const port = httpProxyPort(traits, settings);
  if (port === 0) return undefined;
  const [address, ...more] = loopbackAddresses(traits);
  const name = `${address}_${port}`;
  const manager = httpConnectionManager({
    direction: 'outbound',
    traits,
    settings,
    statPrefix: `outbound_${name}`,
    routes: 'http_proxy',
    absoluteUrls: true,
    filters: { destination: lookupFilters(undefined, context) },
  });
  const listener: Listener = {
    name,
    address: listenerAddress(address, port),
    ...(more.length === 0
      ? {}
      : { additionalAddresses: more.map((another) => ({ address: listenerAddress(another, port) })) }),
    trafficDirection: 'OUTBOUND',
    continueOnListenerFiltersTimeout: true,
    ...(traits.outboundExactBalance ? { connectionBalanceConfig: { exactBalance: {} } } : {}),
    ...realListener,
    listenerFiltersTimeout: { seconds: 0 },
    filterChains: [{ filters: [manager], transportSocketConnectTimeout: CONNECT_TIMEOUT }],
  };
  return { listener, clusters: [] };
}
