import { expect, test } from 'vitest';
import { type ListenerClaim, listenerName } from '../model/listener.ts';
import type { MeshService } from '../model/service.ts';
import type { EgressListener } from '../model/sidecar.ts';
import type { Traits } from '../model/traits.ts';
import type { ClaimInput } from './outbound-claims.ts';
import {
  claimsOfService,
  clientOf,
  defaultSettings,
  entryOf,
  port,
  serviceOf,
  someEndpoints,
} from '../envoy/testing/listeners.ts';

/** `0.0.0.0_80 http 80`: name, kind and route table, with `bound` where the port is really bound. */
function print(claim: ListenerClaim): string {
  const more = claim.bind.addresses.slice(1).map((address) => `+${address}`);
  return [listenerName(claim), ...more, claim.kind, claim.routes, claim.bind.toPort ? 'bound' : '']
    .filter((word) => word !== '')
    .join(' ');
}

const claims = (service: MeshService, traits: Partial<Traits> = {}, input: Partial<ClaimInput> = {}) =>
  claimsOfService(service, { client: clientOf(traits), ...input }).map(print);

const http = port(80, 'HTTP');
const tcp = port(9000, 'TCP');
const sniffed = port(9100, 'Unsupported');
const all = serviceOf('a', [http, tcp, sniffed, port(53, 'UDP')]);

test('HTTP listens for all services of a port, others at the address of the service', () => {
  expect(claims(all)).toEqual([
    '0.0.0.0_80 http 80',
    '10.96.0.1_9000 tcp',
    '10.96.0.1_9100 sniffed a.shop.svc.cluster.local:9100',
  ]);
});

test('where nothing is redirected everything binds loopback', () => {
  expect(claims(all, { interception: 'NONE' })).toEqual([
    '127.0.0.1_80 http 80 bound',
    '127.0.0.1_9000 tcp bound',
    '127.0.0.1_9100 sniffed a.shop.svc.cluster.local:9100 bound',
  ]);
});

test('the HTTP claims of all services are equal', () => {
  const [one] = claimsOfService(serviceOf('one', [http], { addresses: ['10.0.0.1'] }));
  const [two] = claimsOfService(serviceOf('two', [port(80, 'GRPC')], { resolution: 'Passthrough' }));
  expect(one).toEqual(two);
});

test('a service of protocol HTTP_PROXY shares its port like other HTTP', () => {
  const proxy = claimsOfService(serviceOf('proxy', [port(80, 'HTTP_PROXY')]));
  expect(proxy).toEqual(claimsOfService(serviceOf('a', [http])));
});

test('without an address a port is shared, by sniffing in the common table', () => {
  const entry = entryOf('x.com', [tcp, sniffed]);
  expect(claims(entry)).toEqual(['0.0.0.0_9000 tcp', '0.0.0.0_9100 sniffed 9100']);
  expect(claims(entry, { ipFamily: 'v6' })).toEqual(['::_9000 tcp', '::_9100 sniffed 9100']);
  expect(claims(entry, { ipFamily: 'dual' })[0]).toBe('0.0.0.0_9000 +:: tcp');
});

test('each address of a ServiceEntry has a listener, of any family; a range is matched at the wildcard', () => {
  const addresses = ['192.0.2.1', '2001:db8::1', '198.51.100.0/24'];
  const entry = entryOf('x.com', [tcp], { addresses });
  expect(claims(entry)).toEqual(['192.0.2.1_9000 tcp', '2001:db8::1_9000 tcp', '0.0.0.0_9000 tcp']);
  const range = claimsOfService(entry)[2];
  expect(range).toMatchObject({ chains: [{ subnets: ['198.51.100.0/24'] }] });
});

test('a Service of both families listens at the address of one', () => {
  const service = serviceOf('a', [tcp], { addresses: ['10.96.0.1', 'fd00::1'] });
  expect(claims(service)).toEqual(['10.96.0.1_9000 tcp']);
  expect(claims(service, { ipFamily: 'v6' })).toEqual(['fd00::1_9000 tcp']);
  expect(claims(service, { ipFamily: 'dual' })).toEqual(['10.96.0.1_9000 tcp']);
});

test('allocated addresses are for proxies that capture DNS', () => {
  const entry = entryOf('x.com', [tcp], { autoAddresses: ['2001:2::7', '240.240.0.7'] });
  expect(claims(entry)).toEqual(['0.0.0.0_9000 tcp']);
  expect(claims(entry, { dnsCapture: true })).toEqual(['240.240.0.7_9000 tcp']);
  expect(claims(entry, { dnsCapture: true, ipFamily: 'v6' })).toEqual(['2001:2::7_9000 tcp']);
});

test('a headless service has a listener for each pod, and none without pods', () => {
  const headless = serviceOf('a', [http, tcp, sniffed], { resolution: 'Passthrough', addresses: ['0.0.0.0'] });
  const summary = { ...someEndpoints, addresses: ['10.1.0.1', '10.1.0.2', 'not-an-address'] };
  expect(claims(headless, {}, { summary })).toEqual([
    '0.0.0.0_80 http 80',
    '10.1.0.1_9000 tcp',
    '10.1.0.2_9000 tcp',
    '10.1.0.1_9100 sniffed a.shop.svc.cluster.local:9100',
    '10.1.0.2_9100 sniffed a.shop.svc.cluster.local:9100',
  ]);
  expect(claims(headless)).toEqual(['0.0.0.0_80 http 80']);
});

test('a ServiceEntry that resolves nothing listens at the wildcard, unless it selects workloads', () => {
  const entry = entryOf('x.com', [tcp], { resolution: 'Passthrough' });
  expect(claims(entry)).toEqual(['0.0.0.0_9000 tcp']);
  expect(claims({ ...entry, selector: { app: 'vm' } })).toEqual([]);
});

test('an alias asks for nothing', () => {
  expect(claims(serviceOf('a', [http, tcp], { resolution: 'Alias' }))).toEqual([]);
});

const reserved = entryOf('x.com', [
  port(15001, 'HTTP'),
  port(15006, 'TCP'),
  port(15021, 'Unsupported'),
  port(15090, 'HTTP'),
  port(16001, 'HTTP'),
]);

test('ports of all proxies are left out at the wildcard, where Envoy would refuse them', () => {
  expect(claims(reserved)).toEqual([
    '0.0.0.0_15021 sniffed 15021',
    '0.0.0.0_15090 http 15090',
    '0.0.0.0_16001 http 16001',
  ]);
  expect(claims({ ...reserved, addresses: ['192.0.2.1'] })).toContain('192.0.2.1_15006 tcp');
  const settings = { ...defaultSettings, proxyListenPort: 16001 };
  expect(claims(reserved, {}, { settings })).toContain('0.0.0.0_15001 http 15001');
});

test('a proxy without privileges binds no low port', () => {
  expect(claims(serviceOf('a', [http, tcp]), { interception: 'NONE', unprivileged: true })).toEqual([
    '127.0.0.1_9000 tcp bound',
  ]);
  expect(claims(serviceOf('a', [http]), { unprivileged: true })).toEqual(['0.0.0.0_80 http 80']);
});

const egress = (listener: Partial<EgressListener>): EgressListener => ({
  bind: '',
  bindToPort: false,
  hosts: [],
  ...listener,
});

test.each<[Partial<EgressListener>, string]>([
  [{ bind: '127.0.0.2' }, '127.0.0.2_9000 tcp'],
  [{ bindToPort: true }, '127.0.0.1_9000 tcp bound'],
  [{ port: { number: 9000, name: 'h', protocol: 'HTTP' } }, '0.0.0.0_9000 http 9000'],
  [{ port: { number: 3128, name: 'p', protocol: 'HTTP_PROXY' }, bind: '127.0.0.1' }, '127.0.0.1_3128 http 3128'],
  [
    { port: { number: 0, name: 'u', protocol: 'HTTP' }, bind: 'unix:///e.sock', bindToPort: true },
    'unix:///e.sock_0 http unix:///e.sock bound',
  ],
])('an egress listener %j asks for %s', (listener, expected) => {
  expect(claims(serviceOf('a', [tcp]), {}, { egress: egress(listener) })).toEqual([expected]);
});

test('a unix socket leads to the only port of a service', () => {
  const listener = egress({
    port: { number: 0, name: 'u', protocol: 'TCP' },
    bind: 'unix:///e.sock',
    bindToPort: true,
  });
  const [claim] = claimsOfService(serviceOf('a', [tcp]), { egress: listener });
  expect(claim).toMatchObject({
    chains: [{ target: { clusters: [{ name: 'outbound|9000||a.shop.svc.cluster.local' }] } }],
  });
});
