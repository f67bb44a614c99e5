import type { Reader } from '../../cache/graph.ts';
import { blackHoleCluster } from '../../model/cluster-names.ts';
import type { DestinationTarget } from '../../model/client.ts';
import type { OutboundPolicy } from '../../model/mesh-config.ts';
import { clientViewOf } from '../clients/lookups.ts';
import { type DestinationDeps, targetOf } from '../clients/destinations.ts';
import type { Scope } from '../clients/proxies.ts';
import { settingOf } from '../settings.ts';

export type UnknownTrafficDeps = DestinationDeps;

export interface UnknownTraffic {
  readonly policy: OutboundPolicy;
  /** Cluster of the egress proxy that a Sidecar names: a black hole if it does not exist. Undefined: it names none. */
  readonly egressProxy: string | undefined;
}

/** What the proxies of a scope do with traffic to unknown hosts. */
export function unknownTraffic(scope: Scope, read: Reader, deps: UnknownTrafficDeps): UnknownTraffic {
  const { outboundTrafficPolicy } = settingOf(read, deps.settings.listeners);
  const own = sidecarPolicy(scope, read, deps);
  // Traffic that the proxy was meant to inspect must not bypass it.
  const egressProxy = own?.egressProxy && (egressProxyOf(scope, read, deps)?.cluster ?? blackHoleCluster);
  // Only the sidecars that are Envoys look names up.
  const { proxyType, family } = scope.traits;
  const looksUp = proxyType === 'sidecar' && family === 'envoy';
  const ofMesh = outboundTrafficPolicy === 'ALLOW_ANY_DYNAMIC_DNS' && !looksUp ? 'ALLOW_ANY' : outboundTrafficPolicy;
  return { policy: own?.mode ?? ofMesh, egressProxy };
}

/** Where a Sidecar sends it; undefined if it names nothing, or something that does not exist. */
export function egressProxyOf(
  scope: Scope,
  read: Reader,
  deps: UnknownTrafficDeps,
): Extract<DestinationTarget, { kind: 'cluster' }> | undefined {
  const proxy = sidecarPolicy(scope, read, deps)?.egressProxy;
  if (proxy === undefined) return undefined;
  const target = targetOf(proxy, proxy.port ?? 0, clientViewOf(scope), read, deps);
  return target.kind === 'cluster' ? target : undefined;
}

function sidecarPolicy({ sidecar }: Scope, read: Reader, { sidecars }: UnknownTrafficDeps) {
  return sidecar === '' ? undefined : read.get(sidecars.models, sidecar)?.outboundTrafficPolicy;
}
