import type { LogFormat } from '../../config/settings.ts';
import { type Node, nodeOf } from '../node.ts';
import type { AgentSettings } from '../settings/settings.ts';
import { agentClusters } from './clusters.ts';
import { collectorParts } from './collectors.ts';
import { agentListeners } from './listeners.ts';
import { runtimeOf } from './runtime.ts';
import { statsConfig, statsFlushInterval } from './stats.ts';

/** `envoy.config.bootstrap.v3.Bootstrap` as protobuf JSON. */
export type Bootstrap = { readonly node: Node } & Readonly<Record<string, unknown>>;

/** The file that Envoy starts with. Everything else comes over xDS. */
export function bootstrapOf(settings: AgentSettings, format: LogFormat): Bootstrap {
  const { proxy, env } = settings;
  const isV6 = isV6Only(settings);
  const node = nodeOf(settings);
  const { clusters, ...reports } = collectorParts(proxy.collectors, node.cluster, isV6);
  return {
    node,
    ...reports,
    applicationLogConfig: { logFormat: logFormats[format] },
    layeredRuntime: {
      layers: [
        { name: 'deprecation', staticLayer: runtimeOf(proxy.runtimeValues) },
        // What a person changes at the admin interface.
        { name: 'admin', adminLayer: {} },
      ],
    },
    bootstrapExtensions: [
      {
        name: 'envoy.bootstrap.internal_listener',
        typedConfig: {
          '@type': 'type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener',
          bufferSizeKb: 64,
        },
      },
    ],
    statsConfig: statsConfig(settings),
    statsFlushInterval: statsFlushInterval(settings),
    // Most clusters are never asked: what would count their requests is made with the first.
    deferredStatOptions: { enableDeferredCreationStats: true },
    admin: {
      address: { socketAddress: { address: isV6 ? '::1' : '127.0.0.1', portValue: proxy.adminPort } },
      // Its address is this machine's own: a log of who asks says nothing.
      accessLog: [],
    },
    dynamicResources: {
      // Never half configured: it waits for both.
      ldsConfig: { ads: {}, initialFetchTimeout: '0s', resourceApiVersion: 'V3' },
      cdsConfig: { ads: {}, initialFetchTimeout: '0s', resourceApiVersion: 'V3' },
      adsConfig: {
        apiType: 'DELTA_GRPC',
        transportApiVersion: 'V3',
        setNodeOnFirstMessageOnly: true,
        grpcServices: [{ envoyGrpc: { clusterName: 'xds-grpc' } }],
      },
    },
    staticResources: {
      clusters: [...agentClusters(settings, isV6), ...clusters],
      listeners: agentListeners(settings, isV6),
    },
    overloadManager: {
      resourceMonitors: [
        {
          name: 'envoy.resource_monitors.global_downstream_max_connections',
          typedConfig: {
            '@type':
              'type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
            maxActiveDownstreamConnections: env['ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS'] ?? '2147483647',
          },
        },
      ],
    },
  };
}

/** Of a machine without any IPv4 address, loopback aside. */
export function isV6Only({ pod: { addresses } }: Pick<AgentSettings, 'pod'>): boolean {
  return addresses.length > 0 && addresses.every((address) => address.includes(':'));
}

/** The same members as the agent's own lines. */
const logFormats: Readonly<Record<LogFormat, object>> = {
  json: { jsonFormat: { time: '%Y-%m-%dT%T.%eZ', level: '%l', logger: '%n', msg: '%j' } },
  text: { textFormat: '%Y-%m-%dT%T.%eZ  %l  envoy %n  %v' },
};
