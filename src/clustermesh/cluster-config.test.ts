import { expect, test } from 'vitest';
import { type ClusterConfig, decodeClusterConfig, encodeClusterConfig, limitProblem } from './cluster-config.ts';

const decode = (value: unknown): unknown => decodeClusterConfig(Buffer.from(JSON.stringify(value)));

const nothing: ClusterConfig = {
  id: 0,
  syncedCanaries: false,
  cached: false,
  limit: 255,
  serviceExports: undefined,
  exports: { services: true, endpointSlices: false },
};

test.each<[string, object, Partial<ClusterConfig>]>([
  ['nothing', {}, {}],
  ['null', { id: null, capabilities: null }, {}],
  [
    'what Cilium writes',
    { id: 3, capabilities: { syncedCanaries: true, maxConnectedClusters: 255, serviceExportsEnabled: false } },
    { id: 3, syncedCanaries: true, serviceExports: false },
  ],
  [
    'a KVStoreMesh in a large mesh',
    { id: 300, capabilities: { syncedCanaries: true, cached: true, maxConnectedClusters: 511 } },
    { id: 300, syncedCanaries: true, cached: true, limit: 511 },
  ],
  [
    'both kinds',
    { id: 3, capabilities: { endpointSlicesExportMode: 'services-and-endpointslices' } },
    { id: 3, exports: { services: true, endpointSlices: true } },
  ],
  [
    'slices only',
    { id: 3, capabilities: { endpointSlicesExportMode: 'endpointslices-only', serviceExportsEnabled: true } },
    { id: 3, exports: { services: false, endpointSlices: true }, serviceExports: true },
  ],
  ['what is new', { id: 3, new: 1, capabilities: { newer: [] } }, { id: 3 }],
])('says %s', (_, written, config) => {
  expect(decode(written)).toEqual({ value: { ...nothing, ...config } });
});

test.each<[unknown, string]>([
  [[], 'is not an object'],
  [{ id: '3' }, 'id is not a whole number from 0 to 4294967295'],
  [{ id: -1 }, 'id is not a whole number from 0 to 4294967295'],
  [{ id: 1.5 }, 'id is not a whole number from 0 to 4294967295'],
  [{ id: 3, capabilities: 'all' }, 'capabilities is not an object'],
  [{ id: 3, capabilities: { cached: 1 } }, 'capabilities.cached must be true or false'],
  [
    { id: 3, capabilities: { maxConnectedClusters: 256 } },
    'capabilities.maxConnectedClusters 256 is neither 255 nor 511',
  ],
  [
    { id: 3, capabilities: { endpointSlicesExportMode: 'later' } },
    'capabilities.endpointSlicesExportMode "later" is not supported; upgrade Fairlead',
  ],
  [
    { id: 3, capabilities: { endpointSlicesExportMode: 'constructor' } },
    'capabilities.endpointSlicesExportMode "constructor" is not supported; upgrade Fairlead',
  ],
])('%j is refused', (written, wrong) => {
  expect(decode(written)).toEqual({ wrong });
});

test('text that is not JSON is refused without being quoted', () => {
  expect(decodeClusterConfig(Buffer.from('{"id": secret'))).toEqual({ wrong: 'is not valid JSON' });
});

test('only a large mesh insists on its limit', () => {
  const small = { name: 'home', id: 1, limit: 255 } as const;
  const large = { name: 'home', id: 1, limit: 511 } as const;
  expect(limitProblem({ ...nothing, limit: 511 }, small)).toBeUndefined();
  expect(limitProblem({ ...nothing, limit: 511 }, large)).toBeUndefined();
  expect(limitProblem({ ...nothing, limit: 255 }, large)).toContain('maxConnectedClusters is 255 there and 511 here');
});

test('what we write is what a reader needs', () => {
  const written = encodeClusterConfig({ name: 'home', id: 7, limit: 511 });
  expect(written).toBe(
    '{"id":7,"capabilities":{"syncedCanaries":true,"maxConnectedClusters":511,"endpointSlicesExportMode":"services-and-endpointslices"}}',
  );
  expect(decodeClusterConfig(Buffer.from(written))).toEqual({
    value: { ...nothing, id: 7, syncedCanaries: true, limit: 511, exports: { services: true, endpointSlices: true } },
  });
});
