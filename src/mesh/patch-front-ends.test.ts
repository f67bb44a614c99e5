import { expect, test } from 'vitest';
import { TestMesh, connectedProxy } from '../../test/harness/mesh.ts';
import { objectOf, proxy, route, service, slice } from '../../test/harness/lab.ts';
import type { EncodedResource } from '../ads/store/resource.ts';
import { leavesOf } from '../ads/store/resource.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Emit, Graph, Input } from '../cache/graph.ts';
import type { Patch, PatchSource, Slot } from '../model/patch.ts';
import type { PatchFrontEnd } from './objects/patch-sources.ts';

/** Sets members of messages. A member named `throw` throws. */
interface Setter extends Partial<Pick<PatchSource, 'namespace' | 'selector' | 'priority'>> {
  readonly patches: readonly (Omit<Patch, 'field' | 'payload'> & { readonly set: Readonly<Record<string, unknown>> })[];
}

const KIND = 'Setter';

/** What the front end was asked to change: `type place`, one for each message. */
type Applied = string[];

/** A kind of object with patches that Fairlead does not have: what it takes to add one. */
function setters(graph: Graph, applied: Applied): { readonly input: Input<Setter>; readonly frontEnd: PatchFrontEnd } {
  const input = graph.input<Setter>('objects.Setter');
  const sources = graph.derive('patches of Setters', input, (key, setter, _, emit: Emit<PatchSource>) => {
    const [source = '', namespace = '', name = ''] = key.split('/');
    const { patches, priority = 0, ...rest } = setter;
    const ref = { source, group: 'networking.istio.io', kind: KIND, namespace, name };
    const made = patches.map(({ set, ...where }, i): Patch => ({ ...where, field: `spec[${i}]`, payload: set }));
    emit(key, { key: `${KIND}/${key}`, ref, createdAt: '', name, namespace, priority, ...rest, patches: made });
  });
  const frontEnd: PatchFrontEnd = {
    kind: KIND,
    sources,
    problems: [],
    apply(_, message, { type, host, listener, table }: Slot, patches) {
      applied.push(`${type} ${host ?? listener ?? table ?? ''}`);
      const set = Object.assign({}, ...patches.map(({ payload }) => payload)) as Record<string, unknown>;
      if ('throw' in set) throw new Error('as it was told');
      return { ...message, ...set };
    },
  };
  return { input, frontEnd };
}

const host = (name: string): string => `${name}.shop.svc.cluster.local`;
const objects = ['a', 'b', 'c'].flatMap((name) => [
  service(`shop/${name}`, { selector: { app: name } }),
  slice(`shop/${name}`, '10.0.1.1'),
]);

const db = service('shop/db', { clusterIP: '10.0.0.9', ports: [{ name: 'tcp', port: 3306 }] });
const gateway = objectOf('Gateway', 'shop/edge', {
  spec: {
    selector: { app: 'edge' },
    servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['x.test', 'y.test'] }],
  },
});
const routerOf = (name: string) =>
  connectedProxy(`${name}.shop`, {
    id: `router~10.1.0.2~${name}.shop~shop.svc.cluster.local`,
    metadata: { NAMESPACE: 'shop', INSTANCE_IPS: '10.1.0.2', LABELS: { app: 'edge', role: name } },
  });
const atGateway = route('shop/xy', 'x.test', host('a'), { hosts: ['x.test', 'y.test'], gateways: ['edge'] });

const streams = ['one.shop', 'two.shop', 'other.bank', 'edge.shop', 'plain.shop'];

class Lab {
  readonly mesh: TestMesh;
  readonly applied: Applied = [];
  input: Input<Setter> | undefined;

  constructor(...more: readonly KubernetesObject[]) {
    this.mesh = new TestMesh({
      frontEnds: {
        patches: (graph) => {
          const isFirst = this.input === undefined;
          const { input, frontEnd } = setters(graph, isFirst ? this.applied : []);
          this.input ??= input;
          return [frontEnd];
        },
      },
    });
    this.mesh.apply([...objects, gateway, atGateway, ...more]);
    const labels = { one: { app: 'a', role: 'first' }, two: { app: 'a', role: 'second' } };
    this.mesh.connect(proxy('one.shop', labels.one));
    this.mesh.connect(proxy('two.shop', labels.two));
    this.mesh.connect(proxy('other.bank', labels.one));
    for (const name of ['edge', 'plain']) this.mesh.connect(routerOf(name));
  }

  /** @returns what this made the front end do, each once, sorted. */
  set(name: string, setter: Setter | undefined): readonly string[] {
    this.applied.length = 0;
    this.mesh.commit([this.input!.write(`Kubernetes/${name}`, setter)]);
    return [...this.applied].sort();
  }

  /** The resources of a proxy by type and name: the same objects as long as nothing has changed. */
  resources(stream: string): ReadonlyMap<string, EncodedResource> {
    expect(this.mesh.clashes(stream)).toEqual([]);
    return new Map(
      this.mesh
        .resources(stream)
        .map((each) => [`${each.typeUrl.slice(each.typeUrl.lastIndexOf('.') + 1)} ${each.name}`, each]),
    );
  }

  all(): readonly ReadonlyMap<string, EncodedResource>[] {
    return streams.map((stream) => this.resources(stream));
  }

  /** The message of a resource, as protobuf JSON. */
  message(stream: string, type: 'cds' | 'lds' | 'rds', name: string): Record<string, unknown> | undefined {
    return (this.mesh.json(stream)[type] as { name: string }[]).find((each) => each.name === name);
  }

  originsOf(stream: string, name: string): readonly string[] {
    const { body } = this.resources(stream).get(name)!;
    return [...leavesOf(body)].flatMap(({ origins }) => origins.map(({ kind, name: of }) => `${kind}/${of}`));
  }

  said(): readonly string[] {
    return [...this.mesh.mesh.problems.byObject.entries()].flatMap(([, found]) =>
      found
        .filter(({ object }) => object.kind === KIND)
        .map(({ object, field, message }) => `${object.name} ${field}: ${message}`),
    );
  }
}

/** Names of resources that are not the same objects any more, or new, or gone. */
function differing(
  before: ReadonlyMap<string, EncodedResource>,
  after: ReadonlyMap<string, EncodedResource>,
): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((name) => before.get(name) !== after.get(name))
    .sort();
}

/** Proxies that do not have the same objects as before. */
const changed = (before: readonly ReadonlyMap<string, EncodedResource>[], lab: Lab): readonly string[] =>
  streams.filter((stream, i) => differing(before[i]!, lab.resources(stream)).length > 0);

const versionsOf = (lab: Lab) =>
  lab.all().map((resources) => [...resources].map(([name, { version }]) => `${name} ${version}`).sort());

const cluster = (name: string): string => `outbound|80||${host(name)}`;
const clusterPatch = { type: 'cluster', direction: 'outbound' } as const;

test('clusters that a namespace patches are its own; everything of others stays the same objects', () => {
  const lab = new Lab();
  const before = lab.all();
  const set = { altStatName: 'patched' };
  expect(lab.set('shop/p', { namespace: 'shop', patches: [{ ...clusterPatch, host: host('a'), set }] })).toEqual([
    `cluster ${host('a')}`,
  ]);
  expect(lab.message('one.shop', 'cds', cluster('a'))).toMatchObject(set);
  expect(lab.message('two.shop', 'cds', cluster('a'))).toMatchObject(set);
  expect(lab.message('one.shop', 'cds', cluster('b'))).not.toMatchObject(set);
  expect(changed(before, lab)).toEqual(['one.shop', 'two.shop']);
  // All other clusters are still shared with the namespaces that patch nothing.
  const others = ['b', 'c'].map((name) => `Cluster ${cluster(name)}`);
  for (const name of others) expect(lab.resources('one.shop').get(name)).toBe(before[2]!.get(name));
});

test('what a patch does can change, and runs only where it applies; without it, the bytes are those from before', () => {
  const lab = new Lab();
  const versions = versionsOf(lab);
  const patch = (name: string, altStatName: string) => ({ ...clusterPatch, host: host(name), set: { altStatName } });
  lab.set('shop/p', { namespace: 'shop', patches: [patch('a', 'first'), patch('b', 'first')] });
  expect(lab.set('shop/p', { namespace: 'shop', patches: [patch('a', 'first'), patch('b', 'second')] })).toEqual([
    `cluster ${host('b')}`,
  ]);
  expect(lab.message('one.shop', 'cds', cluster('b'))).toMatchObject({ altStatName: 'second' });
  expect(lab.set('shop/q', { namespace: 'bank', patches: [patch('c', 'bank')] })).toEqual([`cluster ${host('c')}`]);
  lab.set('shop/q', undefined);
  expect(lab.set('shop/p', undefined)).toEqual([]);
  expect(versionsOf(lab)).toEqual(versions);
});

test('patches for everybody come before those of a namespace, and lower priorities before both', () => {
  const lab = new Lab();
  const patches = (altStatName: string) => [{ ...clusterPatch, host: host('a'), set: { altStatName } }];
  lab.set('shop/own', { namespace: 'shop', patches: patches('own') });
  lab.set('root/all', { namespace: '', patches: patches('all') });
  const names = () =>
    ['one.shop', 'other.bank'].map((stream) => lab.message(stream, 'cds', cluster('a'))?.['altStatName']);
  expect(names()).toEqual(['own', 'all']);
  lab.set('shop/own', { namespace: 'shop', priority: -1, patches: patches('own') });
  expect(names()).toEqual(['all', 'all']);
});

test('a workload that patches its filter chains or listener has these for itself', () => {
  const lab = new Lab();
  const before = lab.all();
  const inbound = { type: 'filterChain', direction: 'inbound', listener: 'virtualInbound', port: 80 } as const;
  const chains = { ...inbound, set: { metadata: { filterMetadata: {} } } };
  const setter = { namespace: 'shop', selector: { role: 'first' }, patches: [chains] };
  expect(new Set(lab.set('shop/p', setter))).toEqual(new Set(['filterChain virtualInbound']));
  expect(changed(before, lab)).toEqual(['one.shop']);
  const [listener] = [lab.message('one.shop', 'lds', 'virtualInbound')!];
  type Chain = { metadata?: object; filterChainMatch?: { destinationPort?: number } };
  const patched = (listener['filterChains'] as Chain[]).filter(({ metadata }) => metadata !== undefined);
  expect(new Set(patched.map(({ filterChainMatch }) => filterChainMatch?.destinationPort))).toEqual(new Set([80]));
  // Its outbound world is still the one that it shares.
  const outbound = (stream: string) => [...lab.resources(stream)].filter(([name]) => name.includes('outbound|'));
  expect(outbound('one.shop')).toEqual(outbound('two.shop'));
  for (const [name, resource] of outbound('one.shop')) expect(before[0]!.get(name)).toBe(resource);

  lab.set('shop/p', {
    ...setter,
    patches: [{ type: 'listener', direction: 'inbound', set: { statPrefix: 'patched' } }],
  });
  expect(lab.message('one.shop', 'lds', 'virtualInbound')).toMatchObject({ statPrefix: 'patched' });
  expect(lab.message('two.shop', 'lds', 'virtualInbound')).not.toMatchObject({ statPrefix: 'patched' });
});

test('outbound listeners, route tables, virtual hosts and routes are patched where they stand', () => {
  const lab = new Lab(route('shop/v', host('a'), host('b'), { hosts: [host('a'), host('b')] }), db);
  const versions = versionsOf(lab);
  const before = lab.all();
  const outbound = 'outbound' as const;
  lab.set('shop/p', {
    namespace: 'shop',
    patches: [
      { type: 'listener', direction: outbound, port: 80, set: { statPrefix: 'patched' } },
      { type: 'listener', direction: outbound, listener: '10.0.0.9_3306', set: { statPrefix: 'db' } },
      { type: 'routeTable', direction: outbound, table: '80', set: { mostSpecificHeaderMutationsWins: true } },
      { type: 'virtualHost', direction: outbound, host: host('a'), set: { includeRequestAttemptCount: false } },
      { type: 'route', direction: outbound, host: host('a'), set: { statPrefix: 'of-object' } },
      { type: 'route', direction: outbound, host: host('c'), set: { statPrefix: 'of-service' } },
    ],
  });
  expect(changed(before, lab)).toEqual(['one.shop', 'two.shop']);
  expect(lab.message('one.shop', 'lds', '0.0.0.0_80')).toMatchObject({ statPrefix: 'patched' });
  expect(lab.message('one.shop', 'lds', '10.0.0.9_3306')).toMatchObject({ statPrefix: 'db' });
  expect(lab.message('one.shop', 'lds', 'virtualOutbound')).not.toMatchObject({ statPrefix: 'patched' });
  const table = lab.message('one.shop', 'rds', '80')!;
  expect(table).toMatchObject({ mostSpecificHeaderMutationsWins: true });
  type Host = { name: string; includeRequestAttemptCount?: boolean; routes: { statPrefix?: string }[] };
  const hosts = Object.fromEntries(
    (table['virtualHosts'] as Host[]).map(({ name, routes, includeRequestAttemptCount = false }) => [
      name,
      [includeRequestAttemptCount, ...routes.map(({ statPrefix = '' }) => statPrefix)],
    ]),
  );
  expect(hosts).toMatchObject({
    [`${host('a')}:80`]: [false, 'of-object'],
    [`${host('b')}:80`]: [true, ''],
    [`${host('c')}:80`]: [true, 'of-service'],
  });
  lab.set('shop/p', undefined);
  expect(versionsOf(lab)).toEqual(versions);
});

test('listeners that a namespace patches are its own, with the same views', () => {
  const lab = new Lab(db);
  const before = lab.all();
  const where = { type: 'listener', direction: 'outbound', listener: '10.0.0.9_3306' } as const;
  lab.set('shop/p', { namespace: 'shop', patches: [{ ...where, set: { statPrefix: 'patched' } }] });
  expect(changed(before, lab)).toEqual(['one.shop', 'two.shop']);
  expect(lab.message('one.shop', 'lds', where.listener)).toMatchObject({ statPrefix: 'patched' });
  for (const [name, resource] of before[0]!)
    if (name.includes('outbound|')) expect(lab.resources('one.shop').get(name)).toBe(resource);
});

test('what routers get is patched apart from what sidecars get', () => {
  const lab = new Lab();
  const versions = versionsOf(lab);
  const before = lab.all();
  const direction = 'gateway' as const;
  lab.set('shop/p', {
    namespace: 'shop',
    selector: { role: 'edge' },
    patches: [
      { type: 'cluster', direction, host: host('a'), set: { altStatName: 'patched' } },
      { type: 'listener', direction, port: 80, set: { statPrefix: 'patched' } },
      { type: 'routeTable', direction, set: { mostSpecificHeaderMutationsWins: true } },
      { type: 'virtualHost', direction, host: 'x.test', set: { includeRequestAttemptCount: false } },
      { type: 'route', direction, host: 'x.test', set: { statPrefix: 'patched' } },
    ],
  });
  expect(changed(before, lab)).toEqual(['edge.shop']);
  expect(lab.message('edge.shop', 'cds', cluster('a'))).toMatchObject({ altStatName: 'patched' });
  expect(lab.mesh.json('edge.shop').lds).toEqual([expect.objectContaining({ statPrefix: 'patched' })]);
  const [table] = lab.mesh.json('edge.shop').rds as [Record<string, unknown>];
  expect(table).toMatchObject({ mostSpecificHeaderMutationsWins: true });
  type Host = { name: string; routes: { statPrefix?: string }[] };
  const prefixes = (table['virtualHosts'] as Host[]).map(
    ({ name, routes }) => `${name} ${routes[0]?.statPrefix ?? ''}`,
  );
  expect(prefixes.sort()).toEqual(['x.test:80 patched', 'y.test:80 ']);
  lab.set('shop/p', undefined);
  expect(versionsOf(lab)).toEqual(versions);
});

test('the object of a patch is among those that a patched resource was made from', () => {
  const lab = new Lab();
  lab.set('shop/p', {
    namespace: 'shop',
    patches: [
      { ...clusterPatch, host: host('a'), set: { altStatName: 'patched' } },
      { type: 'listener', direction: 'inbound', set: { statPrefix: 'patched' } },
      { type: 'virtualHost', direction: 'outbound', host: host('b'), set: { includeRequestAttemptCount: true } },
    ],
  });
  const has = (stream: string, name: string) => lab.originsOf(stream, name).includes(`${KIND}/p`);
  const names = [`Cluster ${cluster('a')}`, 'Listener virtualInbound', 'RouteConfiguration 80'];
  expect(names.map((name) => has('one.shop', name))).toEqual([true, true, true]);
  expect(names.map((name) => has('other.bank', name))).toEqual([false, false, false]);
  expect(has('one.shop', `Cluster ${cluster('b')}`)).toBe(false);
});

test.each([
  ['throws', { throw: true }, 'as it was told'],
  ['renames', { name: 'other' }, 'its name cannot change'],
  ['has no encoding', { altStatName: 5 }, 'altStatName'],
])('a patch that %s changes nothing, and its owner is told where', (_, set, reason) => {
  const lab = new Lab();
  const versions = versionsOf(lab);
  const listener = 'name' in set || 'throw' in set ? set : { statPrefix: 5 };
  lab.set('shop/p', {
    namespace: 'shop',
    patches: [
      { ...clusterPatch, host: host('a'), set },
      { type: 'listener', direction: 'inbound', set: listener },
    ],
  });
  expect(versionsOf(lab)).toEqual(versions);
  expect(lab.said()).toEqual([
    expect.stringMatching(`^p spec\\[0\\]: cannot be applied to the cluster ${host('a')}, which is .*${reason}`),
    expect.stringMatching(/^p spec\[1\]: cannot be applied to the listener virtualInbound, which is /),
  ]);
  lab.set('shop/p', undefined);
  expect(lab.said()).toEqual([]);
});

test.each([
  ['throws', { throw: true }],
  ['renames', { name: 'other' }],
  ['has no encoding', { altStatName: 5 }],
])('a patch that %s leaves the patches of other objects in force, before and after it', (_, set) => {
  const lab = new Lab();
  const of = (more: Readonly<Record<string, unknown>>) => [{ ...clusterPatch, host: host('a'), set: more }];
  lab.set('root/first', { namespace: '', patches: of({ connectTimeout: { seconds: 7 } }) });
  lab.set('shop/last', { namespace: 'shop', priority: 9, patches: of({ altStatName: 'patched' }) });
  const served = lab.message('one.shop', 'cds', cluster('a'));
  expect(served).toMatchObject({ altStatName: 'patched', connectTimeout: '7s' });
  lab.set('shop/bad', { namespace: 'shop', patches: of(set) });
  expect(lab.message('one.shop', 'cds', cluster('a'))).toEqual(served);
  expect(lab.said()).toEqual([expect.stringMatching(/^bad /)]);
  const origins = lab.originsOf('one.shop', `Cluster ${cluster('a')}`);
  expect(['first', 'last', 'bad'].map((name) => origins.includes(`${KIND}/${name}`))).toEqual([true, true, false]);
});

test('a host that a patch names splits the views of its namespace alone', () => {
  const lab = new Lab(service('bank/ledger'), slice('bank/ledger', '10.0.2.1'));
  const views = (namespace: string): number =>
    [...lab.mesh.graph.collections.find(({ name }) => name === 'viewLists')!.entries()].filter(([key]) =>
      key.startsWith(`${namespace}@`),
    ).length;
  const before = ['shop', 'bank'].map(views);
  const set = { altStatName: 'patched' };
  lab.set('bank/p', { namespace: 'bank', patches: [{ ...clusterPatch, host: host('a'), set }] });
  expect(['shop', 'bank'].map(views)).toEqual([before[0]! + 1, before[1]!]);
  lab.set('bank/p', { namespace: 'bank', patches: [{ ...clusterPatch, set }] });
  expect(['shop', 'bank'].map(views)).toEqual([before[0]! + 1, before[1]! + 1]);
  // Those who are patched alike share views, wherever they are.
  lab.set('bank/p', { namespace: '', patches: [{ ...clusterPatch, set }] });
  expect(['shop', 'bank'].map(views)).toEqual(before);
});
