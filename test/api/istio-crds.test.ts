import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { added, fieldsOfCrds } from '../../tools/api/crd-fields.ts';
import { pathOf } from '../peers/peer.ts';
import { withPeers } from '../peers/with-peers.ts';

const CRDS = join(import.meta.dirname, '../../crds');

/** Kinds of Istio that have no CRD here. */
const othersKinds = ['EnvoyFilter', 'Telemetry', 'TrafficExtension', 'WasmPlugin', 'WorkloadGroup'];

/** Kinds that Istio does not have. */
const ownKinds = ['GenerationInForce', 'ReplicaReport'];

type Fields = ReturnType<typeof fieldsOfCrds>;

withPeers(['istio-crds'], 'what users may write is what the pinned istio.io/api lets them write', () => {
  let istio: Fields;
  let ours: Fields;
  beforeAll(() => {
    istio = fieldsOfCrds(readFileSync(pathOf('istio-crds'), 'utf8'));
    const files = readdirSync(CRDS).map((file) => readFileSync(join(CRDS, file), 'utf8'));
    ours = new Map(files.flatMap((file) => [...fieldsOfCrds(file)]));
  });

  // What fails here: add it to tools/api/schemas, and serve it or name it in `unsupported-fields.ts`.
  test('all of it', () => {
    expect(added(ours, istio)).toEqual(othersKinds);
  });

  test('and nothing else', () => {
    expect(added(istio, ours)).toEqual(ownKinds);
  });
});

const gateway = (...members: readonly string[]): string => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gateways.example}
spec:
  names: {kind: Gateway}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {properties: {spec: {type: object, properties: {${members.join(', ')}}}}}}
`;

test('a newer release is compared by fields, their types, and values of enums', () => {
  const before = fieldsOfCrds(gateway('a: {type: string}', 'mode: {type: string, enum: [X]}'));
  const after = fieldsOfCrds(
    [
      gateway(
        'a: {type: integer}',
        'mode: {type: string, enum: [X, Y]}',
        'list: {type: array, items: {type: object, properties: {b: {type: string}}}}',
        'map: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}}',
      ),
      gateway().replace('Gateway', 'Other'),
    ].join('---'),
  );
  expect(added(before, after)).toEqual([
    'Gateway spec.a: integer',
    'Gateway spec.list: array',
    'Gateway spec.list[].b: string',
    'Gateway spec.list[]: object',
    'Gateway spec.map: object',
    'Gateway spec.map{}: integer or string',
    'Gateway spec.mode=Y',
    'Other',
  ]);
  expect(added(after, before)).toEqual(['Gateway spec.a: string']);
});
