import type { Collection, Reader } from '../cache/graph.ts';
import type { OutboundPolicy } from '../model/mesh-config.ts';
import type { SidecarModel } from '../model/sidecar.ts';
import { clientViewOf } from './clients.ts';
import { type DestinationParts, lookupFor } from './destinations.ts';
import type { Scope } from './proxies.ts';
import { settingOf } from './settings.ts';

export interface UnknownTraffic {
  readonly policy: OutboundPolicy;
  /** Cluster of the egress proxy of a Sidecar, if there is one and it exists. */
  readonly egressProxy: string | undefined;
}

/** What the proxies of a scope do with traffic to hosts that nobody knows. */
export function unknownTraffic(
  scope: Scope,
  read: Reader,
  parts: DestinationParts & { readonly sidecars: { readonly models: Collection<SidecarModel> } },
): UnknownTraffic {
  const settings = settingOf(read, parts.settings.listeners);
  const sidecar = scope.sidecar === '' ? undefined : read.get(parts.sidecars.models, scope.sidecar);
  const { mode = settings.outboundTrafficPolicy, egressProxy } = sidecar?.outboundTrafficPolicy ?? {};
  const target = egressProxy && lookupFor(clientViewOf(scope), read, parts)(egressProxy, egressProxy.port ?? 0);
  return { policy: mode, egressProxy: target?.kind === 'cluster' ? target.cluster : undefined };
}
