import { expect, test } from 'vitest';
import { TestMesh, connectedProxy, testEncoder } from '../../test/harness/mesh.ts';
import { objectOf, proxy, route, service, slice } from '../../test/harness/lab.ts';
import { CLOSED, KIND, type Pointer, placeOf, pointerFrontEnds } from '../../test/harness/pointers.ts';
import type { Kind } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import { type Emit, Graph, type Input, type Write } from '../cache/graph.ts';
import { buildMesh } from '../mesh.ts';
import { MESH, type Parent } from '../model/route-binding.ts';
import { declareVerdicts } from './findings/conditions.ts';
import { ONE, defaultMeshOptions } from './inputs.ts';
import type { InForce } from './objects/in-force.ts';

const host = (name: string): string => `${name}.shop.svc.cluster.local`;
const objects = ['a', 'b', 'c'].flatMap((name) => [service(`shop/${name}`), slice(`shop/${name}`, '10.0.1.1')]);
const gateway = objectOf('Gateway', 'shop/edge', {
  spec: {
    selector: { app: 'edge' },
    servers: [
      { port: { number: 80, name: 'http', protocol: 'HTTP' }, name: 'plain', hosts: ['x.test'] },
      { port: { number: 8080, name: 'http-alt', protocol: 'HTTP' }, name: 'alt', hosts: ['x.test'] },
    ],
  },
});
const EDGE: Parent = { group: 'networking.istio.io', kind: 'Gateway', namespace: 'shop', name: 'edge' };
const router = connectedProxy('edge.shop', {
  id: 'router~10.1.0.2~edge.shop~shop.svc.cluster.local',
  metadata: { NAMESPACE: 'shop', INSTANCE_IPS: '10.1.0.2', LABELS: { app: 'edge' } },
});

class Lab {
  readonly mesh: TestMesh;
  input: Input<Pointer> | undefined;

  constructor(...more: readonly KubernetesObject[]) {
    this.mesh = new TestMesh({
      frontEnds: pointerFrontEnds(({ input }) => (this.input ??= input)),
    });
    this.mesh.apply([...objects, gateway, ...more]);
    for (const each of [proxy('client.shop'), router]) this.mesh.connect(each);
  }

  point(name: string, pointer: Pointer | undefined): void {
    const write: Write = this.input!.write(`Kubernetes/shop/${name}`, pointer);
    this.mesh.commit([write]);
  }

  /** Where requests for a host go, by table: the clusters of its routes. */
  routes(stream: string, domain: string): Readonly<Record<string, readonly string[]>> {
    type Table = { name: string; virtualHosts?: { domains: string[]; routes?: { route?: { cluster?: string } }[] }[] };
    return Object.fromEntries(
      (this.mesh.json(stream).rds as Table[]).flatMap(({ name, virtualHosts = [] }) => {
        const found = virtualHosts.find(({ domains }) => domains.includes(domain));
        return found === undefined ? [] : [[name, (found.routes ?? []).map((each) => each.route?.cluster ?? '')]];
      }),
    );
  }

  /** What is said about an object. */
  said(object: string): readonly string[] {
    return [...this.mesh.mesh.problems.byObject.entries()].flatMap(([, found]) =>
      found
        .filter(({ object: { kind, namespace, name } }) => `${kind}/${namespace}/${name}` === object)
        .map(({ reason, message }) => `${reason}: ${message}`),
    );
  }
}

const to = (name: string): string => `outbound|80||${host(name)}`;

test('routes of another kind are served to sidecars, as they come, change and go', () => {
  const lab = new Lab();
  expect(lab.routes('client.shop', host('a'))).toEqual({ '80': [to('a')] });
  lab.point('p', { host: host('a'), to: host('b'), parents: [MESH] });
  expect(lab.routes('client.shop', host('a'))).toEqual({ '80': [to('b')] });
  lab.point('p', { host: host('a'), to: host('c'), parents: [MESH] });
  expect(lab.routes('client.shop', host('a'))).toEqual({ '80': [to('c')] });
  lab.point('p', { host: 'only.test', to: host('c'), parents: [MESH] });
  expect([host('a'), 'only.test'].map((each) => lab.routes('client.shop', each))).toEqual([
    { '80': [to('a')] },
    { '80': [to('c')] },
  ]);
  lab.point('p', undefined);
  expect(lab.routes('client.shop', 'only.test')).toEqual({});
});

test.each([
  ['public', {}],
  ['private', { exportTo: ['.'] }],
])('a host that both have is of the other kind, with all its routes, and the VirtualService says so: %s', (_, spec) => {
  const lab = new Lab(route('shop/v', 'a', 'b', spec));
  expect(lab.routes('client.shop', host('a'))).toEqual({ '80': [to('b')] });
  lab.point('p', { host: host('a'), to: host('c'), parents: [MESH] });
  lab.point('q', { host: host('a'), to: host('a'), parents: [MESH] });
  expect(lab.routes('client.shop', host('a'))).toEqual({ '80': [to('c'), to('a')] });
  expect(lab.said('VirtualService/shop/v')).toEqual([
    expect.stringMatching(
      /^Conflicted: Sidecars .*use the routes of Pointer\/shop\/p for the host .*; remove the host/,
    ),
  ]);
  expect(lab.said('Pointer/shop/q')).toEqual([]);
});

test('routes of another kind are attached to a gateway by reference, beside VirtualServices', () => {
  const lab = new Lab(route('shop/v', 'x.test', host('a'), { gateways: ['edge'] }, { uri: { prefix: '/v' } }));
  lab.point('other', { host: 'x.test', to: host('c'), parents: [{ ...EDGE, group: 'gateway.networking.k8s.io' }] });
  const plain = () => lab.routes('edge.shop', 'x.test')['http.80'];
  expect(plain()).toEqual([to('a')]);
  lab.point('p', { host: 'x.test', to: host('b'), parents: [EDGE] });
  expect(plain()).toEqual([to('a'), to('b')]);
  expect(lab.routes('client.shop', 'x.test')).toEqual({});
});

test('routes are attached to the servers of a gateway that their parents name, by section or port', () => {
  const lab = new Lab();
  const [plain, alt] = ['http.80', 'http.8080'];
  const both = { [plain!]: [to('b')], [alt!]: [to('b')] };
  const attached = (...parents: Partial<Parent>[]) => {
    lab.point('p', { host: 'x.test', to: host('b'), parents: parents.map((parent) => ({ ...EDGE, ...parent })) });
    return lab.routes('edge.shop', 'x.test');
  };
  expect(attached({})).toEqual(both);
  expect(attached({ section: 'alt' })).toEqual({ [alt!]: [to('b')] });
  expect(attached({ port: 80 })).toEqual({ [plain!]: [to('b')] });
  expect(attached({ section: 'alt', port: 80 })).toEqual({});
  expect(attached({ section: 'none' })).toEqual({});
  expect(attached({ section: 'alt' }, { section: 'plain' })).toEqual(both);
  expect(attached({ section: 'alt' }, {})).toEqual(both);
});

test('routes of another kind may be those of a delegate, lead nowhere, and come with a patch', () => {
  const lab = new Lab();
  const before = lab.mesh.json('client.shop').cds;
  lab.point('p', { host: 'p.test', delegate: 'q', parents: [MESH] });
  // Neither has a back end: requests are answered here.
  expect(lab.routes('client.shop', 'p.test')).toEqual({ '80': [''] });
  lab.point('q', { host: 'q.test', to: host('b'), parents: [MESH] });
  expect(lab.routes('client.shop', 'p.test')).toEqual({ '80': [to('b')] });
  expect(lab.mesh.json('client.shop').cds).toEqual(before);
  lab.point('q', { host: 'q.test', to: host('c'), patch: { altStatName: 'pointed' }, parents: [MESH] });
  expect(lab.routes('client.shop', 'p.test')).toEqual({ '80': [to('c')] });
  const patched = lab.mesh.json('client.shop').cds as { name: string; altStatName?: string }[];
  expect(patched.flatMap(({ name, altStatName }) => (altStatName === 'pointed' ? [name] : []))).toEqual([to('c')]);
  lab.point('q', undefined);
  expect(lab.routes('client.shop', 'p.test')).toEqual({ '80': [''] });
  expect(lab.mesh.json('client.shop').cds).toEqual(before);
});

test('an object of another kind may have the name of a VirtualService', () => {
  const lab = new Lab(route('shop/same', 'a', 'b'));
  lab.point('same', { host: host('b'), to: host('c'), parents: [MESH] });
  const routes = () => ['a', 'b'].map((name) => lab.routes('client.shop', host(name)));
  expect(routes()).toEqual([{ '80': [to('b')] }, { '80': [to('c')] }]);
  lab.point('same', undefined);
  expect(routes()).toEqual([{ '80': [to('b')] }, { '80': [to('b')] }]);
});

test('a host that a VirtualService names is its own, whatever wildcard another kind has', () => {
  const lab = new Lab(route('shop/v', 'a', 'b'));
  lab.point('p', { host: '*.shop.svc.cluster.local', to: host('c'), parents: [MESH] });
  expect(['a', 'b'].map((name) => lab.routes('client.shop', host(name)))).toEqual([
    { '80': [to('b')] },
    { '80': [to('c')] },
  ]);
});

test('of two parents, the one that rejects the routes has conditions of its own', () => {
  const graph = new Graph();
  const made: { input?: Input<Pointer> } = {};
  const mesh = buildMesh(
    graph,
    testEncoder(),
    pointerFrontEnds(({ input }) => (made.input = input)),
  );
  const input = made.input!;
  const metadata = { namespace: 'shop', name: 'p', uid: 'u', generation: 3 };
  const verdicts = declareVerdicts(graph, mesh.inputs, mesh.problems, {
    kind: { group: 'test', kind: KIND, name: KIND } as unknown as Kind,
    objects: graph.derive('Pointers', input, (key, _, __, emit: Emit<KubernetesObject>) =>
      emit(key, { apiVersion: 'test/v1', kind: KIND, metadata }),
    ),
    reconciled: graph.input<InForce>('Pointers in force'),
    placesOf: (read, key) => read.get(input, key)!.parents.map(placeOf),
  });
  const key = 'Kubernetes/shop/p';
  const write = (...parents: Parent[]) => {
    graph.commit([
      mesh.inputs.options.write(ONE, defaultMeshOptions),
      input.write(key, { host: host('a'), to: host('b'), parents }),
    ]);
    return verdicts.get(key)?.said.map(({ place, conditions }) => ({
      at: place.in === 'parents' ? place.ref.name : place.in,
      says: conditions.map(({ type, status, observedGeneration }) => `${type} ${status} ${observedGeneration}`),
    }));
  };
  const closed: Parent = { ...EDGE, name: CLOSED };
  const fine = { at: 'edge', says: ['Accepted True 3', 'ResolvedRefs True 3'] };
  expect(write(EDGE, closed)).toEqual([fine, { at: 'closed', says: ['Accepted False 3', 'ResolvedRefs True 3'] }]);
  expect(write(EDGE)).toEqual([fine]);
  // Sections of one parent are places of their own.
  const [plain, alt] = ['plain', 'alt'].map((section) => ({ ...EDGE, section }));
  expect(write(plain!, { ...alt!, name: CLOSED })).toEqual([
    fine,
    { at: 'closed', says: ['Accepted False 3', 'ResolvedRefs True 3'] },
  ]);
  expect(write(plain!, alt!)).toEqual([fine, fine]);
});
