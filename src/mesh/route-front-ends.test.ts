import { expect, test } from 'vitest';
import { TestMesh, connectedProxy, testEncoder } from '../../test/harness/mesh.ts';
import { objectOf, proxy, route, service, slice } from '../../test/harness/lab.ts';
import type { Kind } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Place } from '../api/place.ts';
import type { HasProblems, Problem } from '../api/problem.ts';
import { type Emit, Graph, type Input, type Write } from '../cache/graph.ts';
import { buildMesh } from '../mesh.ts';
import { type DestinationName, targetIn } from '../model/client.ts';
import { MESH, type Parent, type RouteBinding } from '../model/route-binding.ts';
import { precedence } from '../model/route.ts';
import { declareVerdicts } from './findings/conditions.ts';
import { ONE, defaultMeshOptions } from './inputs.ts';
import type { InForce } from './objects/in-force.ts';
import type { RouteFrontEnd } from './objects/route-bindings.ts';

/** Leads all requests for a host to one service. */
interface Pointer {
  readonly host: string;
  readonly to: string;
  readonly parents: readonly Parent[];
}

const KIND = 'Pointer';

const placeOf = ({ group, kind, namespace, name }: Parent): Place => ({
  ...{ in: 'parents', ref: { group, kind, namespace, name } },
});

const destinationOf = ({ to }: Pointer): DestinationName => ({ host: to, subset: '', port: 80 });

/** A kind of object with routes that Fairlead does not have: what it takes to add one. */
function pointers(graph: Graph): { readonly input: Input<Pointer>; readonly frontEnd: RouteFrontEnd } {
  const input = graph.input<Pointer>('objects.Pointer');
  const refOf = (key: string) => {
    const [source = '', namespace = '', name = ''] = key.split('/');
    return { source, group: 'test', kind: KIND, namespace, name };
  };
  const bindings = graph.derive(
    'routes of Pointers',
    input,
    (key, { host, to, parents }, _, emit: Emit<RouteBinding>) => {
      const ref = refOf(key);
      const { namespace, name } = ref;
      const identity = { key: `${KIND}/${key}`, ref, namespace, name, createdAt: '2030-01-01T00:00:00Z' };
      const needs = { clients: [], selectors: [], routerSelectors: [], targets: [{ host: to, takesRequests: true }] };
      const holds = { hasRequests: true, hasConnections: false, features: [] };
      emit(key, { ...identity, parents, hosts: [host], exportTo: ['*'], ...holds, needs });
    },
  );
  const problems = graph.derive('problems of Pointers', input, (key, { parents }, _, emit: Emit<HasProblems>) => {
    const rejecting = parents.filter(({ name }) => name === 'closed');
    const found = rejecting.map((parent): Problem => {
      const place = placeOf(parent);
      return { object: refOf(key), field: 'spec.parents', reason: 'Conflicted', message: 'Allow it.', place };
    });
    if (found.length > 0) emit(key, { problems: found });
  });
  const frontEnd: RouteFrontEnd = {
    kind: KIND,
    bindings,
    problems: [problems],
    rules: {
      isExclusive: false,
      chosen: (_, found) => found,
      canHold: () => true,
      dependsOnNamespace: () => false,
      connections: () => undefined,
      unverifiedClaims: () => [],
      countPieces: () => 1,
      destinations(read, key) {
        const pointer = read.get(input, key);
        return pointer === undefined ? [] : [destinationOf(pointer)];
      },
      settle(read, key, _, { targets }) {
        const pointer = read.get(input, key);
        if (pointer === undefined) return undefined;
        const target = targetIn(targets, destinationOf(pointer));
        const { cluster } = target as Extract<typeof target, { kind: 'cluster' }>;
        const backends = [{ target: { kind: 'cluster' as const, cluster } }];
        const rule = {
          ...{ name: '', owner: refOf(key), sources: [{ object: refOf(key), field: 'spec.to' }], matches: [] },
          ...{ precedence: precedence.everyRequest, operation: pointer.to },
          action: { kind: 'forward' as const, backends, mirrors: [], retriesStay: false },
        };
        return { rules: [rule], isComplete: true, problems: [] };
      },
    },
  };
  return { input, frontEnd };
}

const host = (name: string): string => `${name}.shop.svc.cluster.local`;
const objects = ['a', 'b', 'c'].flatMap((name) => [service(`shop/${name}`), slice(`shop/${name}`, '10.0.1.1')]);
const gateway = objectOf('Gateway', 'shop/edge', {
  spec: {
    selector: { app: 'edge' },
    servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['x.test'] }],
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
      frontEnds: {
        routes: (graph) => {
          const { input, frontEnd } = pointers(graph);
          this.input ??= input;
          return [frontEnd];
        },
      },
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
  expect(Object.values(lab.routes('edge.shop', 'x.test'))).toEqual([[to('a')]]);
  lab.point('p', { host: 'x.test', to: host('b'), parents: [EDGE] });
  expect(Object.values(lab.routes('edge.shop', 'x.test'))).toEqual([[to('a'), to('b')]]);
  expect(lab.routes('client.shop', 'x.test')).toEqual({});
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
  const mesh = buildMesh(graph, testEncoder(), {
    routes: (of) => {
      const { input, frontEnd } = pointers(of);
      made.input = input;
      return [frontEnd];
    },
  });
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
  const closed: Parent = { ...EDGE, name: 'closed' };
  const fine = { at: 'edge', says: ['Accepted True 3', 'ResolvedRefs True 3'] };
  expect(write(EDGE, closed)).toEqual([fine, { at: 'closed', says: ['Accepted False 3', 'ResolvedRefs True 3'] }]);
  expect(write(EDGE)).toEqual([fine]);
});
