import { compareText } from '../../model/age.ts';
import type { Endpoint, EndpointSummary } from '../../model/endpoint.ts';

/** What clusters and listeners see of endpoints; parts that the service does not need stay empty and never change. */
export function summarize(
  endpoints: readonly Endpoint[],
  needs: { readonly addresses: boolean; readonly dns: boolean },
): EndpointSummary {
  const identities = new Set<string>();
  const networks = new Set<string>();
  let plaintext = endpoints.length === 0;
  for (const endpoint of endpoints) {
    if (endpoint.identity !== '') identities.add(endpoint.identity);
    if (endpoint.tlsMode === 'disabled') plaintext = true;
    if (endpoint.network !== '') networks.add(endpoint.network);
  }
  return {
    identities: [...identities].sort(compareText),
    plaintext,
    addresses: needs.addresses ? [...new Set(endpoints.flatMap((e) => e.addresses.slice(0, 1)))].sort(compareText) : [],
    dnsEndpoints: needs.dns ? endpoints : [],
    ...(networks.size > 0 && { networks: [...networks].sort(compareText) }),
  };
}
