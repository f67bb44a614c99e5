import { expect, test } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import type { SourceKindName } from '../api/kinds.ts';
import { sidecarsOf } from './sidecars.ts';

const object = (kind: string, name: string, labels: Record<string, string>, spec: object = {}): KubernetesObject =>
  ({ apiVersion: 'v1', kind, metadata: { name, namespace: 'shop', labels }, spec }) as KubernetesObject;
const pods = (count: number, label: (i: number) => Record<string, string>) =>
  Array.from({ length: count }, (_, i) => object('Pod', `p${i}`, label(i)));
const count = (objects: Partial<Record<SourceKindName, readonly KubernetesObject[]>>): number =>
  sidecarsOf({ objects: new Map(Object.entries(objects) as [SourceKindName, readonly KubernetesObject[]][]) }, 'c')
    .length;

test('Pods that differ only in what no selector names have one class', () => {
  expect(count({ Pod: pods(3, (i) => ({ app: 'a', 'pod-template-hash': `${i}` })) })).toBe(1);
  expect(count({ Pod: pods(3, (i) => ({ app: `a${i}` })) })).toBe(3);
});

test('there are at most fifty classes, fewer for many services, and always one', () => {
  const Pod = pods(200, (i) => ({ app: `a${i}` }));
  const services = (n: number) => pods(n, () => ({}));
  expect(count({ Pod })).toBe(50);
  expect(count({ Pod, Service: services(2_000) })).toBe(10);
  expect(count({ Pod, Service: services(10_000), ServiceEntry: services(50_000) })).toBe(1);
});

test('routers, Pods on the network of their node, and what injection leaves out have no sidecar', () => {
  const one = (labels: Record<string, string>, spec = {}) => [object('Pod', 'p', labels, spec)];
  const gateway = object('Gateway', 'g', {}, { selector: { gw: 'x' } });
  expect(count({ Pod: one({ gw: 'x', app: 'y' }), Gateway: [gateway] })).toBe(0);
  expect(count({ Pod: one({ app: 'y' }), Gateway: [gateway] })).toBe(1);
  expect(count({ Pod: one({ app: 'y' }, { hostNetwork: true }) })).toBe(0);
  expect(count({ Pod: one({ 'sidecar.istio.io/inject': 'false' }) })).toBe(0);
  const Namespace = [object('Namespace', 'shop', { 'istio-injection': 'disabled' })];
  expect(count({ Pod: one({ app: 'y' }), Namespace })).toBe(0);
});
