import type { IngressEndpoint, InboundTarget } from '../../model/inbound.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import { inboundCluster, protocolClass } from '../../model/service.ts';
import { loopbackAddress, type Traits } from '../../model/traits.ts';
import { bindInbound, bindOriginalDestination } from './fixed-clusters.ts';
import { poolFields } from './pool.ts';
import { portProtocol, protocolOptions } from './protocol.ts';
import type { Address, Cluster } from '../gen/types.gen.ts';
import { istioMetadata } from '../istio-metadata.ts';
import { altStatName } from '../../model/stat-name.ts';
import { connectAddress } from '../encode/values.ts';

export interface InboundClustersInput {
  /** One per port. */
  readonly targets: readonly InboundTarget[];
  readonly traits: Traits;
  /** Addresses of the workload, needed if an ingress listener forwards to them. */
  readonly addresses: readonly string[];
  readonly settings: ClusterSettings;
}

/** The clusters through which a sidecar reaches its own workload. */
export function buildInboundClusters(input: InboundClustersInput): readonly Cluster[] {
  // Without interception, nothing arrives on ports that no ingress listener binds.
  const targets = input.traits.interception === 'NONE' ? input.targets.filter((t) => t.ingress) : input.targets;
  return targets
    .filter((target) => protocolClass(target.protocol) !== 'udp')
    .map((target) => buildCluster(input, target, inboundCluster(target.port)));
}

/** An idle original destination is kept forever: its address cannot change. */
const never = 9_223_372_035;

function buildCluster(input: InboundClustersInput, target: InboundTarget, name: string): Cluster {
  const { traits, settings } = input;
  const pool = target.connectionPool ?? settings.defaultTrafficPolicy?.connectionPool;
  const protocol = pool?.http.useClientProtocol === true ? 'downstream' : portProtocol(target, traits);
  const [service] = target.services;
  return {
    name,
    altStatName:
      service === undefined
        ? `${name};`
        : altStatName(name, settings.inboundClusterStatName, {
            service,
            port: { number: service.port, name: service.portName },
            targetPort: target.port,
          }),
    ...poolFields(pool, undefined, settings),
    typedExtensionProtocolOptions: protocolOptions({
      protocol,
      pool,
      preserveHeaderCase:
        traits.preserveHeaderCase && (protocolClass(target.protocol) === 'http' || protocol === 'downstream'),
    }),
    commonLbConfig: {},
    ...endpointFields(input, target, name),
    metadata: istioMetadata({
      services: target.services
        .filter((other) => other.port === service?.port)
        .map(({ host, name: serviceName, namespace }) => ({ host, name: serviceName, namespace })),
    }),
  };
}

function endpointFields(input: InboundClustersInput, target: InboundTarget, name: string): Cluster {
  const { traits, settings } = input;
  const localhost: IngressEndpoint = { kind: 'loopback', family: 'v4', port: target.port };
  const endpoint: IngressEndpoint =
    target.ingress?.endpoint ??
    (settings.inboundTrafficPolicy === 'LOCALHOST' ? localhost : { kind: 'originalDestination' });
  if (endpoint.kind === 'originalDestination')
    return {
      type: 'ORIGINAL_DST',
      lbPolicy: 'CLUSTER_PROVIDED',
      cleanupInterval: { seconds: never },
      upstreamBindConfig: bindOriginalDestination(traits),
    };
  const address = addressOf(endpoint, input);
  return {
    type: 'STATIC',
    loadAssignment: { clusterName: name, endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }] },
    // Traffic to loopback is not intercepted.
    ...(endpoint.kind === 'loopback' ? {} : { upstreamBindConfig: bindInbound(traits) }),
  };
}

function addressOf(
  endpoint: Exclude<IngressEndpoint, { kind: 'originalDestination' }>,
  { traits, addresses }: InboundClustersInput,
): Address {
  switch (endpoint.kind) {
    case 'unix':
      return { pipe: { path: endpoint.path } };
    case 'loopback':
      return connectAddress(loopbackOf(endpoint.family, traits), endpoint.port);
    case 'workload': {
      const isFamily = (address: string) => address.includes(':') === (endpoint.family === 'v6');
      return connectAddress(addresses.find(isFamily) ?? addresses[0] ?? loopbackAddress(traits), endpoint.port);
    }
  }
}

/** The requested family, if the proxy has it. */
function loopbackOf(family: 'v4' | 'v6', { ipFamily }: Pick<Traits, 'ipFamily'>): string {
  return (ipFamily === 'dual' ? family : ipFamily) === 'v6' ? '::1' : '127.0.0.1';
}
