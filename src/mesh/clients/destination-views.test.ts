import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { MeshLab, objectOf, proxy, route, service, sidecar } from '../../../test/harness/lab.ts';

const b = 'b.other.svc.cluster.local';
const own = sidecar('c/s', './*');

function labOf(...objects: KubernetesObject[]): MeshLab {
  const lab = new MeshLab(objects, [proxy('x.c')]);
  expect(lab.faults('x.c')).toEqual([]);
  return lab;
}

test('a Sidecar gets clusters of the services that imported routes lead to, and no routes of theirs', () => {
  const lab = labOf(service('c/a'), service('other/b'), route('c/v', 'a', b), own);
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'b.other:80']);
  expect(lab.routes('x.c')).toEqual({ 'a.c:80': ['b.other:80'] });
});

test('also of services in the namespace of the route', () => {
  const narrow = sidecar('c/s', './a.c.svc.cluster.local');
  const lab = labOf(service('c/a'), service('c/b'), route('c/v', 'a', 'b'), narrow);
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'b.c:80']);
  expect(lab.routes('x.c')).toEqual({ 'a.c:80': ['b.c:80'] });
});

test('behind a Service of type ExternalName', () => {
  const alias = service('c/alias', { clusterIP: undefined, type: 'ExternalName', externalName: b });
  const lab = labOf(service('c/a'), service('other/b'), alias, route('c/v', 'a', 'alias'), own);
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'b.other:80']);
});

test('of hosts without a service', () => {
  const lab = labOf(service('c/a'), service('other/b'), route('c/v', 'x.example.com', b), own);
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'b.other:80']);
  expect(lab.routes('x.c')).toEqual({ 'a.c:80': ['a.c:80'], 'x.example.com:80': ['b.other:80'] });
});

test('of other ports of a service that it imports for one', () => {
  const ports = [80, 81].map((port) => ({ name: `http-${port}`, port }));
  const listener = objectOf('Sidecar', 'c/s', {
    spec: { egress: [{ port: { number: 80, protocol: 'HTTP', name: 'http' }, hosts: ['./*'] }] },
  });
  const http = [{ route: [{ destination: { host: 'a', port: { number: 81 } } }] }];
  const lab = labOf(service('c/a', { ports }), route('c/v', 'a', 'a', { http }), listener);
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'a.c:81']);
  expect(lab.routes('x.c', '81')).toEqual({});
});

test('of its egress proxy', () => {
  const spec = {
    egress: [{ hosts: ['./*'] }],
    outboundTrafficPolicy: { mode: 'ALLOW_ANY', egressProxy: { host: b, port: { number: 80 } } },
  };
  const lab = labOf(service('c/a'), service('other/b'), objectOf('Sidecar', 'c/s', { spec }));
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'b.other:80']);
});

test('only of ports that routes name', () => {
  const ports = [80, 81, 82].map((port) => ({ name: `http-${port}`, port }));
  const http = [{ route: [{ destination: { host: b, port: { number: 81 } } }] }];
  const objects = [service('c/a'), service('other/b', { ports }), own];
  expect(labOf(...objects, route('c/v', 'a', b, { http })).clusters('x.c')).toEqual(['a.c:80', 'b.other:81']);
  const all = labOf(...objects, route('c/v', 'a', b)).clusters('x.c');
  expect(all).toEqual(['a.c:80', 'b.other:80', 'b.other:81', 'b.other:82']);
});

test('not of what routes lead to that it does not import', () => {
  const foreign = route('third/v', 'a.other.svc.cluster.local', b);
  const imports = sidecar('c/s', 'other/a.other.svc.cluster.local');
  const lab = labOf(service('other/a'), service('other/b'), foreign, imports);
  expect(lab.clusters('x.c')).toEqual(['a.other:80']);
  expect(lab.routes('x.c')).toEqual({ 'a.other:80': ['a.other:80'] });
});

test('they come and go with the route', () => {
  const lab = labOf(service('c/a'), service('other/b'), own);
  expect(lab.clusters('x.c')).toEqual(['a.c:80']);
  lab.apply([route('c/v', 'a', b)]);
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'b.other:80']);
  lab.delete([service('other/b')]);
  expect(lab.routes('x.c')).toEqual({ 'a.c:80': ['BlackHoleCluster'] });
  expect(lab.faults('x.c')).toEqual([]);
  lab.apply([service('other/b')]);
  lab.delete([route('c/v', 'a', b)]);
  expect(lab.clusters('x.c')).toEqual(['a.c:80']);
});

test('without a Sidecar everything is there anyway', () => {
  const lab = labOf(service('c/a'), service('other/b'), route('c/v', 'a', b));
  expect(lab.size('destinationViews')).toBe(0);
  expect(lab.clusters('x.c')).toEqual(['a.c:80', 'b.other:80']);
});
