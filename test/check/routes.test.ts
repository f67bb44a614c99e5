import { describe, expect, test } from 'vitest';
import { checked, destinationRule, gateway, places, service, serviceEntry, virtualService } from './checked.ts';

const orders = service('shop/orders', '{selector: {app: orders}, ports: [{name: http, port: 8080}]}');
const to = 'route: [{destination: {host: orders}}]';
const v = (spec: string, name = 'shop/v') => virtualService(name, spec);
const http = (route: string) => v(`{hosts: [orders], http: [{${route}}]}`);
const at = (field: string) => `warning VirtualService/shop/v spec.http[0].${field}`;

describe('what can never match', () => {
  test.each([
    ['uri: {exact: "/api/*"}', 'uri.exact'],
    ['uri: {prefix: "/a/*/b"}', 'uri.prefix'],
    ['uri: {prefix: "api"}', 'uri.prefix'],
    ['uri: {exact: "/a?b=c"}', 'uri.exact'],
    ['method: {exact: get}', 'method.exact'],
    ['method: {exact: Post}', 'method.exact'],
    ['method: {prefix: get}', 'method.prefix'],
    ['scheme: {exact: HTTPS}', 'scheme.exact'],
    ['scheme: {prefix: "http://"}', 'scheme.prefix'],
    ['uri: {prefix: "/a b"}', 'uri.prefix'],
    ['uri: {exact: "/\u00e9"}', 'uri.exact'],
    ['authority: {exact: "*.example"}', 'authority.exact'],
    ['authority: {prefix: "https://a"}', 'authority.prefix'],
    ['authority: {exact: a.example/b}', 'authority.exact'],
  ])('%s', (match, field) => {
    expect(places([orders, http(`match: [{${match}}], ${to}`)])).toEqual([at(`match[0].${field}`)]);
  });

  test.each([
    'uri: {prefix: /}',
    'uri: {prefix: ""}',
    'uri: {regex: "/a/.*"}',
    'method: {exact: GET}',
    'method: {exact: report}',
    'method: {regex: "get|GET"}',
    'scheme: {exact: https}',
    'scheme: {prefix: http}',
    'authority: {exact: "a.example:8080"}',
    'authority: {regex: "(.*[.])?a[.]example"}',
    'headers: {x-a: {exact: "*/*"}}',
  ])('nothing is said of %s', (match) => {
    expect(places([orders, http(`match: [{${match}}], ${to}`)])).toEqual([]);
  });
});

describe('groups of a regex', () => {
  const regex = (rewrite: string) =>
    http(`rewrite: {uriRegexRewrite: {match: "^/a/(.*)$", rewrite: '${rewrite}'}}, ${to}`);
  const field = 'rewrite.uriRegexRewrite.rewrite';

  test('are written with a backslash', () => {
    expect(checked([orders, regex('/$1')])).toEqual([
      `${at(field)}: is sent with "$1" as it stands: groups are written with a backslash. Write \\1.`,
    ]);
    expect(places([orders, regex('/${1}/x')])).toEqual([at(field)]);
    expect(places([orders, regex('/${rest}')])).toEqual([at(field)]);
    expect(places([orders, regex('/\\1')])).toEqual([]);
    expect(places([orders, regex('/$')])).toEqual([]);
  });

  test.each([
    [`rewrite: {uri: '/\\1'}, ${to}`, 'rewrite.uri'],
    [`rewrite: {authority: '$1.example'}, ${to}`, 'rewrite.authority'],
    ["redirect: {uri: '/$1'}", 'redirect.uri'],
    ["redirect: {authority: '${host}'}", 'redirect.authority'],
  ])('have no place in %s', (route, place) => {
    expect(places([orders, http(route)])).toEqual([at(place)]);
  });
});

test('a fault without a percentage meets no request', () => {
  expect(places([orders, http(`fault: {delay: {fixedDelay: 1s}}, ${to}`)])).toEqual([at('fault.delay')]);
  expect(places([orders, http(`fault: {abort: {httpStatus: 500}}, ${to}`)])).toEqual([at('fault.abort')]);
  expect(places([orders, http(`fault: {abort: {grpcStatus: UNAVAILABLE}}, ${to}`)])).toEqual([at('fault.abort')]);
  expect(places([orders, http(`fault: {abort: {httpStatus: 500, percentage: {value: 1}}}, ${to}`)])).toEqual([]);
  expect(places([orders, http(`fault: {delay: {fixedDelay: 1s, percent: 5}}, ${to}`)])).toEqual([]);
});

describe('routes of a kind that nothing takes', () => {
  const external = (protocol: string, port = 443) =>
    serviceEntry(
      'shop/e',
      `{hosts: [x.example], addresses: [198.18.7.7], resolution: DNS, ports: [{number: ${port}, name: p, protocol: ${protocol}}]}`,
    );
  const route = (kind: string) =>
    `${kind}: [{${kind === 'tls' ? 'match: [{sniHosts: [x.example]}], ' : ''}route: [{destination: {host: x.example, port: {number: 443}}}]}]`;
  const said = (protocol: string, kind: string) =>
    places([external(protocol), v(`{hosts: [x.example], ${route(kind)}}`)]);

  test('on sidecars, by the protocol of the ports', () => {
    for (const [kind, takers] of [
      ['http', ['HTTP', 'HTTP2', 'GRPC']],
      ['tls', ['TLS', 'HTTPS']],
      ['tcp', ['TCP', 'Mongo']],
    ] as const)
      for (const protocol of ['HTTP', 'HTTP2', 'GRPC', 'TLS', 'HTTPS', 'TCP', 'Mongo'])
        expect([kind, protocol, said(protocol, kind)]).toEqual([
          kind,
          protocol,
          (takers as readonly string[]).includes(protocol) ? [] : [`warning VirtualService/shop/v spec.${kind}`],
        ]);
  });

  test('nothing is said if the port is detected, if one host is not known, or if another port takes them', () => {
    const detected = service('shop/d', '{selector: {app: d}, ports: [{port: 80}]}');
    expect(places([detected, v('{hosts: [d], http: [{route: [{destination: {host: d}}]}]}')])).toEqual([
      'warning Service/shop/d spec.ports[0]',
    ]);
    expect(places([external('HTTPS'), v(`{hosts: [x.example, y.example], ${route('http')}}`)])).toEqual([]);
    const both = service('shop/b', '{selector: {app: b}, ports: [{name: https, port: 443}, {name: http, port: 80}]}');
    expect(places([both, v('{hosts: [b], http: [{route: [{destination: {host: b, port: {number: 80}}}]}]}')])).toEqual(
      [],
    );
  });

  const servers = (spec: string, name = 'edge/g') => gateway(name, `{selector: {gw: x}, servers: [${spec}]}`);
  const passthrough = servers(
    '{port: {number: 443, name: tls, protocol: TLS}, hosts: [x.example], tls: {mode: PASSTHROUGH}}',
  );
  const plain = (name?: string) => servers('{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}', name);
  const tcp = servers('{port: {number: 9000, name: tcp, protocol: TCP}, hosts: ["*"]}');
  const bound = (kind: string, gateways = '[edge/g]') =>
    v(`{hosts: [x.example], gateways: ${gateways}, ${route(kind)}}`);

  test('on gateways, by what their servers do with connections', () => {
    const idle = ['warning VirtualService/shop/v spec.gateways[0]'];
    for (const [name, server, takes] of [
      ['PASSTHROUGH', passthrough, 'tls'],
      ['HTTP', plain(), 'http'],
      ['TCP', tcp, 'tcp'],
    ] as const)
      for (const kind of ['http', 'tls', 'tcp'])
        expect([name, kind, places([external('TLS'), server, bound(kind)])]).toEqual([
          name,
          kind,
          kind === takes ? [] : idle,
        ]);
  });

  test('a Gateway beside one that takes them is named, and a server for other hosts does not count', () => {
    expect(places([external('HTTP'), passthrough, plain('edge/h'), bound('http', '[edge/h, edge/g]')])).toEqual([
      'warning VirtualService/shop/v spec.gateways[1]',
    ]);
    const others = servers(
      '{port: {number: 443, name: tls, protocol: TLS}, hosts: [x.example], tls: {mode: PASSTHROUGH}}, {port: {number: 80, name: http, protocol: HTTP}, hosts: [y.example]}',
    );
    expect(places([external('TLS'), others, bound('http')])).toEqual([
      'warning VirtualService/shop/v spec.gateways[0]',
    ]);
  });

  test('routes for an egress gateway, some of which are for sidecars, are right', () => {
    const spec = `{hosts: [x.example], gateways: [edge/g, mesh], ${route('tls')}, tcp: [{match: [{gateways: [edge/g]}], route: [{destination: {host: x.example, port: {number: 443}}}]}]}`;
    expect(places([external('TLS'), tcp, v(spec)])).toEqual([]);
  });
});

describe('TLS within TLS', () => {
  const partner = (ports: string) =>
    serviceEntry('shop/p', `{hosts: [p.example], resolution: DNS, location: MESH_EXTERNAL, ports: ${ports}}`);
  const https = partner('[{number: 443, name: https, protocol: HTTPS}]');
  const simple = destinationRule('shop/p', '{host: p.example, trafficPolicy: {tls: {mode: SIMPLE}}}');
  const route = (gateways: string, hosts = '[p.example]') =>
    v(
      `{hosts: ${hosts}, gateways: ${gateways}, http: [{route: [{destination: {host: p.example, port: {number: 443}}}]}]}`,
    );
  const double = (field: string) => [`warning DestinationRule/shop/p ${field}`];

  test('a rule that encrypts what the application encrypts is told', () => {
    expect(places([https, simple])).toEqual(double('spec.trafficPolicy.tls.mode'));
    expect(places([https, simple, route('[mesh]')])).toEqual([
      ...double('spec.trafficPolicy.tls.mode'),
      'warning VirtualService/shop/v spec.http',
    ]);
    const level = (port: number) =>
      destinationRule(
        'shop/p',
        `{host: p.example, trafficPolicy: {portLevelSettings: [{port: {number: ${port}}, tls: {mode: SIMPLE}}]}}`,
      );
    const two = partner('[{number: 80, name: http, protocol: HTTP}, {number: 443, name: tls, protocol: TLS}]');
    expect(places([two, level(443)])).toEqual(double('spec.trafficPolicy.portLevelSettings[0].tls.mode'));
    expect(places([two, level(80)])).toEqual([]);
  });

  test('nothing is said where proxies send HTTP there: from a gateway, or from another host', () => {
    const g = gateway(
      'edge/g',
      '{selector: {gw: x}, servers: [{port: {number: 443, name: http, protocol: HTTP}, hosts: ["*"]}]}',
    );
    expect(places([https, simple, g, route('[edge/g]')])).toEqual([]);
    expect(places([https, simple, orders, route('[mesh]', '[orders]')])).toEqual([]);
    expect(places([partner('[{number: 443, name: http, protocol: HTTP}]'), simple])).toEqual([]);
    expect(
      places([https, destinationRule('shop/p', '{host: p.example, trafficPolicy: {tls: {mode: DISABLE}}}')]),
    ).toEqual([]);
    const later = partner('[{number: 80, name: http, protocol: HTTP, targetPort: 443}]');
    expect(places([later, simple])).toEqual([]);
  });

  test('in a subset, for a Service, and for a wildcard', () => {
    const subset = '{host: p.example, subsets: [{name: a, trafficPolicy: {tls: {mode: SIMPLE}}}]}';
    expect(places([https, destinationRule('shop/p', subset)])).toEqual(
      double('spec.subsets[0].trafficPolicy.tls.mode'),
    );
    const own = service('shop/own', '{selector: {app: own}, ports: [{name: https, port: 443}]}');
    expect(places([own, destinationRule('shop/p', '{host: own, trafficPolicy: {tls: {mode: SIMPLE}}}')])).toEqual(
      double('spec.trafficPolicy.tls.mode'),
    );
    const wild = (host: string, protocol: string) => [
      serviceEntry(
        'shop/w',
        `{hosts: ["${host}"], resolution: NONE, ports: [{number: 443, name: p, protocol: ${protocol}}]}`,
      ),
      destinationRule('shop/p', '{host: "*.p.example", trafficPolicy: {tls: {mode: SIMPLE}}}'),
    ];
    expect(places(wild('*.p.example', 'TLS'))).toEqual(double('spec.trafficPolicy.tls.mode'));
    expect(places(wild('*.p.example', 'HTTP'))).toEqual([]);
  });
});

test('an address is no host for sidecars on the ports of the service that has it', () => {
  const entry = (address: string, protocol = 'HTTP') =>
    serviceEntry(
      'shop/e',
      `{hosts: [x.example], addresses: ["${address}"], resolution: STATIC, endpoints: [{address: 198.51.100.7}], ports: [{number: 8080, name: p, protocol: ${protocol}}]}`,
    );
  const route = (host: string, gateways = '[mesh]') =>
    v(
      `{hosts: ["${host}"], gateways: ${gateways}, http: [{route: [{destination: {host: x.example, port: {number: 8080}}}]}]}`,
    );
  const told = ['warning VirtualService/shop/v spec.hosts[0]'];
  expect(places([entry('198.18.7.7'), route('198.18.7.7')])).toEqual(told);
  expect(places([entry('2001:db8::7'), route('2001:db8::7')])).toEqual(told);
  const of = (kind: string) =>
    v(
      `{hosts: [x.example, "198.18.7.7"], ${kind}: [{match: [{${kind === 'tls' ? 'sniHosts: [x.example], ' : ''}port: 8080}], route: [{destination: {host: x.example, port: {number: 8080}}}]}]}`,
    );
  const second = ['warning VirtualService/shop/v spec.hosts[1]'];
  expect(places([entry('198.18.7.7'), of('http')])).toEqual(second);
  expect(places([entry('198.18.7.7', 'TCP'), of('tcp')])).toEqual(second);
  expect(places([entry('198.18.7.7', 'TLS'), of('tls')])).toEqual(second);
  expect(places([entry('198.18.7.8'), of('http')])).toEqual([]);
  expect(places([entry('198.18.7.0/24'), of('http')])).toEqual([]);
  const own = service('shop/s', '{clusterIP: 10.0.0.7, selector: {app: s}, ports: [{name: http, port: 8080}]}');
  expect(places([entry('198.18.7.7'), own, route('10.0.0.7')])).toEqual(told);
  const g = gateway(
    'edge/g',
    '{selector: {gw: x}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}',
  );
  expect(places([entry('198.18.7.7'), g, route('198.18.7.7', '[edge/g]')])).toEqual([]);
});

describe('routes for one host', () => {
  const of = (name: string, exportTo: string) =>
    virtualService(
      name,
      `{hosts: [orders.shop.svc.cluster.local], exportTo: ${exportTo}, http: [{route: [{destination: {host: orders.shop.svc.cluster.local}}]}]}`,
    );
  const lost = (name: string) => `error VirtualService/${name} spec.hosts`;

  test('another namespace that exports its own to the clients of the host takes them', () => {
    expect(places([orders, of('shop/v', '["*"]'), of('zoo/v', '[shop]')])).toEqual([lost('shop/v')]);
    expect(places([orders, of('shop/v', '["*"]'), of('zoo/v', '[park]')])).toEqual([lost('shop/v')]);
    expect(places([orders, of('a/v', '[k, l]'), of('b/v', '[l, m]')])).toEqual([lost('b/v')]);
    expect(places([orders, of('a/v', '["*"]'), of('b/v', '["*"]')])).toEqual([lost('b/v')]);
  });

  test('what is never used, because its only clients have their own, is told', () => {
    expect(places([orders, of('park/v', '["."]'), of('zoo/v', '[park]')])).toEqual([lost('zoo/v')]);
  });

  test('a namespace may have routes for itself', () => {
    expect(places([orders, of('shop/v', '["*"]'), of('zoo/v', '["."]')])).toEqual([]);
    expect(places([orders, of('shop/v', '["."]'), of('zoo/v', '["."]')])).toEqual([]);
    expect(places([orders, of('shop/v', '["~"]'), of('zoo/v', '["*"]')])).toEqual([]);
  });
});

test('a VirtualService without hosts, to which nobody delegates, is told', () => {
  const part = v('{http: [{route: [{destination: {host: orders, port: {number: 8080}}}]}]}');
  const root = (to: string, hosts = 'hosts: [a.example], ') =>
    virtualService('shop/root', `{${hosts}gateways: [edge/g], http: [{delegate: {name: ${to}, namespace: shop}}]}`);
  const g = gateway(
    'edge/g',
    '{selector: {gw: x}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}',
  );
  const told = 'warning VirtualService/shop/v spec';
  expect(places([orders, part])).toEqual([told]);
  expect(places([orders, g, part, root('other')])).toContain(told);
  expect(places([orders, g, part, root('v', '')])).toContain(told);
  expect(places([orders, g, part, root('v')])).toEqual([]);
});

test('a match for a port that the hosts do not have, or that has another protocol, never matches in the mesh', () => {
  const mixed = service(
    'shop/mixed',
    '{selector: {app: m}, ports: [{name: http, port: 80}, {name: https, port: 443}, {name: tcp, port: 5432}]}',
  );
  const to = (port: number) => `route: [{destination: {host: mixed, port: {number: ${port}}}}]`;
  const http = (port: number, more = '') =>
    v(`{hosts: [mixed], ${more}http: [{match: [{port: ${port}}], ${to(80)}}, {${to(80)}}]}`);
  const told = (kind: string) => [`warning VirtualService/shop/v spec.${kind}[0].match[0].port`];
  expect(checked([mixed, http(5432)])).toEqual([
    `${told('http')[0]}: never matches: port 5432 has protocol TCP, which http routes are not for; write another kind of route, or declare the protocol.`,
  ]);
  expect(checked([mixed, http(81)])).toEqual([
    `${told('http')[0]}: never matches: its hosts have no port 81; name one of 80, 443, 5432.`,
  ]);
  const tls = (port: number) =>
    v(`{hosts: [mixed], tls: [{match: [{port: ${port}, sniHosts: [mixed.shop.svc.cluster.local]}], ${to(443)}}]}`);
  const tcp = (port: number) => v(`{hosts: [mixed], tcp: [{match: [{port: ${port}}], ${to(5432)}}]}`);
  expect(places([mixed, tls(80)])).toEqual(told('tls'));
  expect(places([mixed, tcp(80)])).toEqual(told('tcp'));
  for (const fine of [http(80), tls(443), tcp(5432)]) expect(places([mixed, fine])).toEqual([]);
  const g = gateway(
    'edge/g',
    '{selector: {gw: x}, servers: [{port: {number: 81, name: http, protocol: HTTP}, hosts: ["*"]}]}',
  );
  expect(places([mixed, g, http(81, 'gateways: [edge/g], ')])).toEqual([]);
});
