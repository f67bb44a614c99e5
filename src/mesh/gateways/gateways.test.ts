import { expect, test } from 'vitest';
import { TestMesh, connectedProxy, readObjects } from '../../../test/harness/mesh.ts';
import { type KubernetesObject, printRef } from '../../api/object.ts';

const services = ['a', 'b', 'c']
  .map(
    (name) => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80}]}
---`,
  )
  .join('');

function gateway(name: string, servers: string, second = 0): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: ${name}, namespace: edge, creationTimestamp: "2026-01-01T00:00:0${second}Z"}
spec:
  selector: {istio: ingress}
  servers: ${servers}
---`;
}

function route(name: string, spec: string, second = 0, namespace = 'shop'): string {
  return `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${name}, namespace: ${namespace}, creationTimestamp: "2026-01-01T00:00:0${second}Z"}
spec: ${spec}
---`;
}

const http = (hosts: string, more = '') => `{port: {number: 80, name: http, protocol: HTTP}, hosts: [${hosts}]${more}}`;
const to = (service: string) => `[{route: [{destination: {host: ${service}}}]}]`;

function node(labels: Readonly<Record<string, string>> = { istio: 'ingress' }, namespace = 'edge') {
  const metadata = { NAMESPACE: namespace, INSTANCE_IPS: '10.9.0.1', LABELS: labels };
  return { id: `router~10.9.0.1~gw.${namespace}~${namespace}.svc.cluster.local`, metadata };
}

function meshWith(...yaml: string[]): TestMesh {
  const mesh = new TestMesh();
  mesh.apply(readObjects(services + yaml.join('')));
  mesh.connect(connectedProxy('router', node()));
  return mesh;
}

interface Hosts {
  /** Table, then virtual host, then `path -> cluster` for each route. */
  readonly [table: string]: Readonly<Record<string, readonly string[]>>;
}

/** The route tables of the router, in short. */
function tables(mesh: TestMesh, stream = 'router'): Hosts {
  const found: Record<string, Record<string, string[]>> = {};
  for (const table of mesh.json(stream).rds as Table[])
    found[table.name] = Object.fromEntries(
      (table.virtualHosts ?? [])
        .map(({ name, domains, requireTls, routes = [] }): [string, string[]] => [
          `${name} for ${domains.join(' ')}${requireTls === undefined ? '' : ' over TLS'}`,
          routes.map(({ match, route, redirect }) => {
            const target = route?.cluster ?? `redirect ${JSON.stringify(redirect)}`;
            return `${match.prefix ?? match.path} -> ${target.replace('.shop.svc.cluster.local', '')}`;
          }),
        ])
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  return found;
}

interface Table {
  readonly name: string;
  readonly virtualHosts?: readonly {
    readonly name: string;
    readonly domains: readonly string[];
    readonly requireTls?: string;
    readonly routes?: readonly {
      readonly match: { readonly prefix?: string; readonly path?: string };
      readonly route?: { readonly cluster: string };
      readonly redirect?: object;
    }[];
  }[];
}

const listenersOf = (mesh: TestMesh, stream = 'router'): string[] =>
  (mesh.json(stream).lds as { name: string }[]).map(({ name }) => name);

function problemsOf(mesh: TestMesh): string[] {
  return [...mesh.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems.map(({ object, reason, field }) => `${printRef(object)} ${reason} ${field}`),
  );
}

const object = (yaml: string): KubernetesObject => readObjects(yaml)[0]!;

test('a gateway without routes answers with 404', () => {
  expect(tables(meshWith(gateway('g', `[${http('"*"')}]`)))).toEqual({ 'http.80': { 'blackhole:80 for *': [] } });
});

test('hosts are those that the server and the VirtualService have in common, in lower case', () => {
  const mesh = meshWith(
    gateway('g', `[${http('"*.example.com", exact.example.org')}]`),
    route('v', `{hosts: [A.Example.com, "*.example.org", other.net], gateways: [edge/g], http: ${to('a')}}`),
    route('w', `{hosts: ["*"], gateways: [edge/g], http: ${to('b')}}`, 1),
  );
  expect(tables(mesh)['http.80']).toEqual({
    'a.example.com:80 for a.example.com': ['/ -> outbound|80||a'],
    '*.example.com:80 for *.example.com': ['/ -> outbound|80||b'],
    'exact.example.org:80 for exact.example.org': ['/ -> outbound|80||a', '/ -> outbound|80||b'],
  });
});

test('a server host with a namespace is for VirtualServices of that namespace', () => {
  const mesh = meshWith(
    gateway('g', `[${http('shop/a.example.com, ./b.example.com, "*/c.example.com"')}]`),
    route('shop', `{hosts: ["*.example.com"], gateways: [edge/g], http: ${to('a.shop.svc.cluster.local')}}`),
    route('edge', `{hosts: ["*.example.com"], gateways: [g], http: ${to('b.shop.svc.cluster.local')}}`, 1, 'edge'),
  );
  expect(tables(mesh)['http.80']).toEqual({
    'a.example.com:80 for a.example.com': ['/ -> outbound|80||a'],
    'b.example.com:80 for b.example.com': ['/ -> outbound|80||b'],
    'c.example.com:80 for c.example.com': ['/ -> outbound|80||a', '/ -> outbound|80||b'],
  });
});

test('routes of several VirtualServices follow one another, private ones first and catch-alls last', () => {
  const mesh = meshWith(
    gateway('g', `[${http('"*"')}]`),
    route(
      'old',
      `{hosts: [x.com], gateways: [edge/g], http: [{match: [{uri: {prefix: /old}}], route: [{destination: {host: a}}]}, {route: [{destination: {host: a}}]}]}`,
    ),
    route(
      'new',
      `{hosts: [x.com], gateways: [g], exportTo: ["."], http: [{match: [{uri: {prefix: /new}}], route: [{destination: {host: b.shop.svc.cluster.local}}]}]}`,
      5,
      'edge',
    ),
  );
  expect(tables(mesh)['http.80']).toEqual({
    'x.com:80 for x.com': ['/new -> outbound|80||b', '/old -> outbound|80||a', '/ -> outbound|80||a'],
  });
});

test('hosts with the same routes share a virtual host under the most specific name', () => {
  const mesh = meshWith(
    gateway('g', `[${http('"*"')}]`),
    route('v', `{hosts: ["*.x.com", x.com, longer.x.com], gateways: [edge/g], http: ${to('a')}}`),
    route('w', `{hosts: [x.com], gateways: [edge/g], http: ${to('b')}}`, 1),
  );
  expect(tables(mesh)['http.80']).toEqual({
    'longer.x.com:80 for longer.x.com *.x.com': ['/ -> outbound|80||a'],
    'x.com:80 for x.com': ['/ -> outbound|80||a', '/ -> outbound|80||b'],
  });
});

test('a server that redirects to https does so for all of its hosts', () => {
  const mesh = meshWith(
    gateway('g', `[${http('a.com, shop/b.com, c.com', ', tls: {httpsRedirect: true}')}]`),
    gateway('h', `[${http('d.com')}]`, 1),
    route('v', `{hosts: [a.com, d.com], gateways: [edge/g, edge/h], http: ${to('a')}}`),
  );
  expect(tables(mesh)['http.80']).toEqual({
    'a.com:80 for a.com over TLS': ['/ -> outbound|80||a'],
    'b.com:80 for b.com c.com over TLS': [],
    'd.com:80 for d.com': ['/ -> outbound|80||a'],
  });
});

test('gateways on one port share its table, each with the routes that name it', () => {
  const mesh = meshWith(
    gateway('g', `[${http('a.com, both.com')}]`),
    gateway('h', `[${http('b.com, both.com')}]`, 1),
    route('v', `{hosts: ["*"], gateways: [edge/h], http: ${to('b')}}`),
    route(
      'w',
      `{hosts: ["*"], gateways: [edge/g, edge/h], http: [{match: [{gateways: [edge/g]}], route: [{destination: {host: a}}]}]}`,
      1,
    ),
  );
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_80']);
  expect(tables(mesh)['http.80']).toEqual({
    'a.com:80 for a.com': ['/ -> outbound|80||a'],
    'b.com:80 for b.com': ['/ -> outbound|80||b'],
    'both.com:80 for both.com': ['/ -> outbound|80||a', '/ -> outbound|80||b'],
  });
});

test('ports in matches are those of servers, and a Service in front of the router says where these listen', () => {
  const mesh = meshWith(
    gateway(
      'g',
      `[${http('a.com')}, {port: {number: 81, name: other, protocol: HTTP}, hosts: [b.com]}, {port: {number: 82, name: x, protocol: HTTP}, hosts: [c.com]}]`,
    ),
    `
apiVersion: v1
kind: Service
metadata: {name: gw, namespace: edge}
spec: {clusterIP: 10.0.0.9, selector: {istio: ingress}, ports: [{name: http, port: 80, targetPort: 8080}, {name: other, port: 81, targetPort: 8081}]}
---`,
    route('v', `{hosts: ["*"], gateways: [edge/g], http: [{match: [{port: 81}], route: [{destination: {host: b}}]}]}`),
  );
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_8080', '0.0.0.0_8081', '0.0.0.0_82']);
  expect(tables(mesh)).toEqual({
    'http.8080': { 'blackhole:80 for *': [] },
    'http.8081': { 'b.com:81 for b.com': ['/ -> outbound|80||b'] },
    'http.82': { 'blackhole:82 for *': [] },
  });
  mesh.delete(readObjects('{apiVersion: v1, kind: Service, metadata: {name: gw, namespace: edge}}'));
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_80', '0.0.0.0_81', '0.0.0.0_82']);
});

test('TCP servers follow the routes of VirtualServices', () => {
  const mesh = meshWith(
    gateway('g', `[{port: {number: 9000, name: tcp, protocol: TCP}, hosts: ["*"]}]`),
    route('h', `{hosts: ["*"], gateways: [edge/g], http: ${to('a')}}`),
  );
  expect(listenersOf(mesh)).toEqual([]);
  const tcp = object(
    route('t', `{hosts: ["*"], gateways: [edge/g], tcp: [{match: [{port: 9000}], route: [{destination: {host: a}}]}]}`),
  );
  mesh.apply([tcp]);
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_9000']);
  mesh.delete([tcp]);
  expect(listenersOf(mesh)).toEqual([]);
});

test('owners hear of servers, routes and names that have no place', () => {
  const mesh = meshWith(
    gateway('g', `[${http('"*"')}]`),
    gateway('h', `[{port: {number: 80, name: tcp, protocol: TCP}, hosts: ["*"]}]`, 1),
    gateway('p', `[{port: {number: 443, name: tls, protocol: TLS}, hosts: ["*"], tls: {mode: PASSTHROUGH}}]`, 2),
    route(
      't',
      `{hosts: ["*.x"], gateways: [edge/p], tls: [{match: [{sniHosts: [a.x]}], route: [{destination: {host: a}}]}]}`,
    ),
    route(
      'u',
      `{hosts: ["*.x"], gateways: [edge/p], tls: [{match: [{sniHosts: [b.x]}, {sniHosts: [c.x, a.x]}], route: [{destination: {host: a}}]}]}`,
      1,
    ),
  );
  expect(problemsOf(mesh)).toEqual(
    expect.arrayContaining([
      'Gateway/edge/h Conflicted spec.servers[0].port',
      'VirtualService/shop/u Conflicted spec.tls[0].match[1].sniHosts',
    ]),
  );
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_443', '0.0.0.0_80']);
});

test('only routers whose labels a selector names have the gateway', () => {
  const mesh = meshWith(
    gateway('g', `[${http('"*"')}]`),
    `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: all, namespace: edge}
spec: {servers: [{port: {number: 81, name: http, protocol: HTTP}, hosts: ["*"]}]}
---`,
  );
  mesh.connect(connectedProxy('elsewhere', node({ istio: 'ingress', more: 'x' }, 'other')));
  mesh.connect(connectedProxy('other', node({ istio: 'egress' })));
  expect(listenersOf(mesh, 'elsewhere')).toEqual(['0.0.0.0_80', '0.0.0.0_81']);
  expect(listenersOf(mesh, 'other')).toEqual(['0.0.0.0_81']);
  mesh.disconnect('elsewhere');
  expect(listenersOf(mesh)).toEqual(['0.0.0.0_80', '0.0.0.0_81']);
});

test('labels of the router count where a match names no gateway', () => {
  const spec = (match: string) =>
    `{hosts: ["*"], gateways: [edge/g], http: [{match: [${match}], route: [{destination: {host: a}}]}, {route: [{destination: {host: b}}]}]}`;
  const mesh = meshWith(gateway('g', `[${http('"*"')}]`), route('v', spec('{sourceLabels: {istio: ingress}}')));
  const paths = (): readonly string[] => tables(mesh)['http.80']!['*:80 for *']!;
  expect(paths()).toEqual(['/ -> outbound|80||a']);
  mesh.apply([object(route('v', spec('{sourceLabels: {istio: egress}}')))]);
  expect(paths()).toEqual(['/ -> outbound|80||b']);
  mesh.apply([object(route('v', spec('{sourceLabels: {istio: egress}, gateways: [edge/g]}')))]);
  expect(paths()).toEqual(['/ -> outbound|80||a']);
});

test('routers that differ in labels which nobody asks for share virtual hosts and listeners', () => {
  const mesh = meshWith(
    gateway('g', `[${http('"*"')}]`),
    route('v', `{hosts: [a.com], gateways: [edge/g], http: ${to('a')}}`),
  );
  const proxy = connectedProxy('rolled', node({ istio: 'ingress', 'pod-template-hash': 'x' }));
  const built = ['gatewaySets', 'gatewayVirtualHosts', 'gatewayListeners.built'].map((name) =>
    mesh.graph.collections.find((candidate) => candidate.name === name)!,
  );
  for (const collection of built) collection.track();
  const draft = mesh.graph.draft([mesh.mesh.inputs.proxies.write(proxy.stream, proxy)]);
  for (const collection of built) expect([...draft.changes(collection)]).toEqual([]);
  draft.publish();
  expect(tables(mesh, 'rolled')).toEqual(tables(mesh));
  mesh.disconnect('router');
  expect(listenersOf(mesh, 'rolled')).toEqual(['0.0.0.0_80']);
});

test('what changes is served as if it had always been so', () => {
  const mesh = meshWith();
  const g = (hosts: string, more = '') => object(gateway('g', `[${http(hosts, more)}]`));
  const v = (hosts: string, service: string, more = '') =>
    object(route('v', `{hosts: [${hosts}], gateways: [edge/g]${more}, http: ${to(service)}}`));
  const w = object(route('w', `{hosts: [a.com], gateways: [edge/g], http: ${to('b')}}`, 1));
  const steps: (readonly [KubernetesObject[], Hosts])[] = [
    [[v('a.com', 'a')], {}],
    [[g('"*"')], { 'http.80': { 'a.com:80 for a.com': ['/ -> outbound|80||a'] } }],
    [[v('a.com, b.com', 'c')], { 'http.80': { 'a.com:80 for a.com b.com': ['/ -> outbound|80||c'] } }],
    [
      [w],
      {
        'http.80': {
          'a.com:80 for a.com': ['/ -> outbound|80||c', '/ -> outbound|80||b'],
          'b.com:80 for b.com': ['/ -> outbound|80||c'],
        },
      },
    ],
    [[g('a.com')], { 'http.80': { 'a.com:80 for a.com': ['/ -> outbound|80||c', '/ -> outbound|80||b'] } }],
    [[v('a.com', 'a', ', exportTo: ["."]')], { 'http.80': { 'a.com:80 for a.com': ['/ -> outbound|80||b'] } }],
    [
      [g('a.com, c.com', ', tls: {httpsRedirect: true}')],
      {
        'http.80': {
          'a.com:80 for a.com over TLS': ['/ -> outbound|80||b'],
          'c.com:80 for c.com over TLS': [],
        },
      },
    ],
  ];
  for (const [objects, expected] of steps) {
    mesh.apply(objects);
    expect(tables(mesh)).toEqual(expected);
  }
  mesh.delete([g('')]);
  expect(tables(mesh)).toEqual({});
});

test('one VirtualService of hundreds changes one virtual host, and no listener', () => {
  const mesh = new TestMesh({ oracle: false });
  const of = (i: number, service: string) =>
    object(route(`v${i}`, `{hosts: [h${i}.com], gateways: [edge/g], http: ${to(service)}}`));
  const routes = Array.from({ length: 300 }, (_, i) => of(i, 'a'));
  mesh.apply([...readObjects(services + gateway('g', `[${http('"*"')}]`)), ...routes]);
  mesh.connect(connectedProxy('router', node()));
  const changed = (name: string): number => {
    const collection = mesh.graph.collections.find((candidate) => candidate.name === name)!;
    return [...draft.changes(collection)].length;
  };
  const key = 'Kubernetes/shop/v7';
  for (const name of changing) mesh.graph.collections.find((candidate) => candidate.name === name)!.track();
  const draft = mesh.graph.draft([mesh.mesh.inputs.objects.VirtualService.write(key, of(7, 'b'))]);
  expect(Object.fromEntries(changing.map((name) => [name, changed(name)]))).toEqual({
    gatewayRouteClaims: 0,
    gatewayHosts: 0,
    gatewayVirtualHosts: 1,
    gatewayTableShards: 1,
    gatewayRouteTables: 1,
    gatewayListeners: 0,
  });
  draft.publish();
  expect(tables(mesh)['http.80']!['h7.com:80 for h7.com']).toEqual(['/ -> outbound|80||b']);
});

const changing = [
  'gatewayRouteClaims',
  'gatewayHosts',
  'gatewayVirtualHosts',
  'gatewayTableShards',
  'gatewayRouteTables',
  'gatewayListeners',
];

test.each([
  ['mesh', ['0.0.0.0_80', '0.0.0.0_81']],
  ['namespace', ['0.0.0.0_80']],
] as const)('with the scope %s a router has the listeners %j', (gatewayScope, listeners) => {
  const mesh = new TestMesh({ mesh: { gatewayScope } });
  const foreign = gateway('foreign', `[{port: {number: 81, name: http, protocol: HTTP}, hosts: ["*"]}]`);
  mesh.apply(readObjects(gateway('own', `[${http('"*"')}]`) + foreign.replace('namespace: edge', 'namespace: shop')));
  mesh.connect(connectedProxy('router', node()));
  expect(mesh.snapshot('router').lds.map(({ name }) => name)).toEqual(listeners);
});

test('servers that name the same files share the secrets of these', () => {
  const tls = 'tls: {mode: SIMPLE, serverCertificate: /certs/c, privateKey: /certs/k}';
  const server = (port: number, host: string) =>
    `{port: {number: ${port}, name: ${host}, protocol: HTTPS}, hosts: [${host}.com], ${tls}}`;
  const mesh = meshWith(gateway('g', `[${server(443, 'a')}, ${server(443, 'b')}, ${server(444, 'c')}]`));
  const { sds, missing } = mesh.snapshot('router');
  expect(sds.map(({ name }) => name)).toEqual(['file-cert:/certs/c~/certs/k']);
  expect(missing).toEqual([]);
});

/** Of a Service that only its own namespace and that of the routers have. */
const forRouters = `
apiVersion: v1
kind: Service
metadata: {name: hidden, namespace: shop, annotations: {networking.istio.io/exportTo: "edge,shop"}}
spec: {clusterIP: 10.0.0.9, ports: [{name: http, port: 80}]}
---`;

test('routers that others run are not why an owner is told that something is missing', () => {
  const mesh = meshWith(
    forRouters,
    gateway('g', `[${http('"*"')}]`),
    route('v', `{hosts: [x.example.com], gateways: [edge/g], http: ${to('hidden.shop.svc.cluster.local')}}`),
  );
  expect(problemsOf(mesh)).toEqual([]);
  mesh.connect(connectedProxy('stranger', node({ istio: 'ingress' }, 'evil')));
  expect(problemsOf(mesh)).toEqual([]);
  // Where nobody else serves the Gateway, this is what happens.
  mesh.disconnect('router');
  expect(problemsOf(mesh)).toEqual(['VirtualService/shop/v RefNotFound spec.http[0].route[0].destination.host']);
  mesh.connect(connectedProxy('shop', node({ istio: 'ingress' }, 'shop')));
  expect(problemsOf(mesh)).toEqual([]);
});

test('of routers in other namespaces all have to miss something', () => {
  const objects = [
    forRouters,
    gateway('g', `[${http('"*"')}]`).replace('namespace: edge', 'namespace: shop'),
    route('v', `{hosts: [x.example.com], gateways: [shop/g], http: ${to('hidden.shop.svc.cluster.local')}}`),
  ];
  const mesh = meshWith(...objects);
  mesh.connect(connectedProxy('stranger', node({ istio: 'ingress' }, 'evil')));
  expect(problemsOf(mesh)).toEqual([]);
});

test('ports that a router of others cannot open are not told either', () => {
  const mesh = meshWith(gateway('g', `[${http('"*"')}]`));
  const { id, metadata } = node({ istio: 'ingress' }, 'evil');
  mesh.connect(connectedProxy('stranger', { id, metadata: { ...metadata, UNPRIVILEGED_POD: 'true' } }));
  expect(problemsOf(mesh)).toEqual([]);
});

test('a claim is unknown to routers that no RequestAuthentication selects', () => {
  const remarks = ['VirtualService/shop/v Ineffective spec.http[0].match[0]'];
  const tokens = (labels: string): string => `
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: edge}
spec: {selector: {matchLabels: {${labels}}}, jwtRules: [{issuer: x, jwks: '{"keys":[]}'}]}
---`;
  const claim = `{headers: {"@request.auth.claims.group": {exact: a}}}`;
  const mesh = meshWith(
    gateway('g', `[${http('a.com')}]`),
    route('v', `{hosts: [a.com], gateways: [edge/g], http: [{match: [${claim}], route: [{destination: {host: a}}]}]}`),
  );
  expect(problemsOf(mesh)).toEqual(remarks);
  mesh.apply(readObjects(tokens('istio: other')));
  expect(problemsOf(mesh)).toEqual(expect.arrayContaining(remarks));
  mesh.apply(readObjects(tokens('istio: ingress')));
  expect(problemsOf(mesh).filter((problem) => problem.startsWith('VirtualService'))).toEqual([]);
  mesh.delete(readObjects(tokens('istio: ingress')));
  expect(problemsOf(mesh)).toEqual(remarks);
});

test('a passthrough server forwards only the names that are among its own hosts', () => {
  const server = (port: number, ...hosts: string[]) =>
    `{port: {number: ${port}, name: tls-${port}, protocol: TLS}, hosts: ${JSON.stringify(hosts)}, tls: {mode: PASSTHROUGH}}`;
  const servers = [server(443, '*.pass.example', 'shop/own.example', 'other/theirs.example'), server(8443, '*')];
  const names = '[a.pass.example, "*.b.pass.example", x.other.example, own.example, theirs.example, "*.example"]';
  const tls = (match: string) => `tls: [{match: [{${match}}], route: [{destination: {host: a}}]}]`;
  const forwarded = (match: string) =>
    Object.fromEntries(
      (
        meshWith(
          gateway('pass', `[${servers.join()}]`),
          route('wide', `{hosts: ["*"], gateways: [edge/pass], ${tls(match)}}`),
        ).json('router').lds as ForwardingListener[]
      ).map(({ name, filterChains }) => [
        name,
        filterChains.flatMap(({ filterChainMatch }) => filterChainMatch?.serverNames ?? ['any']),
      ]),
    );
  expect(forwarded(`sniHosts: ${names}`)).toEqual({
    '0.0.0.0_443': ['*.b.pass.example', '*.pass.example', 'a.pass.example', 'own.example'],
    '0.0.0.0_8443': [
      '*.b.pass.example',
      '*.example',
      'a.pass.example',
      'own.example',
      'theirs.example',
      'x.other.example',
    ],
  });
  expect(forwarded('sniHosts: ["*"]')).toEqual({
    '0.0.0.0_443': ['*.pass.example', 'own.example'],
    '0.0.0.0_8443': ['any'],
  });
  expect(forwarded('port: 443, sniHosts: ["*.other.example"]')).toEqual({});
});

interface ForwardingListener {
  readonly name: string;
  readonly filterChains: readonly { readonly filterChainMatch?: { readonly serverNames?: readonly string[] } }[];
}
