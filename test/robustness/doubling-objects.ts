import type { KubernetesObject } from '../../src/api/object.ts';

/** Objects whose lists are as long as `of` is asked for. */
export interface DoublingCase {
  readonly title: string;
  readonly of: (n: number) => {
    readonly objects: readonly KubernetesObject[];
    readonly beside: readonly KubernetesObject[];
  };
  /** What proxies get has the size of the product, but nothing else has. */
  readonly unconnected?: boolean;
}

export const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
export const record = <T>(count: number, make: (i: number) => readonly [string, T]): Record<string, T> =>
  Object.fromEntries(many(count, make));

export const groups: Record<string, string> = {
  Service: 'v1',
  Pod: 'v1',
  Endpoints: 'v1',
  Namespace: 'v1',
  EndpointSlice: 'discovery.k8s.io/v1',
  AuthorizationPolicy: 'security.istio.io/v1',
  RequestAuthentication: 'security.istio.io/v1',
  PeerAuthentication: 'security.istio.io/v1',
  ProxyConfig: 'networking.istio.io/v1beta1',
};
export const make = (kind: string, name: string, content: object, metadata: object = {}): KubernetesObject =>
  ({
    apiVersion: groups[kind] ?? 'networking.istio.io/v1',
    kind,
    metadata: { name, namespace: 'shop', ...metadata },
    ...content,
  }) as KubernetesObject;
export const spec = (kind: string, value: object, name = 'it', metadata: object = {}) =>
  make(kind, name, { spec: value }, metadata);

export const port = (i: number, protocol = 'HTTP') => ({
  number: 1000 + i,
  name: `${protocol.toLowerCase()}-${i}`,
  protocol,
});
export const service = (ports: number, name = 'a', protocol = 'http') =>
  spec(
    'Service',
    {
      clusterIP: '10.96.0.1',
      selector: { app: 'a' },
      ports: many(ports, (i) => ({ name: `${protocol}-${i}`, port: 1000 + i })),
    },
    name,
  );
export const host = (i: number): string => `h${i}.example.com`;
export const address = (i: number): string => `10.9.${i >> 8}.${i & 255}`;
export const to = (i = 0) => ({ destination: { host: 'a', port: { number: 1000 }, subset: `v${i}` } });
export const toA = { route: [{ destination: { host: 'a', port: { number: 1000 } } }] };
export const gateways = (n: number, hosts: (i: number) => string[], protocol = 'HTTP') =>
  many(n, (i) =>
    spec(
      'Gateway',
      {
        selector: { app: 'a' },
        servers: [
          { port: port(i, protocol), hosts: hosts(i), ...(protocol === 'TLS' && { tls: { mode: 'PASSTHROUGH' } }) },
        ],
      },
      `g${i}`,
    ),
  );
export const names = (n: number, prefix: string) => many(n, (i) => `${prefix}${i}`);
export const entry = (value: object) =>
  spec('ServiceEntry', { hosts: ['h0.example.com'], ports: [port(0)], resolution: 'STATIC', ...value });
export const rule = (value: object, name = 'it') => spec('DestinationRule', { host: 'a', ...value }, name);
export const subsets = (n: number, policy: (i: number) => object | undefined = () => undefined) =>
  many(n, (i) => ({ name: `v${i}`, labels: { version: `v${i}` }, ...(policy(i) && { trafficPolicy: policy(i) }) }));
export const grown = (
  title: string,
  of: (n: number) => KubernetesObject[],
  beside: (n: number) => KubernetesObject[] = () => [],
): DoublingCase => ({
  title,
  of: (n) => ({
    objects: of(n),
    beside: [service(1), ...beside(n)].filter(
      (object, i, all) =>
        all.findLastIndex((other) => other.kind === object.kind && other.metadata.name === object.metadata.name) === i,
    ),
  }),
});
export const unconnected = (one: DoublingCase): DoublingCase => ({ ...one, unconnected: true });
export const vs = (value: object, name = 'it') => spec('VirtualService', value, name);
