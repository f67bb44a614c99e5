import type { Engine } from '../engine/engine.ts';
import { isDns, serviceKey } from '../model/service.ts';

/** What a change of an input is about, in Istio's words for what triggers a push. */
export function triggerOf(input: string): string {
  switch (input.replace(/^objects\./, '')) {
    case 'EndpointSlice':
    case 'Endpoints':
    case 'Pod':
    case 'WorkloadEntry':
      return 'endpoint';
    case 'Service':
    case 'ServiceEntry':
      return 'service';
    case 'proxies':
    case 'shardsMade':
    case 'asked':
      return 'proxy';
    case 'credentials':
    case 'secretAccess':
      return 'secret';
    case 'ConfigMap':
    case 'lastGood':
    case 'options':
    case 'trustBundle':
      return 'global';
    case 'Namespace':
      return 'namespace';
    default:
      return 'config';
  }
}

/** Hosts without any endpoint: those whose endpoints are sent, and those that proxies resolve. */
export function withoutEndpoints({ services, endpoints }: Engine['mesh']): { sent: number; resolved: number } {
  const served = new Set<string>();
  for (const collection of endpoints.lists)
    for (const [, list] of collection.entries()) if (list.endpoints.length > 0) served.add(list.service);
  const counts = { sent: 0, resolved: 0 };
  for (const [, service] of services.entries()) {
    if (service.resolution === 'Passthrough' || service.resolution === 'Alias' || service.resolution === 'DynamicDNS')
      continue;
    if (!served.has(serviceKey(service))) counts[isDns(service) ? 'resolved' : 'sent']++;
  }
  return counts;
}
