import { expect, test } from 'vitest';
import { meshDefinitions as definitions } from '../api/gen/mesh-config.gen.ts';
import type { SchemaNode } from '../api/schema-node.ts';
import { findUnsupported, unsupportedFields } from './unsupported-fields.ts';

const object = { source: 'test', group: 'networking.istio.io', kind: 'DestinationRule', namespace: 'shop', name: 'd' };

test('only what is set is reported, with the path of each place', () => {
  const spec = {
    subsets: [
      { trafficPolicy: { outlierDetection: { consecutiveErrors: 0 } } },
      { trafficPolicy: { outlierDetection: { consecutiveErrors: 5 } } },
      { trafficPolicy: { portLevelSettings: [{ outlierDetection: { consecutiveErrors: 5 } }] } },
    ],
  };
  expect(findUnsupported(object, spec).map((problem) => problem.field)).toEqual([
    'spec.subsets[1].trafficPolicy.outlierDetection.consecutiveErrors',
    'spec.subsets[2].trafficPolicy.portLevelSettings[0].outlierDetection.consecutiveErrors',
  ]);
});

test('fields of other kinds are not looked for', () => {
  expect(
    findUnsupported({ ...object, kind: 'Sidecar' }, { trafficPolicy: { outlierDetection: { consecutiveErrors: 5 } } }),
  ).toEqual([]);
});

test.each([[undefined], [null], ['x'], [[]], [{ trafficPolicy: 'x' }], [{ subsets: {} }]])('%j has none', (spec) => {
  expect(findUnsupported(object, spec)).toEqual([]);
});

test.each(unsupportedFields.map(({ kind, field }) => [kind, field] as const))('%s has the field %s', (kind, field) => {
  let node: SchemaNode | undefined = definitions[`${kind}Spec`] ?? definitions[kind];
  for (const step of field.split('.').slice(1)) {
    const name = step.replace(/\[\]|\{\}/, '');
    node = membersOf(node)[name];
    if (step !== name) node = step.endsWith('[]') ? node?.items : node?.additionalProperties;
  }
  expect(node).toBeDefined();
});

function membersOf(node: SchemaNode | undefined): Readonly<Record<string, SchemaNode>> {
  const referred = node?.$ref === undefined ? undefined : definitions[node.$ref.slice('#/definitions/'.length)];
  return { ...node?.properties, ...referred?.properties };
}
