import { expect, test, vi } from 'vitest';
import { testEncoder } from '../../test/harness/mesh.ts';
import {
  destinationRule,
  gateway,
  service,
  serviceEntry,
  sidecar,
  virtualService,
} from '../../test/features/objects.ts';
import { type KindName, kinds } from '../api/kinds.ts';
import { type KubernetesObject, objectKey } from '../api/object.ts';
import { Graph, type Write } from '../cache/graph.ts';
import { type MeshOptions, ONE, defaultMeshOptions } from '../mesh/inputs.ts';
import { generationKey } from '../mesh/objects/in-force.ts';
import { buildMesh } from '../mesh.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ObjectWriter } from './object-writer.ts';
import { NameIndex } from './name-index.ts';
import { WAIT_MS, WaitingObjects } from './waiting-objects.ts';

type Spec = Readonly<Record<string, unknown>>;

/** From what an API server delivers, object by object, to what is in force. */
class Lab {
  readonly clock = new FakeClock();
  readonly mesh = buildMesh(new Graph(), testEncoder());
  readonly waiting: WaitingObjects;
  readonly writer: ObjectWriter;
  readonly others: ObjectWriter;
  readonly #generations = new Map<string, number>();
  readonly #writes: Write[] = [];
  isServing = false;

  constructor() {
    const write = (one: Write): void => void this.#writes.push(one);
    const { inputs } = this.mesh;
    const options: MeshOptions = defaultMeshOptions;
    this.waiting = new WaitingObjects({
      ...options,
      inputs,
      write,
      isServing: () => this.isServing,
      clock: this.clock,
      signal: new AbortController().signal,
    });
    const shared = { revision: undefined, inputs, listeners: [], write };
    this.writer = new ObjectWriter({ source: 'Kubernetes', ...shared, waiting: this.waiting });
    this.others = new ObjectWriter({ source: 'b', isRemote: true, ...shared, waiting: this.waiting });
    write(inputs.options.write(ONE, options));
  }

  static serving(...objects: readonly KubernetesObject[]): Lab {
    const lab = new Lab();
    lab.apply(...objects);
    lab.isServing = true;
    return lab;
  }

  apply(...objects: readonly KubernetesObject[]): void {
    for (const object of objects) this.writer.upsert(object.kind as KindName, this.next(object));
    this.commit();
  }

  /** As it is, with another status. */
  again({ kind, metadata: { namespace = '', name } }: KubernetesObject): void {
    const object = this.mesh.inputs.objects[kind as KindName].get(objectKey('Kubernetes', namespace, name))!;
    this.writer.upsert(kind as KindName, { ...object, status: {} } as KubernetesObject);
    this.commit();
  }

  delete(...objects: readonly KubernetesObject[]): void {
    for (const { kind, metadata } of objects)
      this.writer.delete(kind as KindName, metadata.namespace ?? '', metadata.name);
    this.commit();
  }

  list(kind: KindName, ...objects: readonly KubernetesObject[]): void {
    this.writer.replace(
      kind,
      objects.map((object) => this.next(object)),
    );
    this.commit();
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
    this.commit();
  }

  /** What is in force of it, by what is written in `spec`; undefined: nothing. */
  inForce({ kind, metadata: { namespace = '', name } }: KubernetesObject): unknown {
    const key = objectKey('Kubernetes', namespace, name);
    const { objects, waiting } = this.mesh.inputs;
    const newest = objects[kind as KindName].get(key);
    if (newest === undefined || !isCustom(kind as KindName)) return specOf(newest);
    const verdict = this.mesh.verdicts.get(generationKey(kind as 'VirtualService', key));
    if (verdict?.inForce === undefined) return specOf(newest);
    if (verdict.inForce === 'nothing') return undefined;
    const { instead } = waiting.get(generationKey(kind as 'VirtualService', key))!;
    expect(instead?.metadata.generation).toBe(verdict.inForce.generation);
    return specOf(instead);
  }

  /** Why an object is not in force as it is. */
  waits({ kind, metadata: { namespace = '', name } }: KubernetesObject): string | undefined {
    const key = generationKey(kind as 'VirtualService', objectKey('Kubernetes', namespace, name));
    return this.mesh.verdicts.get(key)?.waits;
  }

  next<T extends KubernetesObject>(object: T): T {
    const { kind, metadata } = object;
    const id = `${kind}/${metadata.namespace}/${metadata.name}`;
    const generation = (this.#generations.get(id) ?? 0) + 1;
    this.#generations.set(id, generation);
    return { ...object, metadata: { ...metadata, uid: id, generation } };
  }

  commit(): void {
    this.mesh.graph.commit(this.#writes.splice(0));
  }
}

const specOf = (object: (KubernetesObject & { spec?: unknown }) | undefined): unknown => object?.spec;

const isCustom = (kind: KindName): boolean => kinds.some(({ name, custom }) => name === kind && custom);

type Service = KubernetesObject & { readonly spec: Spec & { readonly ports: readonly Spec[] } };

const reviews = service('reviews', '10.96.0.1') as Service;
const ratings = service('ratings', '10.96.0.2') as Service;
const subsets = (...names: readonly string[]) =>
  destinationRule('reviews', { host: 'reviews', subsets: names.map((name) => ({ name })) });
const to = (destination: Spec, name = 'reviews', namespace?: string) =>
  virtualService(name, { hosts: [name], http: [{ route: [{ destination }] }] }, namespace);
const toSubset = (subset: string, name?: string) => to({ host: 'reviews', subset }, name);
const inNamespace = <T extends KubernetesObject>(namespace: string, object: T): T => ({
  ...object,
  metadata: { ...object.metadata, namespace },
});

test('a route waits for the subset that it names, and both come into force together', () => {
  const lab = Lab.serving(reviews, subsets('a'), toSubset('a'));
  lab.apply(toSubset('b'));
  expect(lab.inForce(toSubset('a'))).toEqual(toSubset('a').spec);
  expect(lab.waits(toSubset('b'))).toBe(
    'Waits for subset "b" of "reviews.shop.svc.cluster.local", which it names, but not beyond 2030-01-01T00:00:30Z.',
  );
  lab.apply(subsets('b'));
  expect([lab.inForce(toSubset('b')), lab.inForce(subsets('b'))]).toEqual([toSubset('b').spec, subsets('b').spec]);
  expect([lab.waiting.size, lab.clock.pending]).toEqual([0, 0]);
});

test('a rule waits until no route names the subsets that it takes away', () => {
  const lab = Lab.serving(reviews, ratings, subsets('a'), toSubset('a'), toSubset('a', 'ratings'));
  lab.apply(subsets('b'));
  expect(lab.inForce(subsets('b'))).toEqual(subsets('a').spec);
  expect(lab.waits(subsets('b'))).toBe(
    'Waits until VirtualService "shop/reviews" no longer names subset "a" of "reviews.shop.svc.cluster.local", but not beyond 2030-01-01T00:00:30Z.',
  );
  lab.apply(toSubset('b'));
  // One that is not there is as bad as one that goes.
  expect(lab.inForce(toSubset('b'))).toEqual(toSubset('a').spec);
  lab.apply(toSubset('b', 'ratings'));
  for (const object of [subsets('b'), toSubset('b'), toSubset('b', 'ratings')])
    expect(lab.inForce(object)).toEqual(object.spec);
});

test.each([
  ['host', to({ host: 'ratings' }), ratings],
  ['host', to({ host: 'api.example.com' }), serviceEntry('api', { hosts: ['api.example.com'] })],
  ['port', to({ host: 'ratings', port: { number: 81 } }), withPort(ratings, 81)],
  ['delegate', virtualService('reviews', { hosts: ['reviews'], http: [{ delegate: { name: 'part' } }] }), part('part')],
  ['mirror', virtualService('reviews', { hosts: ['reviews'], http: [{ mirror: { host: 'ratings' } }] }), ratings],
  ['gateway', virtualService('reviews', { hosts: ['reviews'], gateways: ['new'] }), gateway('new', {})],
])('a new generation waits for a missing %s', (_, object, missing) => {
  const lab = Lab.serving(reviews, toSubset(''));
  lab.apply(object);
  expect(lab.inForce(object)).toEqual(toSubset('').spec);
  lab.apply(missing);
  expect(lab.waits(object)).toBeUndefined();
});

test.each([
  ['Service', to({ host: 'ratings' }), ratings],
  ['host of a ServiceEntry', to({ host: 'api.example.com' }), serviceEntry('api', { hosts: ['api.example.com'] })],
  ['delegate', virtualService('reviews', { hosts: ['reviews'], http: [{ delegate: { name: 'part' } }] }), part('part')],
  ['Gateway', virtualService('reviews', { hosts: ['reviews'], gateways: ['new'] }), gateway('new', {})],
  [
    'Service that an egress proxy is',
    sidecar('default', { outboundTrafficPolicy: { egressProxy: { host: 'ratings' } } }),
    ratings,
  ],
])('a deleted %s stays while it is named, and a change of what names it lets it go', (_, object, named) => {
  const lab = Lab.serving(reviews, named, object);
  lab.delete(named);
  expect(lab.inForce(named)).toEqual(named.spec);
  lab.delete(object);
  expect([lab.inForce(named), lab.inForce(object)]).toEqual([undefined, undefined]);
});

test('a port of a Service stays while it is named', () => {
  const lab = Lab.serving(reviews, withPort(ratings, 81), to({ host: 'ratings', port: { number: 81 } }));
  lab.apply(ratings);
  expect(lab.inForce(ratings)).toEqual(withPort(ratings, 81).spec);
  lab.apply(to({ host: 'ratings', port: { number: 80 } }));
  expect(lab.inForce(ratings)).toEqual(ratings.spec);
});

test('nothing waits for long: then it is in force as it is written', async () => {
  const lab = Lab.serving(reviews, ratings, subsets('a'), toSubset('a'), to({ host: 'ratings' }, 'ratings'));
  lab.apply(toSubset('b'));
  lab.delete(ratings);
  await lab.pass(WAIT_MS.quiet - 1_000);
  // Neither our own statuses nor others prolong it.
  lab.apply(inNamespace('other', toSubset('b')));
  lab.again(toSubset('b'));
  expect(lab.inForce(toSubset('b'))).toEqual(toSubset('a').spec);
  await lab.pass(1_000);
  expect([lab.inForce(toSubset('b')), lab.inForce(ratings)]).toEqual([toSubset('b').spec, undefined]);
  expect(lab.waits(toSubset('b'))).toBeUndefined();
  await lab.pass(WAIT_MS.quiet);
  expect([lab.waiting.size, lab.clock.pending]).toEqual([0, 0]);
  // What was missing before is not waited for again.
  lab.apply(virtualService('reviews', { ...toSubset('b').spec, gateways: ['mesh'] }));
  expect(lab.waiting.size).toBe(0);
});

test('while objects of its namespace arrive it goes on waiting, up to a limit', async () => {
  const lab = Lab.serving(reviews, toSubset(''));
  for (let passed = 0; passed < WAIT_MS.max; passed += 4_000) {
    // A generation that follows does not begin anew.
    lab.apply(toSubset(`v${passed}`), sidecar('default', { egress: [{ hosts: [`./${passed}`] }] }));
    expect(lab.inForce(toSubset(''))).toEqual(toSubset('').spec);
    await lab.pass(4_000);
  }
  expect([lab.waiting.size, lab.inForce(toSubset(''))]).toEqual([0, toSubset('v28000').spec]);
});

test('a new object that names something missing is not in force meanwhile, unless only a Gateway is missing', () => {
  const lab = Lab.serving(reviews, subsets('a'));
  lab.apply(toSubset('b'));
  expect(lab.inForce(toSubset('b'))).toBeUndefined();
  lab.apply(subsets('a', 'b'));
  expect(lab.inForce(toSubset('b'))).toEqual(toSubset('b').spec);
  const late = virtualService('late', { ...to({ host: 'reviews' }).spec, hosts: ['late'], gateways: ['mesh', 'none'] });
  lab.apply(late);
  expect(lab.inForce(late)).toEqual(late.spec);
});

test('what waits delays no other change', () => {
  const lab = Lab.serving(reviews, ratings, subsets('a'), toSubset('a'));
  lab.apply(toSubset('b'));
  const others = [to({ host: 'ratings' }, 'ratings'), withPort(reviews, 81), gateway('new', {})];
  for (const other of others) {
    lab.apply(other);
    expect(lab.inForce(other)).toEqual(other.spec);
  }
  expect(lab.inForce(toSubset('b'))).toEqual(toSubset('a').spec);
});

test('nobody keeps an object of another namespace by naming it', () => {
  const foreign = to({ host: 'reviews.shop.svc.cluster.local', subset: 'a' }, 'reviews', 'other');
  const lab = Lab.serving(reviews, subsets('a'), foreign);
  lab.apply(subsets('b'));
  expect(lab.inForce(subsets('b'))).toEqual(subsets('b').spec);
  lab.delete(reviews);
  expect(lab.inForce(reviews)).toBeUndefined();
});

test('a subset counts where clients in the namespace of the route find it', () => {
  const lab = Lab.serving(reviews, toSubset(''));
  lab.apply(toSubset('b'));
  const host = 'reviews.shop.svc.cluster.local';
  const rule = (spec: Spec) => destinationRule('reviews', { host, subsets: [{ name: 'b' }], ...spec });
  lab.apply(inNamespace('other', rule({})));
  lab.apply(inNamespace('istio-system', rule({ exportTo: ['.'] })));
  expect(lab.inForce(toSubset('b'))).toEqual(toSubset('').spec);
  lab.apply(inNamespace('istio-system', rule({ host: '*.shop.svc.cluster.local' })));
  expect(lab.inForce(toSubset('b'))).toEqual(toSubset('b').spec);
});

test('a rule for a wildcard host is found by what waits for a subset of one of its hosts', () => {
  const wildcard = inNamespace('istio-system', destinationRule('all', { host: '*.local', subsets: [{ name: 'b' }] }));
  const lab = Lab.serving(reviews, toSubset(''));
  lab.apply(toSubset('b'));
  expect(lab.waiting.size).toBe(1);
  lab.apply(wildcard);
  expect([lab.waiting.size, lab.inForce(toSubset('b'))]).toEqual([0, toSubset('b').spec]);
});

test('a subset that a rule takes away is not missed where a rule for a wildcard host has it', () => {
  const wildcard = inNamespace('istio-system', destinationRule('all', { host: '*.local', subsets: [{ name: 'a' }] }));
  const lab = Lab.serving(reviews, subsets('a'), toSubset('a'));
  lab.apply(subsets('b'));
  expect(lab.waiting.size).toBe(1);
  lab.apply(wildcard);
  expect([lab.waiting.size, lab.inForce(subsets('b'))]).toEqual([0, subsets('b').spec]);
});

test('wildcard hosts are not compared with everything else that arrives', () => {
  const lab = Lab.serving(reviews);
  const entries = Array.from({ length: 4 }, (_, i) =>
    serviceEntry(`e${i}`, { hosts: Array.from({ length: 100 }, (_each, j) => `*.h${j}.e${i}.example.com`) }),
  );
  const compared = vi.spyOn(String.prototype, 'endsWith');
  lab.list('ServiceEntry', ...entries);
  expect(compared.mock.calls.length).toBeLessThan(10 * 400);
  compared.mockRestore();
});

test('a Service behind an ExternalName, and one of another cluster, are there', () => {
  const alias = { ...reviews, metadata: { ...reviews.metadata, name: 'alias' }, spec: { type: 'ExternalName' } };
  const lab = Lab.serving(reviews, alias, toSubset(''));
  const aliased = to({ host: 'alias', port: { number: 81 }, subset: 'any' });
  lab.apply(aliased);
  expect(lab.inForce(aliased)).toEqual(aliased.spec);
  lab.apply(to({ host: 'ratings' }));
  expect(lab.waiting.size).toBe(1);
  lab.others.upsert('Service', ratings);
  lab.commit();
  expect(lab.inForce(to({ host: 'ratings' }))).toEqual(to({ host: 'ratings' }).spec);
  // What goes there goes at once.
  lab.others.delete('Service', 'shop', 'ratings');
  expect(lab.waiting.size).toBe(0);
});

test('an object that returns while it was to go is as if it had never been away', () => {
  const lab = Lab.serving(reviews, subsets('a'), toSubset('a'));
  lab.delete(subsets('a'));
  lab.apply(subsets('a', 'b'));
  expect(lab.inForce(subsets('a'))).toEqual(subsets('a', 'b').spec);
  expect(lab.waiting.size).toBe(0);
  lab.delete(subsets('a'));
  lab.apply(subsets('c'));
  expect(lab.inForce(subsets('a'))).toEqual(subsets('a', 'b').spec);
  lab.delete(toSubset('a'));
  expect(lab.inForce(subsets('a'))).toEqual(subsets('c').spec);
});

test('an object that goes while it waits is gone', async () => {
  const lab = Lab.serving(reviews, toSubset(''));
  lab.apply(toSubset('b'), toSubset('b', 'new'));
  lab.delete(toSubset('b'), toSubset('b', 'new'));
  expect([lab.inForce(toSubset('b')), lab.inForce(toSubset('b', 'new')), lab.waiting.size]).toEqual([
    undefined,
    undefined,
    0,
  ]);
  await lab.pass(WAIT_MS.max);
  expect(lab.mesh.inputs.waiting.size).toBe(0);
});

test('objects that are listed together are looked at together', () => {
  const lab = Lab.serving(reviews, part('part'));
  const root = virtualService('reviews', { hosts: ['reviews'], http: [{ delegate: { name: 'other' } }] });
  lab.list('VirtualService', root, part('other'));
  expect([lab.waiting.size, lab.inForce(root), lab.inForce(part('part'))]).toEqual([0, root.spec, undefined]);
});

test('before proxies are served nothing waits', () => {
  const lab = new Lab();
  lab.apply(reviews, toSubset('b'));
  lab.apply(subsets('a'));
  lab.delete(reviews);
  expect([lab.waiting.size, lab.inForce(toSubset('b')), lab.inForce(reviews)]).toEqual([
    0,
    toSubset('b').spec,
    undefined,
  ]);
});

test('all of an application can be deleted in any order', () => {
  const app = [reviews, subsets('a'), toSubset('a')];
  for (const order of [app, [...app].reverse()]) {
    const lab = Lab.serving(...app);
    lab.delete(...order);
    expect(app.map((object) => lab.inForce(object))).toEqual([undefined, undefined, undefined]);
  }
});

test('so many names of one namespace wait, and others do not suffer from it', () => {
  const lab = Lab.serving(reviews);
  const many = (name: string, count: number, namespace?: string) =>
    virtualService(
      name,
      {
        hosts: [name],
        http: [{ route: Array.from({ length: count }, (_, i) => ({ destination: { host: `${name}-${i}` } })) }],
      },
      namespace,
    );
  for (const name of ['a', 'b', 'c']) lab.apply(many(name, 900));
  expect([lab.inForce(many('a', 900)), lab.inForce(many('c', 900))]).toEqual([undefined, many('c', 900).spec]);
  lab.apply(many('a', 1, 'other'));
  expect(lab.inForce(many('a', 1, 'other'))).toBeUndefined();
});

test('who sees a Service is read once, however many of its ports are named', () => {
  let reads = 0;
  const annotations = {
    get 'networking.istio.io/exportTo'() {
      reads++;
      return 'a,b,.';
    },
  };
  const ports = Array.from({ length: 100 }, (_, i) => i + 100);
  const many = ports.reduce(withPort, { ...reviews, metadata: { ...reviews.metadata, annotations } });
  const lab = Lab.serving(many, toSubset(''));
  const before = reads;
  const route = ports.map((number) => ({ destination: { host: 'reviews', port: { number } } }));
  lab.apply(virtualService('reviews', { hosts: ['reviews'], http: [{ route }] }));
  expect([lab.waiting.size, reads]).toEqual([0, before]);
});

test('who offers a host is looked up once, however many of its ports and subsets are named', () => {
  let reads = 0;
  const spec = {
    ...reviews.spec,
    get type() {
      reads++;
      return 'ClusterIP';
    },
  };
  const names = Array.from({ length: 100 }, (_, i) => `s${i}`);
  const named: Service = { ...reviews, spec };
  const lab = Lab.serving(named, subsets(...names), toSubset('s0'));
  const before = reads;
  const route = names.map((subset) => ({ destination: { host: 'reviews', subset } }));
  lab.apply(virtualService('reviews', { hosts: ['reviews'], http: [{ route }] }));
  expect(lab.waiting.size).toBe(0);
  expect(reads - before).toBeLessThan(10);
});

test('changes that are about one host are each looked at a few times, however they depend on each other', () => {
  const lab = Lab.serving(reviews);
  const links = 100;
  const link = (i: number) =>
    virtualService(`link-${i}`, {
      http: [{ route: [{ destination: { host: 'reviews' } }] }, { delegate: { name: `link-${i + 1}` } }],
    });
  lab.list('VirtualService', ...Array.from({ length: links }, (_, i) => link(i)));
  expect(lab.waiting.size).toBe(links);
  const lookups = vi.spyOn(NameIndex.prototype, 'has');
  lab.apply(withPort(reviews, 81));
  expect(lookups.mock.calls.length).toBeLessThan(5 * links);
  lookups.mockRestore();
  lab.apply(part(`link-${links}`));
  expect(lab.waiting.size).toBe(0);
});

test.each([
  [
    'a port of a ServiceEntry whose hosts and ports multiply',
    serviceEntry('many', {
      hosts: Array.from({ length: 50 }, (_, i) => `h${i}.example.com`),
      ports: Array.from({ length: 50 }, (_, i) => ({ number: i + 1, name: `tcp-${i}` })),
    }),
    { host: 'h1.example.com', port: { number: 9_999 } },
  ],
  ['a host longer than there can be one', reviews, { host: `${'a.'.repeat(300)}b` }],
  [
    'a subset of such a host',
    destinationRule('long', { host: `${'a.'.repeat(300)}b`, subsets: [{ name: 'a' }] }),
    { host: `${'a.'.repeat(300)}b`, subset: 'b' },
  ],
])('%s is not waited for', (_, object, destination) => {
  const lab = Lab.serving(reviews, object, toSubset(''));
  lab.apply(to(destination));
  expect(lab.inForce(to(destination))).toEqual(to(destination).spec);
});

test('a host that a thousand objects claim counts as there, whoever sees it', () => {
  const hosts = ['api.example.com'];
  const entries = Array.from({ length: 1_001 }, (_, i) =>
    inNamespace('other', serviceEntry(`e${i}`, { hosts, exportTo: ['.'] })),
  );
  const route = to({ host: 'api.example.com' });
  const lab = Lab.serving(...entries.slice(0, 1_000), reviews, toSubset(''));
  lab.apply(route);
  expect(lab.waiting.size).toBe(1);
  lab.apply(entries[1_000]!);
  expect([lab.waiting.size, lab.inForce(route)]).toEqual([0, route.spec]);
});

function withPort(object: Service, port: number): Service {
  const more = { name: `http-${port}`, port, protocol: 'TCP', targetPort: 8080 };
  return { ...object, spec: { ...object.spec, ports: [...object.spec.ports, more] } };
}

function part(name: string) {
  return virtualService(name, { http: [{ route: [{ destination: { host: 'reviews' } }] }] });
}
