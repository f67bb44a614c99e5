import type { Traits } from '../model/traits.ts';
import { any } from './encode/proto.ts';
import { connectAddress, wrapped } from './encode/wrappers.ts';
import { lookupFamily } from './cluster/dns.ts';
import type { DnsCacheConfig } from './gen/types.gen.ts';

/**
 * The DNS cache that the filter and the cluster for a DYNAMIC_DNS ServiceEntry share by its name: Envoy rejects one with
 * other content.
 */
export function dnsCacheOf(host: string, traits: Pick<Traits, 'ipFamily'>): DnsCacheConfig {
  return { name: `${host}_dfp_dns_cache`, dnsLookupFamily: lookupFamily(traits) };
}

/** Where Istio's agent answers for names of the mesh, unless its DNS_PROXY_ADDR says otherwise. */
const agentDns = { address: '127.0.0.1', port: 15_053 };

/** Envoy's default, said: each host that a client names has an entry. */
const mostHosts = 1024;

/**
 * The DNS cache for hosts that nobody knows, where mesh.outboundTrafficPolicy is ALLOW_ANY_DYNAMIC_DNS. Envoy keeps a cache
 * for as long as it runs, so that other content needs another name.
 */
export function unknownHostsCache(traits: Pick<Traits, 'ipFamily' | 'dnsCapture'>): DnsCacheConfig {
  const dnsLookupFamily = lookupFamily(traits);
  return {
    name: `allow_any_dfp_dns_cache${dnsLookupFamily === 'V6_ONLY' ? '_v6' : ''}${traits.dnsCapture ? '_agent' : ''}`,
    dnsLookupFamily,
    maxHosts: wrapped(mostHosts),
    ...(traits.dnsCapture && {
      typedDnsResolverConfig: {
        name: 'envoy.network.dns_resolver.cares',
        typedConfig: any('envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig', {
          resolvers: [connectAddress(agentDns.address, agentDns.port)],
        }),
      },
    }),
  };
}
