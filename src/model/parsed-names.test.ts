import { expect, test } from 'vitest';
import { MESH, parentKey, parseParentKey } from './route-binding.ts';
import { outboundCluster, parseOutboundCluster } from './service.ts';
import { nameOfKey, parentNamed } from './virtual-service.ts';

test('the parts of a cluster name are those that it was made of', () => {
  const host = 'reviews.shop.svc.cluster.local';
  expect(parseOutboundCluster(outboundCluster(80, 'v1', host))).toEqual({ port: '80', subset: 'v1', host });
  expect(parseOutboundCluster(outboundCluster(0, '', host))).toEqual({ port: '0', subset: '', host });
});

test('the key of a parent has all of the parent', () => {
  for (const parent of [MESH, parentNamed('shop/public')]) expect(parseParentKey(parentKey(parent))).toEqual(parent);
  expect(['mesh', 'shop/public'].map((gateway) => nameOfKey(parentKey(parentNamed(gateway))))).toEqual([
    'mesh',
    'shop/public',
  ]);
});
