import type { UpstreamProtocol } from '../model/cluster.ts';
import type { ClusterSettings } from '../model/mesh-config.ts';
import { isHttp2, protocolClass, type ServicePort } from '../model/service.ts';
import type { ConnectionPool } from '../model/traffic-policy.ts';
import type { Traits } from '../model/traits.ts';

export function upstreamProtocol(
  port: Pick<ServicePort, 'protocol'>,
  pool: ConnectionPool | undefined,
  settings: Pick<ClusterSettings, 'h2Upgrade'>,
  traits: Pick<Traits, 'proxyType'>,
): UpstreamProtocol {
  if (pool?.http.useClientProtocol === true) return 'downstream';
  const own = portProtocol(port, traits);
  if (own !== undefined) return own;
  const upgrade =
    pool?.http.h2UpgradePolicy ??
    (settings.h2Upgrade && protocolClass(port.protocol) === 'http' ? 'UPGRADE' : 'DO_NOT_UPGRADE');
  return upgrade === 'UPGRADE' ? 'http2' : undefined;
}

/** What a sidecar speaks to its own workload. */
export function inboundProtocol(
  port: Pick<ServicePort, 'protocol'>,
  pool: ConnectionPool | undefined,
  traits: Pick<Traits, 'proxyType'>,
): UpstreamProtocol {
  return pool?.http.useClientProtocol === true ? 'downstream' : portProtocol(port, traits);
}

/** Whether HTTP/1.1 may be spoken. */
export function speaksHttp1({ protocol }: Pick<ServicePort, 'protocol'>, upstream: UpstreamProtocol): boolean {
  return protocolClass(protocol) === 'http' || upstream === 'downstream';
}

/** From the port alone. A gateway knows what it forwards; only a sidecar sniffs. */
function portProtocol(
  { protocol }: Pick<ServicePort, 'protocol'>,
  { proxyType }: Pick<Traits, 'proxyType'>,
): UpstreamProtocol {
  if (isHttp2(protocol)) return 'http2';
  return protocol === 'Unsupported' && proxyType === 'sidecar' ? 'downstream' : undefined;
}
