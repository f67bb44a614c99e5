import type { OutboundPolicy } from '../../model/mesh-config.ts';
import { bracketed } from '../../model/host.ts';
import { dynamicDnsCluster, passthroughCluster } from '../../model/cluster-names.ts';
import type { Route, VirtualHost } from '../gen/types.gen.ts';
import { timeouts } from './action.ts';
import { anyRequest } from './match.ts';

export interface VirtualHostInput {
  /** Together with the port, names the virtual host. */
  readonly host: string;
  readonly port: number;
  readonly domains: readonly string[];
  /** In addition to routes that are already encoded. */
  readonly routes?: readonly Route[];
  /** Redirects requests without TLS to HTTPS. */
  readonly httpsRedirect?: boolean;
}

export function buildVirtualHost({ host, port, domains, routes, httpsRedirect }: VirtualHostInput): VirtualHost {
  return {
    name: `${bracketed(host)}:${port}`,
    domains,
    ...(routes && { routes }),
    ...(httpsRedirect ? { requireTls: 'ALL' } : {}),
    includeRequestAttemptCount: true,
  };
}

/** The virtual host of a Gateway's table that has no others: it answers every request with 404. */
export function blackHoleVirtualHost(port: number): VirtualHost {
  return { name: `blackhole:${port}`, domains: ['*'] };
}

/** For requests to unknown hosts: the last virtual host of every sidecar route table. */
export function catchAllVirtualHost(
  policy: OutboundPolicy,
  egressProxyCluster?: string,
): { readonly virtualHost: VirtualHost; readonly clusters: readonly string[] } {
  const [name, clusters] = destinationsOf(policy, egressProxyCluster);
  const [cluster] = clusters;
  const route: Route =
    cluster === undefined ? { directResponse: { status: 502 } } : { route: { cluster, ...timeouts(undefined) } };
  return {
    virtualHost: {
      name,
      domains: ['*'],
      routes: [{ name, match: anyRequest, ...route }],
      includeRequestAttemptCount: true,
    },
    clusters,
  };
}

function destinationsOf(policy: OutboundPolicy, egressProxyCluster: string | undefined): [name: string, string[]] {
  switch (policy) {
    case 'ALLOW_ANY':
      return ['allow_any', [egressProxyCluster ?? passthroughCluster]];
    case 'ALLOW_ANY_DYNAMIC_DNS':
      return ['allow_any_dynamic_dns', [dynamicDnsCluster]];
    case 'REGISTRY_ONLY':
      return ['block_all', []];
  }
}
