import { nameKey } from '../../api/keys.ts';
import type { Reader } from '../../cache/graph.ts';
import { isClusterSetHost } from '../../model/exported-service.ts';
import { hostsMatch } from '../../model/host.ts';
import type { MeshService } from '../../model/service.ts';
import { type Inputs } from '../inputs.ts';
import { type Settings, settingOf } from '../settings.ts';
import { hasMulticlusterServices } from './exports.ts';
import type { Services } from './services.ts';

export interface SharedEndpointsDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
}

/**
 * The clusters whose endpoints of a service are for proxies of every cluster; those of others are for their own proxies.
 * Undefined: all. The mesh config decides (`clusterLocal`, of the most specific setting for the host). With multi-cluster
 * services, a Service is for its own cluster unless that says otherwise, and only exported ones ever leave it.
 */
export function sharedClusters(
  { host, registry, namespace, name }: MeshService,
  read: Reader,
  { inputs, settings, services }: SharedEndpointsDeps,
): readonly string[] | undefined {
  const { clusterLocalHosts } = settingOf(read, settings.visibility);
  const isLocal = clusterLocalHosts.find((setting) => hostsMatch(setting.host, host))?.clusterLocal;
  if (isLocal === true) return [];
  if (registry !== 'Kubernetes' || isClusterSetHost(host) || !hasMulticlusterServices(read, inputs)) return undefined;
  if (isLocal === undefined) return [];
  return read.get(services.exports.services, nameKey(namespace, name))?.clusters ?? [];
}
