import { describe, expect, test } from 'vitest';
import { checked, deployment, destinationRule, places, pod, service, sidecar } from './checked.ts';

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

describe('what depends on the workload', () => {
  const orders = service('shop/orders', '{selector: {app: orders}, ports: [{name: http, port: 8080}]}');
  const rule = destinationRule('shop/d', '{host: orders, trafficPolicy: {tls: {mode: MUTUAL, credentialName: none}}}');
  const missing = ['error DestinationRule/shop/d spec.trafficPolicy.tls.credentialName'];
  const tls = sidecar(
    'shop/s',
    '{workloadSelector: {labels: {app: orders}}, ingress: [{port: {number: 8080, name: https, protocol: HTTPS}, defaultEndpoint: "127.0.0.1:1", tls: {mode: SIMPLE, serverCertificate: /a, privateKey: /b}}]}',
  );

  test('is told for Pods, and for what makes Pods', () => {
    for (const workload of [pod('shop/c', '{app: client}'), deployment('shop/c', '{app: client}')])
      expect(places([orders, workload, rule], { complete: true })).toEqual(missing);
    expect(places([orders, deployment('shop/o', '{app: orders}'), tls])).toEqual([
      'warning Sidecar/shop/s spec.ingress[0].tls',
    ]);
  });

  test('is not told without workloads', () => {
    expect(places([orders, rule], { complete: true })).toEqual([]);
    expect(places([orders, tls])).toEqual([]);
  });
});
