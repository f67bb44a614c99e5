import type { L4Target } from '../../model/listener.ts';
import type { ListenerSettings, OutboundPolicy } from '../../model/mesh-config.ts';
import type { Traits } from '../../model/traits.ts';
import { accessLogs } from './access-log.ts';
import { duration } from '../duration.ts';
import { dnsCacheOf, unknownHostsCache } from '../dns-cache.ts';
import { networkFilter } from './filters.ts';
import { blackHoleCluster, passthroughCluster } from '../../model/cluster-names.ts';
import type { DnsCacheConfig, Filter, HttpFilter, TcpProxy } from '../gen/types.gen.ts';
import { any, constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

/** What every outbound listener of a proxy depends on. */
export interface OutboundContext extends FilterContext {
  /** From the Sidecar, or else from the mesh. */
  readonly outboundPolicy: OutboundPolicy;
  /** Cluster that gets unknown traffic instead of its own destination; ALLOW_ANY only. */
  readonly egressProxy: string | undefined;
}

export interface FilterContext {
  readonly traits: Traits;
  readonly settings: ListenerSettings;
}

/** The network filters for connections to a service. */
export function l4Filters(target: L4Target, context: FilterContext): Filter[] {
  const { statPrefix, dynamicHost } = target;
  const found: Filter[] = [];
  if (dynamicHost !== undefined)
    found.push({
      name: 'envoy.extensions.filters.network.sni_dynamic_forward_proxy',
      typedConfig: any('envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig', {
        dnsCacheConfig: dnsCacheOf(dynamicHost, context.traits),
        ...(target.dynamicPort === undefined ? {} : { portValue: target.dynamicPort }),
      }),
    });
  if (target.protocol === 'Mongo') found.push(networkFilter('mongo_proxy', any(types.mongoProxy, { statPrefix })));
  return [...found, tcpProxy(tcpTarget(target), target.idleTimeout, context)];
}

function tcpTarget(target: L4Target): TcpProxy {
  const [first] = target.clusters;
  return {
    statPrefix: target.statPrefix,
    ...(target.weighted
      ? { weightedClusters: { clusters: target.clusters } }
      : { cluster: first?.name ?? blackHoleCluster }),
    ...(target.maxConnectionDuration === undefined
      ? {}
      : { maxDownstreamConnectionDuration: duration(target.maxConnectionDuration) }),
    ...(target.hashSourceIp ? { hashPolicy: [{ sourceIp: {} }] } : {}),
    ...(target.tunnel === undefined
      ? {}
      : {
          tunnelingConfig: {
            hostname: target.tunnel.hostname,
            ...(target.tunnel.usePost ? { usePost: true } : {}),
          },
        }),
  };
}

/** The `tcp_proxy` filter. The rule's idle timeout takes precedence over the proxy's. */
export function tcpProxy(
  message: TcpProxy,
  idleTimeout: number | undefined,
  { traits, settings }: FilterContext,
): Filter {
  const logs = accessLogs(settings);
  const idle = idleTimeout ?? (traits.idleTimeout === 0 ? undefined : traits.idleTimeout);
  return networkFilter(
    'tcp_proxy',
    any(types.tcpProxy, {
      ...message,
      ...(idle === undefined ? {} : { idleTimeout: duration(idle) }),
      ...(logs.length === 0 ? {} : { accessLog: logs }),
    }),
  );
}

/** Closes connections to the listener's own port, which would loop forever. Nothing is logged. */
export const blackHoleFilter: Filter = networkFilter(
  'tcp_proxy',
  constantAny(types.tcpProxy, { cluster: blackHoleCluster, statPrefix: blackHoleCluster }),
);

export function unknownTrafficCluster({ outboundPolicy, egressProxy }: OutboundContext): string {
  return outboundPolicy === 'REGISTRY_ONLY' ? blackHoleCluster : (egressProxy ?? passthroughCluster);
}

export function unknownTrafficFilters(context: OutboundContext): Filter[] {
  const cluster = unknownTrafficCluster(context);
  return [tcpProxy({ cluster, statPrefix: cluster }, undefined, context)];
}

/**
 * Look up the host of each request to a DYNAMIC_DNS ServiceEntry, and to hosts that nobody knows if the policy says so:
 * every table leads there.
 */
export function lookupFilters(dynamicHost: string | undefined, context: OutboundContext): readonly HttpFilter[] {
  const { traits, outboundPolicy } = context;
  return [
    ...(dynamicHost === undefined ? [] : [lookupFilter(dnsCacheOf(dynamicHost, traits))]),
    ...(outboundPolicy === 'ALLOW_ANY_DYNAMIC_DNS' ? [lookupFilter(unknownHostsCache(traits))] : []),
  ];
}

function lookupFilter(dnsCacheConfig: DnsCacheConfig): HttpFilter {
  const type = 'envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig';
  return { name: 'envoy.filters.http.dynamic_forward_proxy', typedConfig: any(type, { dnsCacheConfig }) };
}
