import type { Reader } from '../cache/graph.ts';
import { blackHoleCluster } from '../envoy/fixed-clusters.ts';
import type { DestinationTarget } from '../model/client.ts';
import type { OutboundPolicy } from '../model/mesh-config.ts';
import { clientViewOf } from './clients.ts';
import { type DestinationParts, lookupFor } from './destinations.ts';
import type { Scope } from './proxies.ts';
import { settingOf } from './settings.ts';

export type UnknownTrafficParts = DestinationParts;

export interface UnknownTraffic {
  readonly policy: OutboundPolicy;
  /** Cluster of the egress proxy that a Sidecar names: a black hole when it does not exist. Undefined: it names none. */
  readonly egressProxy: string | undefined;
}

/** What the proxies of a scope do with traffic to unknown hosts. */
export function unknownTraffic(scope: Scope, read: Reader, parts: UnknownTrafficParts): UnknownTraffic {
  const { outboundTrafficPolicy } = settingOf(read, parts.settings.listeners);
  const own = sidecarPolicy(scope, read, parts);
  // What was to be looked at by the proxy must not go past it.
  const egressProxy = own?.egressProxy && (egressProxyOf(scope, read, parts)?.cluster ?? blackHoleCluster);
  return { policy: own?.mode ?? outboundTrafficPolicy, egressProxy };
}

/** Where a Sidecar sends it; undefined when it names nothing, or something that does not exist. */
export function egressProxyOf(
  scope: Scope,
  read: Reader,
  parts: UnknownTrafficParts,
): Extract<DestinationTarget, { kind: 'cluster' }> | undefined {
  const proxy = sidecarPolicy(scope, read, parts)?.egressProxy;
  if (proxy === undefined) return undefined;
  const target = lookupFor(clientViewOf(scope), read, parts)(proxy, proxy.port ?? 0);
  return target.kind === 'cluster' ? target : undefined;
}

function sidecarPolicy({ sidecar }: Scope, read: Reader, { sidecars }: UnknownTrafficParts) {
  return sidecar === '' ? undefined : read.get(sidecars.models, sidecar)?.outboundTrafficPolicy;
}
