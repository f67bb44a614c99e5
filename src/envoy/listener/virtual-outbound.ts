import { httpProxyPort } from '../../model/listener.ts';
import { loopbackAddresses } from '../../model/traits.ts';
import { listenerAccessLogs } from './access-log.ts';
import { blackHoleCluster } from '../../model/cluster-names.ts';
import type { Listener } from '../gen/types.gen.ts';
import { httpConnectionManager } from './http-connection-manager.ts';
import { listenerAddress, realListener, redirectedAddresses } from './listener.ts';
import { blackHoleFilter, unknownTrafficCluster, unknownTrafficFilters } from './outbound-filters.ts';
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
  const listener: Listener = {
    name: 'virtualOutbound',
    ...redirectedAddresses(traits, port),
    trafficDirection: 'OUTBOUND',
    useOriginalDst: { value: true },
    ...(traits.interception === 'TPROXY' ? { transparent: { value: true } } : {}),
    ...realListener,
    ...(logs.length === 0 ? {} : { accessLog: logs }),
    filterChains: [
      {
        name: 'virtualOutbound-blackhole',
        filterChainMatch: { destinationPort: { value: port } },
        filters: [blackHoleFilter],
      },
      { name: 'virtualOutbound-catchall-tcp', filters: unknownTrafficFilters(context) },
    ],
  };
  const clusters = [...new Set([blackHoleCluster, unknownTrafficCluster(context)])];
  return { listener, clusters };
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
