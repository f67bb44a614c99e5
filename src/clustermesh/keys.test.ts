import { expect, test } from 'vitest';
import {
  canaryKey,
  canaryPrefix,
  clusterConfigKey,
  HEARTBEAT,
  kindOfCanary,
  prefixOf,
  type StoredKind,
  storedKinds,
  type Tree,
} from './keys.ts';

test.each<[StoredKind, Tree, string, string]>([
  ['services', 'state', 'cilium/state/services/v1/east/', 'cilium/synced/east/cilium/state/services/v1'],
  ['services', 'cache', 'cilium/cache/services/v1/east/', 'cilium/synced/east/cilium/cache/services/v1'],
  [
    'endpointslices',
    'state',
    'cilium/state/endpointslices/v1/east/',
    'cilium/synced/east/cilium/state/endpointslices/v1',
  ],
  ['nodes', 'state', 'cilium/state/nodes/v1/east/', 'cilium/synced/east/cilium/state/nodes/v1'],
  ['identities', 'state', 'cilium/state/identities/v1/id/', 'cilium/synced/east/cilium/state/identities/v1'],
  ['identities', 'cache', 'cilium/cache/identities/v1/east/id/', 'cilium/synced/east/cilium/cache/identities/v1'],
  ['ip', 'state', 'cilium/state/ip/v1/default/', 'cilium/synced/east/cilium/state/ip/v1'],
  ['ip', 'cache', 'cilium/cache/ip/v1/east/', 'cilium/synced/east/cilium/cache/ip/v1'],
])('%s in %s: prefix and canary', (kind, tree, prefix, canary) => {
  expect(prefixOf(kind, tree, 'east')).toBe(prefix);
  expect(canaryKey(kind, tree, 'east')).toBe(canary);
  expect(kindOfCanary(canary, tree, 'east')).toBe(kind);
  expect(kindOfCanary(canary, tree === 'state' ? 'cache' : 'state', 'east')).toBeUndefined();
  expect(kindOfCanary(canary, tree, 'west')).toBeUndefined();
});

// A reader may read only these ranges: one character less is refused.
test('what is read is within what Cilium lets remote clusters read', () => {
  const granted = ['cilium/.heartbeat', 'cilium/state/', 'cilium/cluster-config/east', 'cilium/synced/east/'];
  const read = [
    HEARTBEAT,
    clusterConfigKey('east'),
    canaryPrefix('east'),
    ...storedKinds.map((kind) => prefixOf(kind, 'state', 'east')),
  ];
  expect(read.filter((range) => !granted.some((prefix) => range.startsWith(prefix)))).toEqual([]);
});

test('a canary of a kind that is not known is nobody’s', () => {
  expect(kindOfCanary('cilium/synced/east/cilium/state/widgets/v1', 'state', 'east')).toBeUndefined();
});
