import { describe, expect, test } from 'vitest';
import { checked, destinationRule, gateway, places, pod, secret, service, virtualService } from './checked.ts';

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
});
