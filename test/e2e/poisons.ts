import { types } from '../../src/envoy/encode/proto-types.ts';
import type { Cluster, Listener, Route, VirtualHost } from '../../src/envoy/gen/types.gen.ts';
import { any, typeUrl } from '../../src/envoy/encode/proto.ts';
import type { Amend } from '../../src/envoy/encode/encoder.ts';

interface Messages {
  readonly cluster: Cluster;
  readonly listener: Listener;
  readonly virtualHost: VirtualHost;
  readonly routeEntry: Route;
}

/** What makes a real Envoy refuse a message. */
interface PoisonOf<Type extends keyof Messages> {
  readonly name: string;
  readonly type: Type;
  /** What Envoy says. */
  readonly words: RegExp;
  /** The reason may be the proxy's own: a second one of each build may see it. */
  readonly mayBeLocal?: true;
  readonly spoil: (message: Messages[Type]) => Messages[Type];
}

export type Poison = { [Type in keyof Messages]: PoisonOf<Type> }[keyof Messages];

/** Nobody has it. */
const NOTHING = { typeUrl: 'type.googleapis.com/nothing.like.It', value: new Uint8Array() };
const unknown = { name: 'nothing.like.it', typedConfig: NOTHING };
const notPem = { inlineString: 'not a certificate' };

const withoutEndpoints = { edsClusterConfig: undefined, loadAssignment: undefined };

const endpointAt = (address: string) => ({
  lbEndpoints: [{ endpoint: { address: { socketAddress: { address, portValue: 80 } } } }],
});

const clusters = (
  name: string,
  words: RegExp,
  change: (cluster: Cluster) => Partial<Cluster>,
): PoisonOf<'cluster'> => ({
  name,
  type: 'cluster',
  words,
  spoil: (cluster) => ({ ...cluster, ...change(cluster) }),
});

const upstreamTls = (commonTlsContext: object) => ({
  transportSocketMatches: [],
  transportSocket: {
    name: 'envoy.transport_sockets.tls',
    typedConfig: any(types.upstreamTls, { commonTlsContext }),
  },
});

const listeners = (
  name: string,
  words: RegExp,
  change: (listener: Listener) => Partial<Listener>,
): PoisonOf<'listener'> => ({
  name,
  type: 'listener',
  words,
  spoil: (listener) => ({ ...listener, ...change(listener) }),
});

const routes = (name: string, words: RegExp, change: (route: Route) => Partial<Route>): PoisonOf<'routeEntry'> => ({
  name,
  type: 'routeEntry',
  words,
  spoil: (route) => ({ ...route, ...change(route) }),
});

const hosts = (
  name: string,
  words: RegExp,
  change: (host: VirtualHost) => Partial<VirtualHost>,
): PoisonOf<'virtualHost'> => ({
  name,
  type: 'virtualHost',
  words,
  spoil: (host) => ({ ...host, ...change(host) }),
});

/** @param taken a port and a domain that others have. */
export const poisons = (taken: { readonly port: number; readonly domain: string }): readonly Poison[] => [
  clusters('ring-hash', /minimum|ring/i, () => ({
    lbPolicy: 'RING_HASH',
    ringHashLbConfig: { minimumRingSize: { value: '2000' }, maximumRingSize: { value: '1000' } },
  })),
  clusters('maglev', /prime/i, () => ({ lbPolicy: 'MAGLEV', maglevLbConfig: { tableSize: { value: '1000' } } })),
  clusters('ring-too-large', /minimum_ring_size|RingHash/i, () => ({
    lbPolicy: 'RING_HASH',
    ringHashLbConfig: { minimumRingSize: { value: '9000000' } },
  })),
  clusters('address', /malformed IP address/i, ({ name = '' }) => ({
    ...withoutEndpoints,
    type: 'STATIC',
    loadAssignment: { clusterName: name, endpoints: [endpointAt('not an address')] },
  })),
  clusters('bind-address', /malformed IP address/i, () => ({
    upstreamBindConfig: { sourceAddress: { address: 'not an address', portValue: 0 } },
  })),
  clusters('policy-extension', /load balancer|policy|implementation/i, () => ({
    loadBalancingPolicy: { policies: [{ typedExtensionConfig: unknown }] },
  })),
  clusters('policy-for-type', /cluster provided LB/, () => ({ lbPolicy: 'CLUSTER_PROVIDED' })),
  clusters('no-eds-config', /EDS/i, () => ({ ...withoutEndpoints, type: 'EDS' })),
  clusters('two-names', /LOGICAL_DNS/i, ({ name = '' }) => ({
    ...withoutEndpoints,
    type: 'LOGICAL_DNS',
    loadAssignment: { clusterName: name, endpoints: [endpointAt('a.invalid'), endpointAt('b.invalid')] },
  })),
  clusters('socket-extension', /implementation/, () => ({ transportSocketMatches: [], transportSocket: unknown })),
  clusters('certificate', /certificate/i, () =>
    upstreamTls({ tlsCertificates: [{ certificateChain: notPem, privateKey: notPem }] }),
  ),
  {
    ...clusters('missing-file', /nowhere/i, () =>
      upstreamTls({ validationContext: { trustedCa: { filename: '/nowhere/ca.pem' } } }),
    ),
    mayBeLocal: true,
  },
  listeners('filter', /implementation/i, ({ filterChains = [] }) => ({
    filterChains: filterChains.map((chain) => ({ ...chain, filters: [unknown, ...(chain.filters ?? [])] })),
  })),
  listeners('listener-filter', /implementation/i, () => ({ listenerFilters: [unknown] })),
  listeners('access-log', /implementation/i, () => ({ accessLog: [unknown] })),
  listeners('duplicate-address', /duplicate address/i, ({ address }) => ({
    address: { socketAddress: { ...address?.socketAddress, portValue: taken.port } },
  })),
  listeners('duplicate-match', /matching rules/i, ({ filterChains = [] }) => ({
    filterChains: [...filterChains, ...filterChains],
  })),
  listeners('unparsable', /parse|unpack/i, ({ filterChains = [] }) => ({
    filterChains: filterChains.map((chain) => ({
      ...chain,
      filters: [
        {
          name: 'envoy.filters.network.tcp_proxy',
          typedConfig: { typeUrl: typeUrl(types.tcpProxy), value: Buffer.from('\xff\xff\xff') },
        },
      ],
    })),
  })),
  listeners('constraint', /stat_prefix|StatPrefix/i, ({ filterChains = [] }) => ({
    filterChains: filterChains.map((chain) => ({
      ...chain,
      filters: [
        { name: 'envoy.filters.network.tcp_proxy', typedConfig: any(types.tcpProxy, { cluster: 'BlackHoleCluster' }) },
      ],
    })),
  })),
  listeners('server-certificate', /certificate/i, ({ filterChains = [] }) => ({
    filterChains: filterChains.map((chain) => ({
      ...chain,
      transportSocket: {
        name: 'envoy.transport_sockets.tls',
        typedConfig: any(types.downstreamTls, {
          commonTlsContext: { tlsCertificates: [{ certificateChain: notPem, privateKey: notPem }] },
        }),
      },
    })),
  })),
  hosts('duplicate-domain', /unique values for domains/i, ({ domains = [] }) => ({
    domains: [...domains, taken.domain],
  })),
  hosts('nameless', /ends before/, () => ({ name: '' })),
  hosts('no-domains', /ends before/, () => ({ domains: [] })),
  routes('regex', /regex|missing \)|parenthes/i, ({ match: _, ...route }) => ({
    ...route,
    match: { safeRegex: { regex: '(' } },
  })),
  routes('unknown-cluster', /unknown cluster/i, () => ({ route: { cluster: 'nowhere' } })),
  routes('rewrites', /rewrite/i, ({ route }) => ({
    route: { ...route, prefixRewrite: '/a', regexRewrite: { pattern: { regex: 'a' }, substitution: 'b' } },
  })),
  routes('weights', /weight/i, ({ route }) => ({
    route: {
      weightedClusters: { clusters: [{ name: route?.cluster ?? '', weight: { value: 0 } }] },
    },
  })),
  routes('route-extension', /implementation/i, () => ({ typedPerFilterConfig: { 'nothing.like.it': NOTHING } })),
  routes('formatter', /Not supported field/, () => ({
    requestHeadersToAdd: [{ header: { key: 'x-a', value: '%NOTHING_LIKE_IT%' } }],
  })),
];

/** A connect timeout that makes a cluster poisonous. */
export const DEADLY_SECONDS = 66;

/** Spoils what bears the name of a poison. */
export function amendWith(all: readonly Poison[]): Amend {
  const spoil = (type: keyof Messages, message: object, text: string): object => {
    const poison = all.find(
      (each) => each.type === type && (text === `|${each.name}.example.com` || text === `poison-${each.name}.example`),
    );
    return poison === undefined ? message : (poison.spoil as (message: object) => object)(message);
  };
  const amend = (type: string, message: object): object => {
    switch (type) {
      case types.cluster: {
        const { name = '', connectTimeout } = message as Cluster;
        // Of `outbound|80||HOST`, the host.
        const host = name.slice(name.lastIndexOf('|'));
        return Number(connectTimeout?.seconds) === DEADLY_SECONDS ? spoil('cluster', message, host) : message;
      }
      case types.listener:
        return spoil('listener', message, poisonIn(JSON.stringify(message)));
      case types.virtualHost:
        return spoil('virtualHost', message, poisonIn((message as VirtualHost).domains?.join() ?? ''));
      case types.routeEntry:
        return spoil('routeEntry', message, poisonIn((message as Route).name ?? ''));
      case types.route:
        // Envoy looks for the clusters of its routes.
        return { ...message, validateClusters: { value: true } };
      default:
        return message;
    }
  };
  return amend as Amend;
}

function poisonIn(text: string): string {
  return /poison-[\w-]+\.example/.exec(text)?.[0] ?? '';
}
