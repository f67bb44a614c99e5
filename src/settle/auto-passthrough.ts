import { isServed, withMtls } from '../model/dns-endpoints.ts';
import type { EndpointSummary } from '../model/endpoint.ts';
import type { SniChain } from '../model/gateway.ts';
import { isWildcard } from '../model/host.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import { mtlsUse } from '../model/policy-resolution.ts';
import { type MeshService, type ServicePort, protocolClass, sniCluster } from '../model/service.ts';
import { statName } from '../model/stat-name.ts';
import type { DestinationRuleModel } from '../model/traffic-policy.ts';
import { policyOf } from './outbound-chains.ts';

/** Whether routers with such a server forward to a service: to those of the mesh whose name can be a server name. */
export function isForwarded({ meshExternal, resolution, host }: MeshService): boolean {
  return !meshExternal && resolution !== 'Alias' && resolution !== 'DynamicDNS' && !isWildcard(host);
}

/** The chains for a port of a service and its subsets: proxies of the mesh name them as SNI. */
export function sniChains({ service, port, rule, summary, settings }: SniChainsInput): readonly SniChain[] {
  if (protocolClass(port.protocol) === 'udp') return [];
  const pattern = settings.outboundClusterStatName;
  const found = new Map<string, SniChain>();
  for (const subset of [undefined, ...(rule?.subsets ?? [])]) {
    const name = subset?.name ?? '';
    const dnsEndpoints = withMtls(summary.dnsEndpoints, mtlsUse(rule, port.number, subset));
    if (!isServed(service, port.number, subset?.labels ?? {}, { ...summary, dnsEndpoints })) continue;
    const cluster = sniCluster(port.number, name, service.host);
    // Envoy ignores their case, and rejects a listener with two chains for one server name.
    const serverName = cluster.toLowerCase();
    if (found.has(serverName)) continue;
    // The client has already opened the tunnel.
    const { tunnel: _, ...policy } = policyOf(rule, name);
    found.set(serverName, {
      serverName: cluster,
      target: {
        clusters: [{ name: cluster, weight: 0 }],
        weighted: false,
        statPrefix: pattern === '' ? cluster : statName(pattern, { service, port, subset: name }),
        // The gateway sees only ciphertext.
        protocol: 'TLS',
        ...policy,
        origins: [...service.origins, ...(rule?.origins ?? [])],
      },
    });
  }
  return [...found.values()];
}

export interface SniChainsInput {
  readonly service: MeshService;
  /** One of its ports. */
  readonly port: ServicePort;
  /** The rule that the router uses for the service. */
  readonly rule: DestinationRuleModel | undefined;
  readonly summary: EndpointSummary;
  readonly settings: Pick<ListenerSettings, 'outboundClusterStatName'>;
}
