import { compareText } from '../../model/age.ts';
import type { Endpoint, EndpointSummary } from '../../model/endpoint.ts';

/** What clusters and listeners see of endpoints; parts that the service does not need stay empty and never change. */
export function summarize(
  endpoints: readonly Endpoint[],
  needs: {
    /** How many at most; those in this cluster first. */
    readonly addresses: { readonly most: number; readonly cluster: string };
    readonly dns: boolean;
  },
): EndpointSummary {
  const identities = new Set<string>();
  const networks = new Set<string>();
  let plaintext = endpoints.length === 0;
  for (const endpoint of endpoints) {
    if (endpoint.identity !== '') identities.add(endpoint.identity);
    if (endpoint.tlsMode === 'disabled') plaintext = true;
    if (endpoint.network !== '') networks.add(endpoint.network);
  }
  const addresses = needs.addresses.most === 0 ? [] : addressesOf(endpoints, needs.addresses.cluster);
  const ignored = addresses.length - needs.addresses.most;
  return {
    identities: [...identities].sort(compareText),
    plaintext,
    addresses: addresses.slice(0, needs.addresses.most).sort(compareText),
    ...(ignored > 0 && { ignoredAddresses: ignored }),
    dnsEndpoints: needs.dns ? endpoints : [],
    ...(networks.size > 0 && { networks: [...networks].sort(compareText) }),
  };
}

/** Each once. Others may not push out those of the own cluster. */
function addressesOf(endpoints: readonly Endpoint[], cluster: string): string[] {
  const of = (own: boolean): string[] =>
    endpoints.flatMap((endpoint) => ((endpoint.cluster === cluster) === own ? endpoint.addresses.slice(0, 1) : []));
  return [...new Set([...of(true).sort(compareText), ...of(false).sort(compareText)])];
}
