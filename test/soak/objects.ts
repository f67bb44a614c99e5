type Random = () => number;
type KubernetesObject = Readonly<Record<string, unknown>>;

/** One document per object. */
export function documents(objects: readonly KubernetesObject[]): string {
  return objects.map((object) => JSON.stringify(object)).join('\n---\n');
}

const object = (apiVersion: string, kind: string, path: string, content: object, labels?: object): KubernetesObject => {
  const [namespace, name] = path.split('/');
  return { apiVersion, kind, metadata: { namespace, name, ...(labels && { labels }) }, ...content };
};
const istio = (kind: string, path: string, spec: unknown): KubernetesObject =>
  object('networking.istio.io/v1', kind, path, { spec });
const service = (path: string, ip: string, ports = [{ name: 'http', port: 80, protocol: 'TCP' }]): KubernetesObject =>
  object('v1', 'Service', path, { spec: { clusterIP: ip, clusterIPs: [ip], ports } });
const slice = (path: string, ...addresses: readonly string[]): KubernetesObject =>
  object(
    'discovery.k8s.io/v1',
    'EndpointSlice',
    path,
    {
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    },
    { 'kubernetes.io/service-name': path.slice(path.indexOf('/') + 1) },
  );

/** The mesh of the honest proxies: `s0`, `s1`, ... in namespace `shop`. */
export function mesh(services: number): readonly KubernetesObject[] {
  return Array.from({ length: services }, (_, i) => service(`shop/s${i}`, `10.96.${i >> 8}.${i & 255}`));
}

/** A change that all honest proxies are sent: the object, and a text that appears in what they receive. */
export interface Change {
  readonly mark: string;
  readonly object: KubernetesObject;
}

/** Alternates between the kinds of changes: of routes, endpoints, clusters and listeners. */
export function changeOf(number: number): Change {
  const text = `m${number}x`;
  const address = (net: number): string => `10.${net}.${(number >> 8) & 255}.${number & 255}`;
  const changes: readonly Change[] = [
    {
      mark: text,
      object: istio('VirtualService', 'shop/counted', {
        hosts: ['s0'],
        http: [{ headers: { response: { set: { 'x-mark': text } } }, route: [{ destination: { host: 's1' } }] }],
      }),
    },
    { mark: address(200), object: slice('shop/s1', address(200)) },
    {
      mark: text,
      object: istio('DestinationRule', 'shop/s2', {
        host: 's2',
        trafficPolicy: { tls: { mode: 'SIMPLE', sni: `${text}.example.com` } },
      }),
    },
    {
      mark: address(201),
      object: istio('ServiceEntry', 'shop/tcp', {
        hosts: ['tcp.example.com'],
        addresses: [address(201)],
        ports: [{ number: 9000, name: 'tcp', protocol: 'TCP' }],
        resolution: 'STATIC',
        endpoints: [{ address: '10.202.0.1' }],
      }),
    },
  ];
  return changes[number % changes.length]!;
}

/** What a careless or hostile tenant writes into its own namespace. */
export function storm(random: Random): readonly KubernetesObject[] {
  const below = (most: number): number => Math.floor(random() * most);
  const routes = (http: unknown, hosts: unknown = [`s${below(100)}`]): unknown => ({ hosts, http });
  const setting = (value: string): unknown => routes([{ headers: { request: { set: { a: value } } } }]);
  const entry = (hosts: readonly string[], more: object = {}): unknown => ({
    hosts,
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    resolution: 'STATIC',
    endpoints: [{ address: `10.203.0.${below(250)}` }],
    ...more,
  });
  const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const makers: readonly ((path: string) => KubernetesObject)[] = [
    (path) => istio('VirtualService', path, routes([{ route: [{ destination: { host: 'nowhere' } }] }])),
    (path) =>
      istio(
        'VirtualService',
        path,
        routes(
          [{ match: 'all' }],
          many(100, (i) => `h${i}.example.com`),
        ),
      ),
    (path) => istio('VirtualService', path, routes([{ match: [{ uri: { regex: '(' } }] }])),
    (path) => istio('VirtualService', path, routes({}, [null])),
    (path) => istio('VirtualService', path, setting('%CEL(1 +)% %REQ(:)% %FILTER_STATE(a:FIELD)%')),
    (path) => istio('VirtualService', path, setting('%ENVIRONMENT(TOKEN)%')),
    // The address and a short name of another tenant's Service.
    (path) => istio('ServiceEntry', path, entry(['x.example.com'], { addresses: [`10.96.0.${below(100)}`] })),
    (path) => istio('ServiceEntry', path, entry([`s${below(100)}.shop`])),
    (path) => istio('ServiceEntry', path, entry(many(1 + below(20), (i) => `e${i}.${path.slice(6)}.example.com`))),
    (path) =>
      istio('Gateway', path, {
        selector: { istio: 'ingressgateway' },
        servers: [
          {
            hosts: ['*'],
            port: { number: 443, name: 'https', protocol: 'HTTPS' },
            tls: { mode: 'SIMPLE', serverCertificate: '/nowhere', privateKey: '/etc/shadow' },
          },
        ],
      }),
    (path) => istio('Sidecar', path, { egress: [{ hosts: many(below(20), (i) => `./s${i}`) }] }),
    (path) => istio('DestinationRule', path, { host: `s${below(100)}.shop.svc.cluster.local`, subsets: [{}] }),
    (path) => service(path, `10.97.0.${below(250)}`),
    (path) => slice(path, ...many(below(20), (i) => `10.204.0.${i}`)),
  ];
  // Combinations too large for any mesh to serve.
  const large: readonly ((path: string) => KubernetesObject)[] = [
    (path) =>
      istio(
        'ServiceEntry',
        path,
        entry(
          many(101, (i) => `p${i}.example.com`),
          { ports: many(100, (i) => ({ number: 1000 + i, name: `p${i}`, protocol: 'TCP' })) },
        ),
      ),
    (path) =>
      istio('DestinationRule', path, {
        host: 'e0.storm.example.com',
        subsets: many(5_000, (i) => ({ name: `v${i}` })),
      }),
    (path) =>
      istio(
        'VirtualService',
        path,
        routes(
          many(200, (i) => ({ match: many(60, (j) => ({ uri: { prefix: `/${i}/${j}` } })) })),
          many(20, (i) => `m${i}.example.com`),
        ),
      ),
  ];
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
  return [...many(50, (i) => pick(makers)(`storm/o${i}`)), pick(large)('storm/large')];
}
