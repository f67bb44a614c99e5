import { expect, test } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import { Graph, type Write } from '../cache/graph.ts';
import { declareInputs } from '../mesh/inputs.ts';
import { generationKey } from '../mesh/objects/in-force.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { Generations } from './generations.ts';
import { ProgressOfObjects } from './progress.ts';

const OBJECT = 'Kubernetes/shop/reviews';
const KEY = generationKey('VirtualService', OBJECT);

function lab() {
  const inputs = declareInputs(new Graph());
  const clock = new FakeClock();
  const writes: Write[] = [];
  const isInForce = (): boolean => true;
  const generations = new Generations({
    inputs,
    progress: new ProgressOfObjects({ inputs, clock, isInForce }),
    write: (write) => void writes.push(write),
    isInForce,
    canaries: true,
    isLibrary: () => false,
    clock,
    signal: new AbortController().signal,
  });
  const last = (input: unknown) => writes.findLast((write) => write.input === input && write.key === KEY)?.value;
  return {
    generations,
    change: (metadata: object | undefined) =>
      generations.changed('VirtualService', OBJECT, metadata && objectWith(metadata)),
    former: () => last(inputs.formerGenerations) as { objects: readonly KubernetesObject[] } | undefined,
    rejected: () => last(inputs.rejectedGenerations),
  };
}

function objectWith(metadata: object): KubernetesObject {
  const apiVersion = 'networking.istio.io/v1';
  return { apiVersion, kind: 'VirtualService', metadata: { name: 'reviews', namespace: 'shop', ...metadata } };
}

test.each([
  ['with a uid', { uid: 'u', generation: 3 }],
  ['without uid and generation', {}],
])('nothing remains of a deleted object %s', (_, metadata) => {
  const { change, former } = lab();
  const { uid } = metadata as { readonly uid?: string };
  for (const generation of [1, 2]) change({ uid, generation });
  change(metadata);
  expect(former()?.objects.map((each) => each.metadata.generation)).toEqual([2, 1]);
  change(undefined);
  expect(former()).toBeUndefined();
});

test('what other replicas reject of objects that are not here is not remembered for ever', () => {
  const { generations, change, rejected } = lab();
  const said = { uid: 'u', generations: [{ generation: 1, proxies: 1, rejections: [] }] };
  generations.rejectedElsewhere(KEY, said);
  for (let i = 0; i < 5_000; i++) generations.rejectedElsewhere(`${KEY}${i}`, said);
  change({ uid: 'u', generation: 1 });
  expect(rejected()).toBeUndefined();
  generations.rejectedElsewhere(KEY, said);
  expect(rejected()).toMatchObject({ uid: 'u', generations: [{ generation: 1 }] });
});

test('after the cluster was restored from a backup, a generation may be another one than before', () => {
  const { generations, change, former, rejected } = lab();
  for (const generation of [5, 6]) change({ uid: 'u', generation });
  generations.rejectedElsewhere(KEY, { uid: 'u', generations: [{ generation: 6, proxies: 1, rejections: [] }] });
  expect(rejected()).toBeDefined();
  change({ uid: 'u', generation: 5 });
  expect([former(), rejected()]).toEqual([undefined, undefined]);
  change({ uid: 'u', generation: 6 });
  expect(former()?.objects.map((each) => each.metadata.generation)).toEqual([5]);
  expect(rejected()).toBeUndefined();
});
