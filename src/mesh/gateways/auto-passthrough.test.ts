import { expect, test, vi } from 'vitest';
import { MeshLab, objectOf, proxy, rule, service } from '../../../test/harness/lab.ts';
import { connectedProxy } from '../../../test/harness/mesh.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { Derived } from '../../cache/derived.ts';

const server = (host: string, more: object = {}) => ({
  port: { number: 15443, name: host, protocol: 'TLS' },
  hosts: [host],
  tls: { mode: 'AUTO_PASSTHROUGH' },
  ...more,
});

const gateway = (name: string, labels: Readonly<Record<string, string>>, ...servers: object[]): KubernetesObject =>
  objectOf('Gateway', `edge/${name}`, { spec: { selector: labels, servers } });

const eastWest = (...hosts: string[]) =>
  gateway('east-west', { istio: 'eastwest' }, ...hosts.map((host) => server(host)));

const router = (stream: string, labels: Readonly<Record<string, string>>, metadata: object = {}) =>
  connectedProxy(stream, {
    id: `router~10.9.0.1~${stream}.edge~edge.svc.cluster.local`,
    metadata: { NAMESPACE: 'edge', INSTANCE_IPS: '10.9.0.1', LABELS: labels, ISTIO_VERSION: '1.30.0', ...metadata },
  });

const routers = [router('east', { istio: 'eastwest' }), router('ingress', { istio: 'ingress' }), proxy('client.shop')];

interface Listener {
  readonly name: string;
  readonly filterChains: readonly {
    readonly filterChainMatch?: { readonly serverNames?: readonly string[]; readonly applicationProtocols?: string[] };
    readonly filters: readonly { readonly typedConfig: { readonly cluster?: string; readonly idleTimeout?: string } }[];
  }[];
}

/** Server names of the chains, without what all of them have in common; sorted. */
function chains(lab: MeshLab, stream = 'east'): string[] {
  const found = (lab.json(stream).lds as Listener[]).find(({ name }) => name === '0.0.0.0_15443');
  return (found?.filterChains ?? [])
    .flatMap(({ filterChainMatch }) => filterChainMatch?.serverNames ?? [])
    .map(short)
    .sort();
}

/** Clusters named for SNI. */
const clusters = (lab: MeshLab, stream = 'east'): string[] =>
  (lab.json(stream).cds as { readonly name: string }[])
    .flatMap(({ name }) => (name.startsWith('outbound_.') ? [short(name)] : []))
    .sort();

const short = (name: string): string => name.replace(/^outbound_\./, '').replace('.svc.cluster.local', '');

function sound(lab: MeshLab): void {
  for (const { stream } of routers) expect(lab.faults(stream)).toEqual([]);
}

test('only a router with such a server has the chains, and the clusters for them', () => {
  const lab = new MeshLab([service('shop/a'), service('bank/b'), rule('shop/r', 'a'), eastWest('*.local')], routers);
  const all = ['80_._.a.shop', '80_._.b.bank', '80_.v1_.a.shop'];
  expect(chains(lab)).toEqual(all);
  expect(clusters(lab)).toEqual(all);
  for (const other of ['ingress', 'client.shop']) {
    expect(clusters(lab, other)).toEqual([]);
    expect(chains(lab, other)).toEqual([]);
  }
  sound(lab);
  lab.delete([eastWest('*.local')]);
  expect([chains(lab), clusters(lab)]).toEqual([[], []]);
  expect(lab.size('SNI chains') + lab.size('forwarded services')).toBe(0);
});

test('a router keeps its other listeners when it has no such server any more', () => {
  const http = { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] };
  const lab = new MeshLab([gateway('east-west', { istio: 'eastwest' }, http, server('*.local'))], routers);
  lab.apply([gateway('east-west', { istio: 'eastwest' }, http)]);
  expect(lab.json('east').lds).toMatchObject([{ name: '0.0.0.0_80' }]);
  sound(lab);
});

test('services, ports and subsets come and go', () => {
  const lab = new MeshLab([service('shop/a'), eastWest('*.local')], routers);
  lab.apply([
    service('shop/b', {
      ports: [
        { name: 'http', port: 80 },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
    }),
  ]);
  expect(chains(lab)).toEqual(['80_._.a.shop', '80_._.b.shop']);
  lab.apply([service('shop/a', { ports: [{ name: 'http', port: 81 }] }), rule('shop/r', 'b')]);
  expect(chains(lab)).toEqual(['80_._.b.shop', '80_.v1_.b.shop', '81_._.a.shop']);
  expect(clusters(lab)).toEqual(chains(lab));
  lab.delete([service('shop/b')]);
  expect(chains(lab)).toEqual(['81_._.a.shop']);
  sound(lab);
});

test('a router forwards to what its namespace may see', () => {
  const hidden = service('shop/a', {}, { annotations: { 'networking.istio.io/exportTo': '.' } });
  const lab = new MeshLab([hidden, service('shop/b'), eastWest('*.local')], routers);
  expect(chains(lab)).toEqual(['80_._.b.shop']);
});

test('the hosts of all its servers together say what has chains', () => {
  const lab = new MeshLab(
    [
      service('shop/a'),
      service('bank/b'),
      service('shop/c'),
      eastWest('a.shop.svc.cluster.local', '*.bank.svc.cluster.local'),
    ],
    routers,
  );
  expect(chains(lab)).toEqual(['80_._.a.shop', '80_._.b.bank']);
  lab.apply([eastWest('*.shop.svc.cluster.local', 'a.shop.svc.cluster.local')]);
  expect(chains(lab)).toEqual(['80_._.a.shop', '80_._.c.shop']);
  sound(lab);
});

test('other TLS servers share the port', () => {
  const own = {
    port: { number: 15443, name: 'own', protocol: 'TLS' },
    hosts: ['x.example.com'],
    tls: { mode: 'PASSTHROUGH' },
  };
  const routes = objectOf('VirtualService', 'edge/v', {
    spec: {
      hosts: ['x.example.com'],
      gateways: ['east-west'],
      tls: [
        { match: [{ sniHosts: ['x.example.com'] }], route: [{ destination: { host: 'a.shop.svc.cluster.local' } }] },
      ],
    },
  });
  const lab = new MeshLab(
    [service('shop/a'), gateway('east-west', { istio: 'eastwest' }, own, server('*.local')), routes],
    routers,
  );
  expect(chains(lab)).toEqual(['80_._.a.shop', 'x.example.com']);
  lab.delete([service('shop/a')]);
  expect(chains(lab)).toEqual(['x.example.com']);
  sound(lab);
});

test('without anything to forward to, the port stays closed', () => {
  const lab = new MeshLab([eastWest('*.local')], routers);
  expect((lab.json('east').lds as Listener[]).map(({ name }) => name)).toEqual([]);
});

test('what a router says of idle connections applies', () => {
  const patient = router('east', { istio: 'eastwest' }, { IDLE_TIMEOUT: '7s' });
  const lab = new MeshLab([service('shop/a'), eastWest('*.local')], [patient]);
  const [listener] = lab.json('east').lds as Listener[];
  expect(listener?.filterChains[0]?.filters[0]?.typedConfig.idleTimeout).toBe('7s');
});

test('a service more costs its own chains, whatever else is there', () => {
  const others = Array.from({ length: 200 }, (_, i) => service(`shop/s${i}`));
  const lab = new MeshLab([...others, eastWest('*.local')], routers);
  const execute = vi.spyOn(Derived.prototype as unknown as { execute: (key: string) => unknown }, 'execute');
  // Without the comparison with a mesh from scratch, which runs everything.
  Object.assign(lab, { oracle: false });
  lab.apply([service('shop/more')]);
  const ran = (execute.mock.contexts as { name: string }[]).map(({ name }) => name);
  execute.mockRestore();
  const count = (name: string): number => ran.filter((each) => each === name).length;
  expect(['SNI chains', 'SNI chains of shards', 'SNI chains of views', 'gatewayListeners'].map(count)).toEqual([
    1, 1, 1, 1,
  ]);
  expect(['gatewayListeners.built', 'passages', 'shards of passages'].map(count)).toEqual([0, 0, 0]);
});
