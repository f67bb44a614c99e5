import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { MeshLab, objectOf, proxy } from '../../../test/harness/lab.ts';

const proxyConfig = (path: string, spec: object, creationTimestamp = '2026-01-01T00:00:00Z'): KubernetesObject => ({
  ...objectOf('ProxyConfig', path, { spec }, { creationTimestamp }),
  apiVersion: 'networking.istio.io/v1beta1',
});
const selecting = (app: string) => ({ selector: { matchLabels: { app } } });

const threads = (lab: MeshLab, namespace: string, labels: Record<string, string> = {}) => {
  const { mesh, namespace: own, workload, shadowed } = lab.mesh.proxyConfigsOf({ namespace, labels });
  return [mesh?.concurrency, own?.concurrency, workload?.concurrency, shadowed.map(({ name }) => name)];
};

test('those of the mesh, of a namespace and of a Pod are found, the oldest of each', () => {
  const lab = new MeshLab([
    proxyConfig('istio-system/mesh', { concurrency: 1 }),
    proxyConfig('istio-system/selects', { concurrency: 9, ...selecting('cart') }),
    proxyConfig('shop/younger', { concurrency: 3 }, '2026-02-01T00:00:00Z'),
    proxyConfig('shop/older', { concurrency: 2 }),
    proxyConfig('shop/cart', { concurrency: 4, ...selecting('cart') }),
    proxyConfig('shop/v1', { concurrency: 5, selector: { matchLabels: { version: 'v1' } } }, '2026-02-01T00:00:00Z'),
  ]);
  expect(threads(lab, 'shop')).toEqual([1, 2, undefined, []]);
  expect(threads(lab, 'shop', { app: 'cart', version: 'v1' })).toEqual([1, 2, 4, ['v1']]);
  expect(threads(lab, 'far', { app: 'cart' })).toEqual([1, undefined, undefined, []]);
  expect(threads(lab, 'istio-system', { app: 'cart' })).toEqual([1, undefined, 9, []]);
  const problems = [...lab.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems).toMatchObject([{ object: { name: 'younger' }, field: 'spec', reason: 'Conflicted' }]);
});

test('one that is not valid leaves the Pods to the others, and changes nothing that proxies get', () => {
  const lab = new MeshLab([proxyConfig('shop/a', { concurrency: 2 })], [proxy('a.shop')]);
  lab.apply([
    proxyConfig('shop/a', { concurrency: -2 }),
    proxyConfig('shop/b', { concurrency: 3 }, '2026-02-01T00:00:00Z'),
  ]);
  expect(threads(lab, 'shop')).toEqual([undefined, 3, undefined, []]);
  expect(lab.changed).toEqual([]);
});
