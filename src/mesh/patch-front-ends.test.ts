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

/** What the front end did: `type subject`, one for each message that it changed. */
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
const objects = ['a', 'b', 'c'].flatMap((name) => [service(`shop/${name}`), slice(`shop/${name}`, '10.0.1.1')]);

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
    this.mesh.apply([...objects, ...more]);
    for (const stream of ['one.shop', 'two.shop', 'other.bank']) this.mesh.connect(proxy(stream));
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

const bytesOf = (resources: ReadonlyMap<string, EncodedResource>): ReadonlyMap<string, string> =>
  new Map([...resources].map(([name, { version }]) => [name, version]));

const cluster = (name: string): string => `outbound|80||${host(name)}`;
const clusterPatch = { type: 'cluster', direction: 'outbound' } as const;

test('clusters that a namespace patches are its own; all others stay the same objects', () => {
  const lab = new Lab();
  const [one, other] = ['one.shop', 'other.bank'].map((stream) => lab.resources(stream)) as [never, never];
  const set = { altStatName: 'patched' };
  expect(lab.set('shop/p', { patches: [{ ...clusterPatch, host: host('a'), set }] })).toEqual([`cluster ${host('a')}`]);
  expect(lab.message('one.shop', 'cds', cluster('a'))).toMatchObject(set);
  expect(lab.message('two.shop', 'cds', cluster('a'))).toMatchObject(set);
  expect(lab.message('one.shop', 'cds', cluster('b'))).not.toMatchObject(set);
  expect(differing(other, lab.resources('other.bank'))).toEqual([]);
  expect(differing(one, lab.resources('one.shop')).filter((name) => name.startsWith('Cluster outbound'))).toEqual([
    `Cluster ${cluster('a')}`,
  ]);
});
