import { describe, expect, test } from 'vitest';
import {
  checked,
  destinationRule,
  gateway,
  places,
  pod,
  secret,
  service,
  serviceEntry,
  virtualService,
} from './checked.ts';

const routers = service(
  'edge/ingress',
  '{selector: {gw: ingress}, ports: [{name: http2, port: 80, targetPort: 8080}, {name: https, port: 443, targetPort: 8443}]}',
);
const orders = service(
  'shop/orders',
  '{selector: {app: orders}, ports: [{name: http, port: 8080}, {name: http-b, port: 9090}]}',
);

const web = (servers: string, selector = '{gw: ingress}', name = 'edge/web') =>
  gateway(name, `{selector: ${selector}, servers: ${servers}}`);
const http = (hosts: string, port = 80) =>
  `{port: {number: ${port}, name: http-${port}, protocol: HTTP}, hosts: ${hosts}}`;

describe('what a Gateway means on the routers that it selects', () => {
  const file = (name: string) => `tls: {mode: SIMPLE, serverCertificate: /c/${name}.crt, privateKey: /c/${name}.key}`;
  const https = (name: string, host: string) =>
    `{port: {number: 443, name: ${name}, protocol: HTTPS}, hosts: [${host}], ${file(name)}}`;

  test('a host that two Gateways have on one port is a conflict, with Pods, with a Service, and with neither', () => {
    const two = (selector: string) => [
      web(`[${https('one', 'a.example')}]`, selector, 'edge/first'),
      web(`[${https('two', 'a.example')}]`, selector, 'edge/second'),
    ];
    const conflict = ['error Gateway/edge/second spec.servers[0].hosts'];
    expect(places([routers, pod('edge/i', '{gw: ingress, app: x}'), ...two('{gw: ingress}')])).toEqual(conflict);
    expect(places([routers, ...two('{gw: ingress}')])).toEqual(conflict);
    expect(places(two('{gw: ingress}'))).toEqual(conflict);
    expect(places(two('{}'))).toEqual(conflict);
  });

  test('ports conflict where the Service in front leads them to the same one', () => {
    const front = service(
      'edge/f',
      '{selector: {gw: ingress}, ports: [{name: a, port: 80, targetPort: 80}, {name: b, port: 81, targetPort: 80}]}',
    );
    const tcp = (port: number) => `{port: {number: ${port}, name: tcp-${port}, protocol: TCP}, hosts: ["*"]}`;
    expect(places([front, web(`[${http('["*"]')}, ${tcp(81)}]`)])).toEqual([
      'error Gateway/edge/web spec.servers[1].port',
    ]);
    expect(places([web(`[${http('["*"]')}, ${tcp(81)}]`)])).toEqual([]);
  });

  test('Gateways for different routers do not meet', () => {
    expect(
      places([
        web(`[${https('one', 'a.example')}]`, '{gw: inner}', 'edge/first'),
        web(`[${https('two', 'a.example')}]`, '{gw: outer}', 'edge/second'),
        pod('edge/inner', '{gw: inner}'),
        pod('edge/outer', '{gw: outer}'),
      ]),
    ).toEqual([]);
  });

  test('a destination without a port needs one where requests arrive on a port that it does not have', () => {
    const to = (destination: string) =>
      virtualService(
        'shop/v',
        `{hosts: [a.example], gateways: [edge/web], http: [{route: [{destination: ${destination}}]}]}`,
      );
    const missing = ['warning VirtualService/shop/v spec.http[0].route[0].destination.port'];
    expect(places([routers, orders, web(`[${http('["*"]')}]`), to('{host: orders}')])).toEqual(missing);
    expect(places([orders, web(`[${http('["*"]')}]`), to('{host: orders}')])).toEqual(missing);
    expect(places([orders, web(`[${http('["*"]', 8080)}]`), to('{host: orders}')])).toEqual([]);
    expect(places([orders, web(`[${http('["*"]')}]`), to('{host: orders, port: {number: 9090}}')])).toEqual([]);
  });
});

describe('Secrets', () => {
  const server = (name: string) =>
    `{port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.example], tls: {mode: SIMPLE, credentialName: ${name}}}`;
  const site = web(`[${server('site')}]`);
  const router = pod('edge/i', '{gw: ingress}');
  const place = 'Gateway/edge/web spec.servers[0].tls.credentialName';

  test('one that is in the files is read', () => {
    expect(checked([router, site, secret('edge/site', '{tls.crt: foo, tls.key: bar}')])).toEqual([
      `warning ${place}: Secret edge/site has no certificate in PEM in tls.crt; this server is left out.`,
    ]);
    expect(checked([router, site, secret('edge/site', '{password: x}')])).toEqual([
      `warning ${place}: Secret edge/site has neither tls.crt with tls.key nor cert with key; this server is left out.`,
    ]);
  });

  test('one that is not there is missing if certificates are kept in the files, or the files are complete', () => {
    const missing = `${place}: Secret edge/site does not exist; this server is left out.`;
    expect(checked([router, site])).toEqual([]);
    expect(checked([router, site, secret('edge/other', '{password: x}')])).toEqual([]);
    expect(checked([router, site, secret('edge/other', '{tls.crt: foo, tls.key: bar}')])).toEqual([
      `warning ${missing}`,
    ]);
    expect(checked([router, site], { complete: true })).toEqual([`error ${missing}`]);
  });

  test.each(['data', 'stringData'])(
    'one whose %s SOPS has encrypted is there, and nobody knows what it contains',
    (field) => {
      const value = 'ENC[AES256_GCM,data:CwE4O1s=,iv:2k=,aad:o=,tag:w==,type:str]';
      const encrypted = `${secret('edge/site', `{tls.crt: "${value}", tls.key: "${value}"}`).replace('stringData', field)}\nsops: {version: 3.9.0, mac: "${value}"}`;
      for (const options of [{}, { complete: true }])
        expect(
          checked([router, site, encrypted, secret('edge/other', '{tls.crt: foo, tls.key: bar}')], options),
        ).toEqual(['warning Secret/edge/site sops: has been encrypted by SOPS, and what it contains is not looked at']);
      expect(checked([`${secret('edge/site', '{a: 1}')}\nsops: {}`])).toEqual([
        'error Secret/edge/site stringData.a: must be a string; put it in quotes',
      ]);
    },
  );

  test('one that cannot be read is wrong itself, and not missing', () => {
    expect(checked([router, site, secret('edge/site', '{tls.crt: 1, tls.key: bar}')], { complete: true })).toEqual([
      'error Secret/edge/site stringData[tls.crt]: must be a string; put it in quotes',
    ]);
  });

  test.each([
    ['credentialNames: [site, site2]', 'credentialNames[1]'],
    ['credentialName: "kubernetes://site2"', 'credentialName'],
  ])('wherever it is named: %s', (names, field) => {
    const several = web(
      `[{port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.example], tls: {mode: SIMPLE, ${names}}}]`,
    );
    expect(checked([router, several, secret('edge/site', '{tls.crt: foo, tls.key: bar}')])).toContain(
      `warning Gateway/edge/web spec.servers[0].tls.${field}: Secret edge/site2 does not exist; this server is left out.`,
    );
  });

  test('without the CA that mode MUTUAL needs', () => {
    const mutual = web(`[${server('site')}]`.replace('SIMPLE', 'MUTUAL'));
    expect(checked([router, mutual, secret('edge/site', '{tls.crt: foo, tls.key: bar}')])).toContain(
      `warning ${place}: Secret edge/site has neither ca.crt nor cacert; this server is left out.`,
    );
  });

  test('routers read it in their own namespace, not in that of the Gateway', () => {
    const elsewhere = web(`[${server('site')}]`, '{gw: ingress}', 'shop/web');
    expect(checked([router, elsewhere, secret('shop/site', '{tls.crt: foo, tls.key: bar}')])).toEqual([
      'warning Gateway/shop/web spec.servers[0].tls.credentialName: Secret edge/site does not exist; this server is left out.',
    ]);
  });

  test('of a rule for clients that are not in the files, nothing is known', () => {
    const rule = destinationRule(
      'edge/d',
      '{host: orders.shop.svc.cluster.local, trafficPolicy: {tls: {mode: MUTUAL, credentialName: c}}}',
    );
    expect(checked([orders, rule, router, site])).toEqual([]);
  });
});

describe('ports of servers that nobody reaches', () => {
  const told = ['warning Gateway/edge/web spec.servers[0].port.number'];
  const router = pod('edge/i', '{gw: ingress}', '[{name: p, image: p, ports: [{name: web, containerPort: 8080}]}]');

  test('no port of the Services in front leads to them', () => {
    expect(checked([routers, web(`[${http('["*"]', 8004)}]`)])).toEqual([
      `${told[0]}: No port of Service/edge/ingress leads to port 8004 of the routers, so nobody reaches the server through it; add a port there, or use one that it has.`,
    ]);
    expect(places([routers, router, web(`[${http('["*"]', 443 + 1)}]`)])).toEqual(told);
    const named = service('edge/named', '{selector: {gw: ingress}, ports: [{name: http, port: 80, targetPort: web}]}');
    expect(places([named, router, web(`[${http('["*"]', 81)}]`)])).toEqual(told);
    const tcp = '{port: {number: 9000, name: tcp, protocol: TCP}, hosts: ["*"]}';
    expect(places([routers, web(`[${http('["*"]')}, ${tcp}]`)])).toEqual([
      'warning Gateway/edge/web spec.servers[1].port.number',
    ]);
    const udp = service('edge/u', '{selector: {gw: ingress}, ports: [{name: u, port: 9000, protocol: UDP}]}');
    expect(places([routers, udp, web(`[${tcp}]`)])).toEqual(told);
    expect(places([udp, web(`[${tcp}]`)])).toEqual([]);
  });

  test('a port, or the target of one, is reached; where a target, or any Service, is not known, nothing is said', () => {
    expect(places([routers, web(`[${http('["*"]', 80)}, ${http('["*"]', 8443)}]`)])).toEqual([]);
    const more = service('edge/m', '{selector: {gw: ingress}, ports: [{name: a, port: 8004}]}');
    expect(places([routers, more, router, web(`[${http('["*"]', 8004)}]`)])).toEqual([]);
    const named = service('edge/named', '{selector: {gw: ingress}, ports: [{name: http, port: 80, targetPort: web}]}');
    expect(places([named, web(`[${http('["*"]', 8004)}]`)])).toEqual([]);
    expect(places([router, web(`[${http('["*"]', 8004)}]`)])).toEqual([]);
  });
});

test('a destination that is an ExternalName Service without ports has the port of the Service behind it', () => {
  const alias = (to: string) => service('shop/alias', `{type: ExternalName, externalName: ${to}}`);
  const one = service('shop/one', '{selector: {app: one}, ports: [{name: http, port: 8081}]}');
  const to = virtualService(
    'shop/v',
    '{hosts: [a.example], gateways: [edge/web], http: [{route: [{destination: {host: alias}}]}]}',
  );
  const rest = [web(`[${http('["*"]')}]`), to];
  const missing = 'warning VirtualService/shop/v spec.http[0].route[0].destination';
  expect(places([one, alias('one.shop.svc.cluster.local'), ...rest])).toEqual([]);
  expect(places([orders, alias('orders.shop.svc.cluster.local'), ...rest])).toEqual([`${missing}.port`]);
  expect(places([alias('gone.shop.svc.cluster.local'), ...rest])).toEqual([`${missing}.host`]);
  const twice = [
    alias('second.shop.svc.cluster.local'),
    service('shop/second', '{type: ExternalName, externalName: one.shop.svc.cluster.local}'),
  ];
  expect(places([one, ...twice, ...rest])).toEqual([]);
  const entry = serviceEntry(
    'shop/e',
    '{hosts: [x.example], resolution: DNS, ports: [{number: 8443, name: http, protocol: HTTP}]}',
  );
  expect(places([entry, alias('x.example'), ...rest])).toEqual([]);
  const asMirror = virtualService(
    'shop/v',
    '{hosts: [a.example], gateways: [edge/web], http: [{route: [{destination: {host: one}}], mirror: {host: alias}}]}',
  );
  const aliased = (to: string) => places([one, orders, alias(to), web(`[${http('["*"]')}]`), asMirror]);
  expect(aliased('one.shop.svc.cluster.local')).toEqual([]);
  expect(aliased('orders.shop.svc.cluster.local')).toEqual(['warning VirtualService/shop/v spec.http[0].mirror.port']);
});

describe('a destination that needs a port', () => {
  const one = service('shop/one', '{selector: {app: one}, ports: [{name: http, port: 8081}]}');
  const server = (protocol: string, port: number) =>
    `{port: {number: ${port}, name: p, protocol: ${protocol}}, hosts: ["*"]${protocol === 'TLS' ? ', tls: {mode: PASSTHROUGH}' : ''}}`;
  const of = (spec: string, servers = http('["*"]')) =>
    places([orders, one, web(`[${servers}]`), virtualService('shop/v', `{gateways: [edge/web], ${spec}}`)]);
  const site = 'hosts: [a.example]';
  const route = '[{destination: {host: orders}}]';

  test.each([
    [`${site}, http: [{route: [{destination: {host: one}}], mirror: {host: orders}}]`, 'http[0].mirror.port'],
    [
      `${site}, http: [{route: [{destination: {host: one}}], mirrors: [{destination: {host: orders}}]}]`,
      'http[0].mirrors[0].destination.port',
    ],
    [
      `${site}, http: [{route: [{destination: {host: one}, weight: 1}, {destination: {host: orders}, weight: 1}]}]`,
      'http[0].route[1].destination.port',
    ],
    [`hosts: ["*"], tcp: [{route: ${route}}]`, 'tcp[0].route[0].destination.port', server('TCP', 9000)],
    [
      `${site}, tls: [{match: [{sniHosts: [a.example]}], route: ${route}}]`,
      'tls[0].route[0].destination.port',
      server('TLS', 443),
    ],
  ])('%s', (spec, field, servers?: string) => {
    expect(of(spec, servers)).toEqual([`warning VirtualService/shop/v spec.${field}`]);
  });

  test('has it on the port that its match names; in a delegate, the delegate is told', () => {
    const two = `${http('["*"]')}, ${http('["*"]', 8080)}`;
    expect(of(`${site}, http: [{match: [{port: 8080}], route: ${route}}]`, two)).toEqual([]);
    expect(of(`${site}, http: [{match: [{port: 80}], route: ${route}}]`, two)).toHaveLength(1);
    expect(
      places([
        orders,
        web(`[${http('["*"]')}]`),
        virtualService('shop/v', `{${site}, gateways: [edge/web], http: [{delegate: {name: d, namespace: shop}}]}`),
        virtualService('shop/d', `{http: [{route: ${route}}]}`),
      ]),
    ).toEqual(['warning VirtualService/shop/d spec.http[0].route[0].destination.port']);
  });
});

describe('hosts that no server accepts', () => {
  const one = service('shop/one', '{selector: {app: one}, ports: [{name: http, port: 8081}]}');
  const to = '[{destination: {host: one, port: {number: 8081}}}]';
  const pass = (hosts: string, name = 'edge/web') =>
    web(
      `[{port: {number: 443, name: tls, protocol: TLS}, hosts: ${hosts}, tls: {mode: PASSTHROUGH}}]`,
      undefined,
      name,
    );
  const sni = (names: string, gateways = '[edge/web]') =>
    virtualService(
      'shop/v',
      `{hosts: ["*"], gateways: ${gateways}, tls: [{match: [{sniHosts: ${names}}], route: ${to}}]}`,
    );
  const named = (hosts: string, gateways = '[edge/web]') =>
    virtualService('shop/v', `{hosts: ${hosts}, gateways: ${gateways}, http: [{route: ${to}}]}`);
  const at = (field: string) => [`warning VirtualService/shop/v spec.${field}`];
  const plain = (hosts: string, name?: string) => web(`[${http(hosts)}]`, undefined, name);

  test.each([
    [
      'one of two server names',
      [pass('["*.a.example"]'), sni('[x.a.example, b.example]')],
      at('tls[0].match[0].sniHosts'),
    ],
    ['of another namespace', [plain('[other/a.example]'), named('[a.example]')], at('gateways[0]')],
    ['of the own namespace of the Gateway', [plain('[./a.example]'), named('[a.example]')], at('gateways[0]')],
    ['the top of a wildcard', [plain('["*.a.example"]'), named('[a.example]')], at('gateways[0]')],
    ['one of two', [plain('[a.example]'), named('[a.example, b.example]')], at('hosts')],
    ['the Gateway beside the mesh', [plain('[a.example]'), named('[one]', '[mesh, edge/web]')], at('gateways[1]')],
    ['a wider server name', [pass('[x.a.example]'), sni('["*.a.example"]')], []],
    ['whatever the case', [pass('["*.a.example"]'), sni('[X.A.example]')], []],
    [
      'another Gateway accepts the server name',
      [pass('["*.a.example"]'), pass('["*.b.example"]', 'edge/w2'), sni('[x.b.example]', '[edge/web, edge/w2]')],
      [],
    ],
    [
      'each Gateway has one',
      [plain('[a.example]'), plain('[b.example]', 'edge/w2'), named('[a.example, b.example]', '[edge/web, edge/w2]')],
      [],
    ],
    ['a wider host', [plain('[x.a.example]'), named('["*.a.example"]')], []],
  ])('%s', (_, objects, expected) => {
    expect(places([one, ...objects])).toEqual(expected);
  });
});
