import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { MeshLab, objectOf, proxy, route, rule, service } from '../../../test/harness/lab.ts';

const services = [service('shop/a'), service('shop/b'), service('other/c')];
const shop = 'x.shop';
const client = 'x.client';
const stranger = 'x.stranger';

function labOf(...objects: KubernetesObject[]): MeshLab {
  return new MeshLab([...services, ...objects], [proxy(shop), proxy(client), proxy(stranger)]);
}

/** The lists that a proxy reaches. */
function lists(lab: MeshLab, stream: string): string[] {
  return [...new Set(lab.resources(stream).map(({ name }) => name))].sort();
}

/** Applies objects, and says whose world, or what in it, changed. */
function affected(lab: MeshLab, ...objects: KubernetesObject[]): string[] {
  const streams = [shop, client, stranger];
  const before = streams.map((stream) => JSON.stringify(lab.json(stream)));
  lab.apply(objects);
  for (const stream of streams) expect(lab.faults(stream)).toEqual([]);
  return streams.filter((stream, i) => JSON.stringify(lab.json(stream)) !== before[i]);
}

const host = 'a.shop.svc.cluster.local';
const to = 'b.shop.svc.cluster.local';

test('without rules and routes all see the same', () => {
  const lab = labOf();
  expect(lab.size('viewLists')).toBe(2);
  expect(lists(lab, client)).toEqual(lists(lab, stranger));
});

test('a public rule beside its service is what everybody sees', () => {
  const lab = labOf();
  expect(affected(lab, rule('shop/r', 'a'))).toEqual([shop, client, stranger]);
  expect(lab.clusters(stranger)).toContain('a.shop:80 v1');
  expect(lab.size('viewLists')).toBe(2);
});

test('a rule of a client namespace is what that namespace sees, and nobody else', () => {
  const lab = labOf();
  expect(affected(lab, rule('client/r', host))).toEqual([client]);
  expect(lab.clusters(client)).toContain('a.shop:80 v1');
});

test.each([
  ['private', ['.'], [shop]],
  ['exported to another namespace', ['client'], [client]],
  ['exported to both', ['.', 'client'], [shop, client]],
])('a rule beside its service that is %s is seen there only', (_, exportTo, expected) => {
  expect(affected(labOf(), rule('shop/r', 'a', { exportTo }))).toEqual(expected);
});

test('a rule with a workload selector is for the workloads that it selects', () => {
  const lab = labOf();
  const selecting = rule('client/r', host, { workloadSelector: { matchLabels: { app: 'y' } } });
  expect(affected(lab, selecting)).toEqual([]);
  lab.connect(proxy(client, { app: 'y' }));
  expect(lab.clusters(client)).toContain('a.shop:80 v1');
  expect(lab.clusters(shop)).not.toContain('a.shop:80 v1');
});

test('a public VirtualService is for all', () => {
  const lab = labOf();
  expect(affected(lab, route('shop/v', 'a', to))).toEqual([shop, client, stranger]);
  expect(lab.size('viewLists')).toBe(2);
});

test.each([
  ['private', ['.'], [client]],
  ['exported to another namespace', ['stranger'], [stranger]],
  ['exported to the namespace of the service', ['shop'], [shop]],
])('a VirtualService that is %s is seen there only', (_, exportTo, expected) => {
  const lab = labOf();
  expect(affected(lab, route('client/v', host, to, { exportTo }))).toEqual(expected);
  for (const stream of expected) expect(lab.routes(stream)).toMatchObject({ 'a.shop:80': ['b.shop:80'] });
});

test('sourceNamespace gives its namespace a view of its own', () => {
  const lab = labOf();
  expect(affected(lab, route('shop/v', host, to, {}, { sourceNamespace: 'client' }))).toEqual([client]);
});

test('what is private to a namespace touches the views of others in no resource', () => {
  const lab = labOf();
  affected(lab, route('client/v', host, to, { exportTo: ['.'] }));
  const before = lists(lab, stranger);
  const held = new Set(lab.resources(stranger));
  lab.apply([route('client/v', host, host, { exportTo: ['.'] })]);
  expect(lab.changed).toEqual(['RouteConfiguration 80']);
  expect(lab.last.members).toHaveLength(1);
  expect(lists(lab, stranger)).toEqual(before);
  expect(lab.resources(stranger).every((resource) => held.has(resource))).toBe(true);
});

test('a service of a namespace is seen by those to which it is exported', () => {
  const lab = labOf();
  const hidden = service('shop/h', {}, { annotations: { 'networking.istio.io/exportTo': '.,client' } });
  expect(affected(lab, hidden)).toEqual([shop, client]);
  expect(lab.clusters(stranger)).not.toContain('h.shop:80');
});

test('a rule with subsets in a client namespace is known to routes of any host there', () => {
  const lab = labOf();
  const subset = route('other/v', 'c', to, {
    http: [{ route: [{ destination: { host: to, subset: 'v1' } }] }],
  });
  lab.apply([subset]);
  expect(lab.routes(client)).toMatchObject({ 'c.other:80': ['BlackHoleCluster'] });
  expect(affected(lab, rule('client/r', to))).toEqual([client]);
  expect(lab.routes(client)).toMatchObject({ 'c.other:80': ['b.shop:80 v1'] });
});

test('who has a host of its own loses nothing for others by being connected', () => {
  const entry = (path: string, hostname: string, port?: number): KubernetesObject =>
    objectOf('ServiceEntry', path, {
      spec: {
        hosts: [hostname],
        resolution: 'NONE',
        ...(port && { ports: [{ number: port, name: 'http', protocol: 'HTTP' }] }),
      },
    });
  const lab = new MeshLab(
    [entry('shop/e', 'a.shop.svc.cluster.local', 8080), entry('abc/e', 'a.shop'), entry('third/e', 'a.shop', 8080)],
    [proxy(stranger)],
  );
  const alone = lab.domains(stranger, '8080');
  lab.join([proxy('x.third')]);
  expect(lab.domains(stranger, '8080')).toEqual(alone);
  expect([...lab.graph.failures.keys()]).toEqual([]);
});

test('routes of an alias, wherever they are, know a host with one of its short forms that only some see', () => {
  const alias = service('shop/d', { type: 'ExternalName', externalName: 'outside.test', clusterIP: undefined });
  const lab = labOf(alias, route('other/r', 'd.shop.svc.cluster.local', to));
  expect(affected(lab, route('third/s', 'd.shop.svc', to, { exportTo: ['client'] }))).toEqual([client]);
  expect(lab.domains(client)['d.shop.svc:80']).toEqual(['d.shop.svc']);
  expect(lab.domains(client)['d.shop:80']).not.toContain('d.shop.svc');
  expect(lab.domains(stranger)['d.shop:80']).toContain('d.shop.svc');
});
