import { kinds } from '../../src/api/kinds.ts';

export const reviews = 'reviews.shop.example';

export function object(kind: string, name: string, spec: object): object {
  const { group, version } = kinds.find((known) => known.custom && known.kind === kind)!;
  return { apiVersion: `${group}/${version}`, kind, metadata: { name, namespace: 'shop' }, spec };
}

export function rule(subsets: Readonly<Record<string, string>>): object {
  return object('DestinationRule', 'reviews', {
    host: reviews,
    subsets: Object.entries(subsets).map(([name, version]) => ({ name, labels: { version } })),
  });
}

export function routes(subset: string, host = reviews): object {
  const destination = { host, ...(host === reviews ? { subset } : {}) };
  return object('VirtualService', 'reviews', { hosts: [reviews], http: [{ route: [{ destination }] }] });
}

/** An object of each kind that concerns nobody, and a change of it that brings a new generation. */
export const ALL: readonly {
  readonly kind: string;
  readonly name: string;
  readonly spec: object;
  readonly vary: (round: number) => object;
}[] = [
  {
    kind: 'VirtualService',
    name: 'all',
    spec: { hosts: ['all.shop.example'] },
    vary: (round) => ({ http: [{ directResponse: { status: 200 + (round % 100) } }] }),
  },
  {
    kind: 'DestinationRule',
    name: 'all',
    spec: { host: 'all.shop.example' },
    vary: (round) => ({ subsets: [{ name: `v${round}`, labels: { version: 'v1' } }] }),
  },
  {
    kind: 'ServiceEntry',
    name: 'all',
    spec: { hosts: ['all.shop.example'], resolution: 'NONE' },
    vary: (round) => ({ ports: [{ number: 1000 + round, name: 'http', protocol: 'HTTP' }], exportTo: ['other'] }),
  },
  {
    kind: 'Gateway',
    name: 'all',
    spec: { servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }] },
    vary: (round) => ({ selector: { app: `none-${round}` } }),
  },
  {
    kind: 'Sidecar',
    name: 'all',
    spec: { egress: [{ hosts: ['./*'] }] },
    vary: (round) => ({ workloadSelector: { labels: { app: `none-${round}` } } }),
  },
  { kind: 'WorkloadEntry', name: 'all', spec: { address: '10.9.8.7' }, vary: (round) => ({ weight: round }) },
  { kind: 'ProxyConfig', name: 'all', spec: {}, vary: (round) => ({ concurrency: round }) },
  {
    kind: 'PeerAuthentication',
    name: 'all',
    spec: { mtls: { mode: 'PERMISSIVE' } },
    vary: (round) => ({ selector: { matchLabels: { app: `none-${round}` } } }),
  },
  {
    kind: 'RequestAuthentication',
    name: 'all',
    spec: {},
    vary: (round) => ({ selector: { matchLabels: { app: `none-${round}` } } }),
  },
  {
    kind: 'AuthorizationPolicy',
    name: 'all',
    spec: { rules: [{ from: [{ source: { namespaces: ['shop'] } }] }] },
    vary: (round) => ({ selector: { matchLabels: { app: `none-${round}` } } }),
  },
];

export function web(port: number): object[] {
  const labels = { app: 'web' };
  const metadata = { name: 'web', namespace: 'shop' };
  const ports = [{ name: 'http', containerPort: 9080 }];
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web', ports }] } },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ name: 'http', port, targetPort: 'http' }] },
    },
  ];
}
