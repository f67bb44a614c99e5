import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import { Discovery } from './discovery.ts';
import { NamespaceFilter } from './namespace-filter.ts';

/** What a sink was told is there. */
class Held implements ObjectSink {
  readonly objects = new Map<string, KubernetesObject>();
  onTold: (what: string) => void = () => undefined;

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    for (const key of this.objects.keys()) if (key.startsWith(`${kind}/`)) this.objects.delete(key);
    for (const object of objects) this.upsert(kind, object);
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    this.onTold(`upsert ${object.metadata.name}`);
    this.objects.set(`${kind}/${object.metadata.namespace ?? ''}/${object.metadata.name}`, object);
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    this.onTold(`delete ${name}`);
    this.objects.delete(`${kind}/${namespace}/${name}`);
  }

  get keys(): readonly string[] {
    return [...this.objects.keys()].sort();
  }
}

const object = (kind: SourceKindName, namespace: string, name: string, rest: object = {}): KubernetesObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { namespace, name },
  ...rest,
});

const namespace = (name: string, labels: Readonly<Record<string, string>> = {}): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

const meshConfig = (mesh: string): KubernetesObject => object('ConfigMap', 'istio-system', 'istio', { data: { mesh } });

function start() {
  const discovery = new Discovery();
  const [own, remote] = [new Held(), new Held()];
  const moved: (readonly string[])[] = [];
  const filter = new NamespaceFilter({
    ...{ discovery, sink: own },
    own: { rootNamespace: 'istio-system', namespace: 'control' },
    changed: (names) => moved.push(names),
  });
  return { own, remote, moved, filter, other: new NamespaceFilter({ discovery, sink: remote }) };
}

const IN = 'discoverySelectors: [{ matchLabels: { mesh: "in" } }]';

test('objects come and go with the labels of their namespace and with the selectors', () => {
  const { own, moved, filter } = start();
  filter.upsert('Namespace', namespace('a', { mesh: 'in' }));
  filter.upsert('Namespace', namespace('b'));
  for (const name of ['a', 'b']) filter.upsert('Service', object('Service', name, 's'));
  expect(own.keys).toEqual(['Namespace//a', 'Namespace//b', 'Service/a/s', 'Service/b/s']);
  expect(filter.leftOut()).toBeUndefined();
  filter.upsert('ConfigMap', meshConfig(IN));
  expect(own.keys.filter((key) => key.startsWith('Service'))).toEqual(['Service/a/s']);
  expect(filter.leftOut()).toEqual({ namespaces: 1, names: ['b'], objects: 1 });
  filter.upsert('Namespace', namespace('b', { mesh: 'in' }));
  filter.upsert('Namespace', namespace('a', { mesh: 'out' }));
  expect(own.keys.filter((key) => key.startsWith('Service'))).toEqual(['Service/b/s']);
  // What is deleted by mistake must not bring in the rest of the cluster.
  filter.delete('ConfigMap', 'istio-system', 'istio');
  expect(own.keys.filter((key) => key.startsWith('Service'))).toEqual(['Service/b/s']);
  filter.upsert('ConfigMap', meshConfig(''));
  expect(own.keys.filter((key) => key.startsWith('Service'))).toEqual(['Service/a/s', 'Service/b/s']);
  expect(moved).toEqual([['b'], ['b'], ['a'], ['a']]);
});

test('a namespace that is not known is not selected; the objects wait for it', () => {
  const { own, filter } = start();
  filter.replace('ConfigMap', [meshConfig(IN)]);
  filter.replace('Pod', [object('Pod', 'a', 'p')]);
  expect(filter.leavesOut('a')).toBe(false);
  expect([...filter.kept()].map(({ metadata }) => metadata.name)).toEqual(['p']);
  filter.replace('Namespace', [namespace('a', { mesh: 'in' })]);
  expect(own.keys).toContain('Pod/a/p');
  filter.replace('Namespace', []);
  expect(own.keys).not.toContain('Pod/a/p');
});

test('what is in no namespace, the mesh config, Secrets and the Pods of the control plane are always read', () => {
  const { own, filter } = start();
  filter.upsert('ConfigMap', meshConfig(IN));
  for (const name of ['a', 'control', 'istio-system']) filter.upsert('Namespace', namespace(name));
  for (const name of ['a', 'control']) filter.upsert('Pod', object('Pod', name, 'p'));
  filter.upsert('Secret', object('Secret', 'a', 's'));
  filter.upsert('Node', object('Node', '', 'n'));
  filter.upsert('PeerAuthentication', object('PeerAuthentication', 'istio-system', 'default'));
  expect(own.keys.filter((key) => !key.startsWith('Namespace'))).toEqual([
    'ConfigMap/istio-system/istio',
    'Node//n',
    'Pod/control/p',
    'Secret/a/s',
  ]);
  expect(filter.leftOut()).toMatchObject({ namespaces: 3, objects: 2 });
  expect(filter.leavesOut('a')).toBe(true);
});

test('the selectors of the own mesh config decide about other clusters, by the labels there', () => {
  const { own, remote, filter, other } = start();
  for (const [to, labels] of [
    [filter, { mesh: 'in' }],
    [other, {}],
  ] as const) {
    to.upsert('Namespace', namespace('a', labels));
    to.upsert('Service', object('Service', 'a', 's'));
  }
  other.upsert('ConfigMap', meshConfig('discoverySelectors: [{ matchLabels: { never: "" } }]'));
  filter.upsert('ConfigMap', meshConfig(IN));
  expect(own.keys).toContain('Service/a/s');
  expect(remote.keys).not.toContain('Service/a/s');
  other.replace('Namespace', [namespace('a', { mesh: 'in' })]);
  expect(remote.keys).toContain('Service/a/s');
});

test('of another cluster, a list passes on only what has changed', () => {
  const { remote, other } = start();
  const named = (name: string, rest: object = {}) => object('Service', 'a', name, rest);
  other.replace('Service', [named('same'), named('changed'), named('gone')]);
  const before = new Map(remote.objects);
  const told: string[] = [];
  remote.onTold = (what) => told.push(what);
  other.replace('Service', [named('same'), named('changed', { spec: { type: 'ClusterIP' } }), named('new')]);
  expect(told.sort()).toEqual(['delete gone', 'upsert changed', 'upsert new']);
  expect(remote.objects.get('Service/a/same')).toBe(before.get('Service/a/same'));
});

test('a mistake in the mesh config leaves the selectors as they were', () => {
  const { own, filter } = start();
  filter.upsert('Namespace', namespace('a'));
  filter.upsert('Service', object('Service', 'a', 's'));
  filter.upsert('ConfigMap', meshConfig('discoverySelectors: [{ matchExpressions: [{ key: a, operator: Is }] }]'));
  expect(own.keys).toContain('Service/a/s');
  filter.upsert('ConfigMap', meshConfig(IN));
  expect(own.keys).not.toContain('Service/a/s');
  filter.upsert('ConfigMap', meshConfig('connectTimeout: never'));
  expect(own.keys).not.toContain('Service/a/s');
  filter.upsert('ConfigMap', meshConfig('{}'));
  expect(own.keys).toContain('Service/a/s');
});

test.each(['own', 'other'] as const)(
  'whatever comes in whatever order, what is passed on of the %s cluster is what is selected now',
  (which) => {
    const names = ['a', 'b', 'c'] as const;
    const label = fc.constantFrom('in', 'out');
    const listed = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.constantFrom('x', 'y')), {
      selector: ([of, name]) => `${of}/${name}`,
    });
    const kind = fc.constantFrom<SourceKindName>('Pod', 'VirtualService');
    const step = fc.oneof(
      fc.record({ do: fc.constant('list' as const), kind, listed }),
      fc.record({ do: fc.constant('upsert' as const), kind, of: fc.constantFrom(...names), name: fc.constant('x') }),
      fc.record({ do: fc.constant('delete' as const), kind, of: fc.constantFrom(...names), name: fc.constant('x') }),
      fc.record({ do: fc.constant('label' as const), of: fc.constantFrom(...names), label }),
      fc.record({ do: fc.constant('gone' as const), of: fc.constantFrom(...names) }),
      fc.record({ do: fc.constant('namespaces' as const), labels: fc.dictionary(fc.constantFrom(...names), label) }),
      fc.record({ do: fc.constant('select' as const), text: fc.constantFrom('{}', IN) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const made = start();
        const { filter: selecting } = made;
        const [held, filter] = which === 'own' ? [made.own, made.filter] : [made.remote, made.other];
        const there = new Map<string, string>();
        const labels = new Map<string, string>();
        let isSelective = false;
        for (const each of steps) {
          if (each.do === 'list') {
            for (const key of there.keys()) if (key.startsWith(`${each.kind}/`)) there.delete(key);
            for (const [of, name] of each.listed) there.set(`${each.kind}/${of}/${name}`, of);
            filter.replace(
              each.kind,
              each.listed.map(([of, name]) => object(each.kind, of, name)),
            );
          } else if (each.do === 'upsert') {
            there.set(`${each.kind}/${each.of}/${each.name}`, each.of);
            filter.upsert(each.kind, object(each.kind, each.of, each.name));
          } else if (each.do === 'delete') {
            there.delete(`${each.kind}/${each.of}/${each.name}`);
            filter.delete(each.kind, each.of, each.name);
          } else if (each.do === 'label') {
            labels.set(each.of, each.label);
            filter.upsert('Namespace', namespace(each.of, { mesh: each.label }));
          } else if (each.do === 'gone') {
            labels.delete(each.of);
            filter.delete('Namespace', '', each.of);
          } else if (each.do === 'namespaces') {
            labels.clear();
            for (const [of, value] of Object.entries(each.labels)) labels.set(of, value);
            filter.replace(
              'Namespace',
              Array.from(labels, ([of, value]) => namespace(of, { mesh: value })),
            );
          } else {
            isSelective = each.text === IN;
            selecting.upsert('ConfigMap', meshConfig(each.text));
          }
          const wanted = [...there].flatMap(([key, of]) => (!isSelective || labels.get(of) === 'in' ? [key] : []));
          const passed = held.keys.filter((key) => !/^(Namespace|ConfigMap)/.test(key));
          expect(passed).toEqual(wanted.sort());
          const leftOut = [...filter.kept()].length;
          expect(leftOut).toBe(there.size - wanted.length);
        }
      }),
    );
  },
);
