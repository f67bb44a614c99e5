import { describe, expect, test } from 'vitest';
import { checked, places, pod, sidecar } from './checked.ts';

describe('Sidecars for the same workloads', () => {
  const of = (name: string, selector: string) =>
    sidecar(name, `{${selector === '' ? '' : `workloadSelector: {labels: ${selector}}, `}egress: [{hosts: ["./*"]}]}`);

  test('without a selector, or where one selects all that another one does, are a conflict', () => {
    const conflict = ['error Sidecar/shop/b spec'];
    expect(places([of('shop/a', ''), of('shop/b', '')])).toEqual(conflict);
    expect(checked([of('shop/a', '{app: x}'), of('shop/b', '{app: x}')])).toEqual([
      `${conflict[0]}: Of the Sidecars for these workloads, Sidecar "a" (its name comes first, and their ages are equal or not known) is used; remove one of them, or select other workloads.`,
    ]);
    expect(places([of('shop/a', '{app: x}'), of('shop/b', '{app: x, tier: z}')])).toEqual(conflict);
  });

  test('of which one is not used for a workload are told', () => {
    const workload = pod('shop/p', '{app: x, tier: z}');
    const two = [of('shop/a', '{app: x}'), of('shop/b', '{tier: z}')];
    expect(checked([workload, ...two])).toEqual([
      'warning Sidecar/shop/b spec.workloadSelector: is not used for workload p: Sidecar/shop/a (its name comes first, and their ages are equal or not known) selects it, too, and a workload has one Sidecar. Merge the two, or select other workloads.',
    ]);
    expect(places([pod('shop/p', '{app: x}'), pod('shop/q', '{tier: z}'), ...two])).toEqual([]);
    expect(places(two)).toEqual([]);
  });

  test('of other namespaces, with other values, or beside one without a selector, are in order', () => {
    expect(places([of('shop/a', '{app: x}'), of('zoo/b', '{app: x}')])).toEqual([]);
    expect(places([of('shop/a', '{app: x}'), of('shop/b', '{app: w}')])).toEqual([]);
    expect(places([of('shop/a', ''), of('shop/b', '{app: w}')])).toEqual([]);
    // The wider one is younger, and is used for the rest.
    expect(places([of('shop/a', '{app: x, tier: z}'), of('shop/b', '{app: x}')])).toEqual([]);
  });
});
