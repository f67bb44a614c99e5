import type { InboundCluster } from '../../model/cluster.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import { altStatName } from '../../model/stat-name.ts';
import type { Traits } from '../../model/traits.ts';
import { connectAddress } from '../encode/wrappers.ts';
import type { Address, Cluster } from '../gen/types.gen.ts';
import { istioMetadata } from '../istio-metadata.ts';
import { bindInbound, bindOriginalDestination } from './fixed-clusters.ts';
import { poolFields } from './pool.ts';
import { protocolOptions } from './protocol.ts';

/** An idle original destination is kept forever: its address cannot change. */
const never = 9_223_372_035;

/** A cluster through which a sidecar reaches its own workload. */
export function buildInboundCluster(
  settled: InboundCluster,
  traits: Pick<Traits, 'ipFamily'>,
  settings: ClusterSettings,
): Cluster {
  const { name, port, services, connectionPool: pool, protocol, preservesHeaderCase } = settled;
  const [service] = services;
  return {
    name,
    altStatName:
      service === undefined
        ? `${name};`
        : altStatName(name, settings.inboundClusterStatName, {
            service,
            port: { number: service.port, name: service.portName },
            targetPort: port,
          }),
    ...poolFields(pool, undefined, settings),
    typedExtensionProtocolOptions: protocolOptions({ protocol, pool, preserveHeaderCase: preservesHeaderCase }),
    commonLbConfig: {},
    ...endpointFields(settled, traits),
    metadata: istioMetadata({
      services: services.map(({ host, name: serviceName, namespace }) => ({ host, name: serviceName, namespace })),
    }),
  };
}

function endpointFields({ name, endpoint }: InboundCluster, traits: Pick<Traits, 'ipFamily'>): Cluster {
  switch (endpoint.kind) {
    case 'originalDestination':
      return {
        type: 'ORIGINAL_DST',
        lbPolicy: 'CLUSTER_PROVIDED',
        cleanupInterval: { seconds: never },
        upstreamBindConfig: bindOriginalDestination(traits),
      };
    case 'unix':
      return { ...staticEndpoint(name, { pipe: { path: endpoint.path } }), upstreamBindConfig: bindInbound(traits) };
    case 'address':
      return {
        ...staticEndpoint(name, connectAddress(endpoint.address, endpoint.port)),
        ...(endpoint.isLoopback ? {} : { upstreamBindConfig: bindInbound(traits) }),
      };
  }
}

function staticEndpoint(clusterName: string, address: Address): Cluster {
  return { type: 'STATIC', loadAssignment: { clusterName, endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }] } };
}
