import { expect, test } from 'vitest';
import { createProtos, typeUrl } from '../envoy/encode/proto.ts';
import { types } from '../envoy/encode/proto-types.ts';
import { leaf, node, resource } from '../envoy/encode/resource.ts';
import { jsonOf } from './snapshot.ts';
import { resourceJson } from './resource-json.ts';

const protos = createProtos();

const host = (i: number) => ({
  name: `host ${i}`,
  domains: [`${i}.example.com`, 'x'.repeat(1_000)],
  routes: [{ match: { prefix: '/' }, route: { cluster: `outbound|${i}` } }],
});
const header = (i: number) => ({ header: { key: `k${i}`, value: 'v'.repeat(500) } });

test.each([
  ['is small', 1, 0],
  ['has many virtual hosts', 300, 0],
  ['has several long lists', 100, 200],
])('a table that %s is printed like any message, in pieces of bounded size', (_, hosts, headers) => {
  const rest = { name: '80', validateClusters: { value: false }, maxDirectResponseBodySizeBytes: { value: 7 } };
  const bytes = [
    protos.encode(types.route, { virtualHosts: Array.from({ length: hosts }, (__, i) => host(i)) }),
    protos.encode(types.route, { ...rest, requestHeadersToAdd: Array.from({ length: headers }, (__, i) => header(i)) }),
    protos.encode(types.route, { virtualHosts: [host(-1)] }),
  ];
  const table = resource(typeUrl(types.route), '80', node(bytes.map((each) => leaf(each, []))));
  const pieces = [...resourceJson(protos, table)];
  expect(JSON.parse(pieces.join(''))).toEqual(jsonOf(protos, table));
  if (headers === 0) for (const piece of pieces) expect(piece.length).toBeLessThan(40_000);
});
