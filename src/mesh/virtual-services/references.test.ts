import { describe, expect, test, vi } from 'vitest';
import { Derived } from '../../cache/derived.ts';
import { conditionsOf } from '../../status/conditions.ts';
import { TestMesh, connectedProxy, readObjects } from '../../../test/harness/mesh.ts';

const service = (name: string, ports: string, namespace = 'shop', exportTo = '*'): string => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}, annotations: {networking.istio.io/exportTo: "${exportTo}"}}
spec: {clusterIP: 10.0.0.1, ports: ${ports}}
---`;

const one = service('a', '[{name: http, port: 80}]');

const route = (spec: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: shop}
spec: ${spec}
---`;

const to = (destination: string): string => `{hosts: [a], http: [{route: [{destination: ${destination}}]}]}`;

/** Field and text of each problem. */
function problemsOf(mesh: TestMesh): string[] {
  return [...mesh.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems.map(({ reason, field, message }) => `${reason} ${field}: ${message.split(';')[0]!}`),
  );
}

function check(...yaml: string[]): string[] {
  const mesh = new TestMesh();
  mesh.apply(readObjects(yaml.join('')));
  return problemsOf(mesh);
}

test('a destination that does not exist is a problem, whether a proxy is there or not', () => {
  expect(check(one, route(to('{host: b}')))).toEqual([
    'RefNotFound spec.http[0].route[0].destination.host: "b.shop.svc.cluster.local" does not exist or is not exported to the client',
  ]);
});

test('of a Service that leads outside, it is said what is missing where it leads', () => {
  const alias = service('b', '[]').replace('clusterIP: 10.0.0.1', 'type: ExternalName, externalName: api.example.com');
  expect(check(one, alias, route(to('{host: b}')))).toEqual([
    'RefNotFound spec.http[0].route[0].destination.host: "b.shop.svc.cluster.local" leads to "api.example.com", which is not in the mesh',
  ]);
});

test('an alias of itself leads nowhere', () => {
  const host = 'b.shop.svc.cluster.local';
  const loop = service('b', '[]').replace('clusterIP: 10.0.0.1', `type: ExternalName, externalName: ${host}`);
  expect(check(one, loop, route(to('{host: b}')))).toHaveLength(1);
});

test('a destination that is not exported to the namespace of the VirtualService does not exist', () => {
  const hidden = service('b', '[{name: http, port: 80}]', 'other', '.');
  expect(check(one, hidden, route(to('{host: b.other.svc.cluster.local}')))).toHaveLength(1);
});

test('a destination without a port is right when it has any of the ports that requests come to', () => {
  const two = service('a', '[{name: http, port: 80}, {name: more, port: 81}]');
  const target = (port: number) => service('b', `[{name: http, port: ${port}}, {name: x, port: 99}]`);
  expect(check(two, target(81), route(to('{host: b}')))).toEqual([]);
  expect(check(two, target(82), route(to('{host: b}')))).toEqual([
    'RefNotFound spec.http[0].route[0].destination.port: "b.shop.svc.cluster.local" has no port 80, the port the request arrived on',
  ]);
});

test('a destination is not looked up for each port of the hosts', () => {
  const numbers = Array.from({ length: 60 }, (_, i) => i + 1);
  const many = service('a', `[${numbers.map((i) => `{name: http-${i}, port: ${i}}`).join(', ')}]`);
  const routes = numbers.map((i) => `{route: [{destination: {host: x${i}}}]}`);
  const mesh = new TestMesh({ oracle: false });
  mesh.apply(readObjects(many));
  const record = vi.spyOn(Derived.prototype as unknown as { record: () => unknown }, 'record');
  mesh.apply(readObjects(route(`{hosts: [a], http: [${routes.join(', ')}]}`)));
  const reads = record.mock.contexts.filter(
    (each) => (each as unknown as Derived<unknown, unknown>).name === 'references of routes',
  );
  record.mockRestore();
  expect(reads.length).toBeGreaterThanOrEqual(60);
  expect(reads.length).toBeLessThan(400);
});

test('a Gateway that is named again and again is compared once, and with all hosts at once', () => {
  const gateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: g, namespace: shop}
spec: {selector: {a: b}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.example.com]}]}
---`;
  const named = (count: number): [problems: number, compared: number] => {
    const mesh = new TestMesh({ oracle: false });
    mesh.apply(readObjects(one + gateway));
    const hosts = Array.from({ length: count }, (_, i) => `h${i}.example.com`);
    const gateways = hosts.map(() => 'g');
    const has = vi.spyOn(Set.prototype, 'has');
    mesh.apply(
      readObjects(route(`{hosts: [${hosts}], gateways: [${gateways}], http: [{route: [{destination: {host: a}}]}]}`)),
    );
    const compared = has.mock.calls.filter(([text]) => String(text).endsWith('.example.com')).length;
    has.mockRestore();
    return [problemsOf(mesh).filter((text) => text.includes('No server of Gateway')).length, compared];
  };
  const [problems, few] = named(10);
  expect(problems).toBe(1);
  expect(named(100)[1]).toBeLessThan(20 * few);
});

test('of many ports that a match or a rule could mean, none is named', () => {
  const ports = (count: number) => `[${Array.from({ length: count }, (_, i) => `{name: http-${i}, port: ${i + 1}}`)}]`;
  const match = route(
    '{hosts: [a], http: [{match: [{port: 99}], route: [{destination: {host: a, port: {number: 1}}}]}]}',
  );
  const rule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a, namespace: shop}
spec: {host: a, trafficPolicy: {portLevelSettings: [{port: {number: 99}, loadBalancer: {simple: RANDOM}}]}}
---`;
  const messages = (count: number) => {
    const mesh = new TestMesh();
    mesh.apply(readObjects(service('a', ports(count)) + match + rule));
    return [...mesh.mesh.problems.byObject.entries()].flatMap(([, problems]) => problems.map(({ message }) => message));
  };
  const told = (ofHosts: string, ofHost: string) => [
    `never matches: its hosts have no port 99; name ${ofHosts}.`,
    `has no effect: "a.shop.svc.cluster.local" has no port 99; name ${ofHost}.`,
  ];
  expect(messages(2).toSorted()).toEqual(told('one of 1, 2', 'one of 1, 2').toSorted());
  expect(messages(50).toSorted()).toEqual(told('one that they have', 'one that it has').toSorted());
});

test('mirrors, tcp and tls routes are looked at too', () => {
  const spec = `{
    hosts: [a],
    http: [{route: [{destination: {host: a}}], mirrors: [{destination: {host: m}}]}],
    tcp: [{route: [{destination: {host: t}}]}],
    tls: [{match: [{sniHosts: [a]}], route: [{destination: {host: s}}]}]
  }`;
  const ports = '[{name: http, port: 80}, {name: tcp, port: 81}, {name: tls, port: 82}]';
  expect(check(service('a', ports), route(spec)).map((text) => text.split(':')[0])).toEqual([
    'RefNotFound spec.http[0].mirrors[0].destination.host',
    'RefNotFound spec.tcp[0].route[0].destination.host',
    'RefNotFound spec.tls[0].route[0].destination.host',
  ]);
});

test('a Gateway that does not exist is named where it is written, also behind one that is written twice', () => {
  const spec = (gateways: string) => `{hosts: [a], gateways: ${gateways}, http: [{route: [{destination: {host: a}}]}]}`;
  const gateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: g, namespace: shop}
spec: {selector: {istio: ingress}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---`;
  expect(check(one, gateway, route(spec('[g, mesh, ./g, none]')))).toEqual([
    'RefNotFound spec.gateways[3]: There is no Gateway "none" in namespace "shop"',
  ]);
});

test('a DestinationRule for a host that nobody has is a problem until somebody has it', () => {
  const rule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: r, namespace: shop}
spec: {host: a, trafficPolicy: {loadBalancer: {simple: RANDOM}}}
---`;
  const mesh = new TestMesh();
  mesh.apply(readObjects(rule));
  expect(problemsOf(mesh)).toEqual([
    'RefNotFound spec.host: No Service or ServiceEntry has the host "a.shop.svc.cluster.local"',
  ]);
  mesh.apply(readObjects(one));
  expect(problemsOf(mesh)).toEqual([]);
});

test.each([
  ['host: gone.shop.svc.cluster.local, port: {number: 80}', 'host: "gone.shop.svc.cluster.local" does not exist'],
  ['host: a, port: {number: 81}', 'port: "a.shop.svc.cluster.local" has no port 81'],
  ['host: a, subset: v1, port: {number: 80}', 'subset: "v1" is not a subset of "a.shop.svc.cluster.local"'],
])('an egress proxy of a Sidecar that does not exist is a problem: %s', (proxy, message) => {
  const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: s, namespace: shop}
spec: {outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {${proxy}}}}
`;
  const [found, ...others] = check(one, sidecar);
  expect(found).toContain(`RefNotFound spec.outboundTrafficPolicy.egressProxy.${message}`);
  expect(others).toEqual([]);
});

test('who delegates to another namespace is told what is wrong there, and its owner is not', () => {
  const objects = readObjects(`
${service('a', '[{name: http, port: 80}]', 'shop', '.')}
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: part, namespace: shop}
spec: {http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: a}}]}, {match: [{uri: {prefix: /b}}], route: [{destination: {host: a}}]}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: g, namespace: other}
spec: {servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: root, namespace: other}
spec: {hosts: [x.example.com], gateways: [mesh, g], http: [{match: [{uri: {prefix: /a}}], delegate: {name: part, namespace: shop}}]}
`);
  const mesh = new TestMesh();
  mesh.apply(objects);
  mesh.connect(connectedProxy('router', { id: 'router~10.1.0.2~r.other~other.svc.cluster.local' }));
  const told = [...mesh.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems.map(({ object, field, message }) => `${object.name} ${field}: ${message.split(';')[0]!.slice(0, 90)}`),
  );
  expect(told).toEqual([
    'root spec.http: delegates to VirtualService/shop/part: spec.http[0].route[0].destination.host: "a.shop.svc',
    'root spec.http: delegates to VirtualService/shop/part: spec.http[1].match: contradicts spec.http[0].match ',
  ]);
});

test('however many destinations are missing, their number is bounded, and the owner is told it', () => {
  const missing = Array.from({ length: 500 }, (_, i) => `{destination: {host: b${i}}, weight: 1}`);
  const mesh = new TestMesh();
  mesh.apply(readObjects(one + route(`{hosts: [a], http: [{route: [${missing.join()}]}]}`)));
  const [[, problems = []] = []] = [...mesh.mesh.problems.byObject.entries()];
  expect(problems).toHaveLength(101);
  expect(conditionsOf(1, problems)).toMatchObject([
    { type: 'Accepted', status: 'True' },
    { type: 'ResolvedRefs', message: expect.stringMatching(/ And 495 more\.$/) as string },
  ]);
});

describe('hosts that no Gateway accepts', () => {
  const gateway = (name: string, ...servers: string[]) => `
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: ${name}, namespace: edge}
spec: {selector: {gw: ingress}, servers: [${servers.join()}]}
---`;
  const http = (...hosts: string[]) =>
    `{port: {number: 80, name: http, protocol: HTTP}, hosts: ${JSON.stringify(hosts)}}`;
  const passthrough = (number: number, ...hosts: string[]) =>
    `{port: {number: ${number}, name: tls-${number}, protocol: TLS}, hosts: ${JSON.stringify(hosts)}, tls: {mode: PASSTHROUGH}}`;
  const site = (hosts: string, gateways: string, more = 'http: [{route: [{destination: {host: a}}]}]') =>
    route(`{hosts: ${hosts}, gateways: ${gateways}, ${more}}`);
  const sni = (names: string) => `tls: [{match: [{sniHosts: ${names}}], route: [{destination: {host: a}}]}]`;
  const web = gateway('web', http('shop.example', '*.api.example', 'other/*.private.example'));
  const outside = (field: string, what: string, gateways: string) =>
    `Ineffective ${field}: No server of Gateway ${gateways} accepts ${what} from namespace shop, so it is never served there`;

  test.each([
    ['a host', '[www.shop.example]', '[edge/web]', [outside('spec.gateways[0]', '"www.shop.example"', 'edge/web')]],
    [
      'a host for others',
      '[x.private.example]',
      '[edge/web]',
      [outside('spec.gateways[0]', '"x.private.example"', 'edge/web')],
    ],
    [
      'one of several hosts',
      '[shop.example, b.example]',
      '[edge/web]',
      [outside('spec.hosts', '"b.example"', 'edge/web')],
    ],
    ['a host that the mesh has', '[a, shop.example]', '[mesh, edge/web]', []],
    ['a host under a wildcard', '[x.api.example]', '[edge/web]', []],
    ['a wildcard over a host', '["*.example"]', '[edge/web]', []],
  ])('are reported: %s', (_, hosts, gateways, expected) => {
    expect(check(one, web, site(hosts, gateways))).toEqual(expected);
  });

  test('server names count by the servers that forward by them, of any Gateway of the match', () => {
    const pass = gateway('pass', http('*'), passthrough(443, 'a.pass.example'), passthrough(8443, '*.more.example'));
    const tls = sni('[a.pass.example, x.more.example, b.pass.example]');
    expect(check(one, pass, site('["*"]', '[edge/pass]', tls))).toEqual([
      outside('spec.tls[0].match[0].sniHosts', 'server name "b.pass.example"', 'edge/pass'),
    ]);
    expect(check(one, pass, site('["*"]', '[mesh, edge/pass]', tls))).toEqual([]);
  });
});
