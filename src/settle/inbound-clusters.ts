import type { InboundCluster, InboundEndpoint } from '../model/cluster.ts';
import type { InboundTarget, IngressEndpoint } from '../model/inbound.ts';
import type { ClusterSettings } from '../model/mesh-config.ts';
import { inboundCluster, protocolClass } from '../model/service.ts';
import { loopbackAddress, type Traits } from '../model/traits.ts';
import { inboundProtocol, speaksHttp1 } from './upstream-protocol.ts';

export interface InboundClustersInput {
  /** One per port. */
  readonly targets: readonly InboundTarget[];
  readonly traits: Traits;
  /** Addresses of the workload, needed if an ingress listener forwards to them. */
  readonly addresses: readonly string[];
  readonly settings: Pick<ClusterSettings, 'defaultTrafficPolicy' | 'inboundTrafficPolicy'>;
}

/** The clusters through which a sidecar reaches its own workload. */
export function settleInboundClusters(input: InboundClustersInput): readonly InboundCluster[] {
  // Without interception, nothing arrives on ports that no ingress listener binds.
  const targets = input.traits.interception === 'NONE' ? input.targets.filter((t) => t.ingress) : input.targets;
  return targets
    .filter((target) => protocolClass(target.protocol) !== 'udp')
    .map((target) => settleInboundCluster(input, target));
}

function settleInboundCluster(input: InboundClustersInput, target: InboundTarget): InboundCluster {
  const { traits, settings } = input;
  const { port, services } = target;
  const connectionPool = target.connectionPool ?? settings.defaultTrafficPolicy?.connectionPool;
  const protocol = inboundProtocol(target, connectionPool, traits);
  const [first] = services;
  return {
    name: inboundCluster(port),
    port,
    services: services.filter((other) => other.port === first?.port),
    connectionPool,
    protocol,
    preservesHeaderCase: traits.preserveHeaderCase && speaksHttp1(target, protocol),
    endpoint: endpointOf(input, target),
  };
}

function endpointOf({ traits, settings, addresses }: InboundClustersInput, target: InboundTarget): InboundEndpoint {
  const localhost: IngressEndpoint = { kind: 'loopback', family: 'v4', port: target.port };
  const endpoint: IngressEndpoint =
    target.ingress?.endpoint ??
    (settings.inboundTrafficPolicy === 'LOCALHOST' ? localhost : { kind: 'originalDestination' });
  switch (endpoint.kind) {
    case 'originalDestination':
    case 'unix':
      return endpoint;
    case 'loopback': {
      const { family, port } = endpoint;
      return { kind: 'address', address: loopbackOf(family, traits), port, isLoopback: true };
    }
    case 'workload': {
      const { family, port } = endpoint;
      const isFamily = (address: string) => address.includes(':') === (family === 'v6');
      const address = addresses.find(isFamily) ?? addresses[0] ?? loopbackAddress(traits);
      return { kind: 'address', address, port, isLoopback: false };
    }
  }
}

/** The requested family, if the proxy has it. */
function loopbackOf(family: 'v4' | 'v6', { ipFamily }: Pick<Traits, 'ipFamily'>): string {
  return (ipFamily === 'dual' ? family : ipFamily) === 'v6' ? '::1' : '127.0.0.1';
}
