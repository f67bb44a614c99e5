import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { definitions } from './gen/schemas.gen.ts';
import { kinds } from './kinds.ts';
import type { SchemaNode } from './schema-node.ts';
import { createValidator } from './validate.ts';
import { ruleHolds } from './validate-rules.ts';
import { runs } from '../testing/runs.ts';

const validate = createValidator();

function virtualService(spec: unknown, more: object = {}): unknown {
  return { apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', metadata: { name: 'a' }, spec, ...more };
}

function fieldsOf(object: unknown): readonly string[] {
  return validate(object).map(({ field }) => field);
}

describe('a finding', () => {
  test('names the field and says what is wanted', () => {
    expect(
      validate(virtualService({ http: [{ route: [{ weight: '1' }], timeout: 5, retries: { attempts: -1 } }] })),
    ).toEqual([
      { field: 'spec.http[0].route[0].destination', message: 'is missing', severity: 'error' },
      { field: 'spec.http[0].route[0].weight', message: 'must be a whole number', severity: 'error' },
      { field: 'spec.http[0].timeout', message: 'must be a string; put it in quotes', severity: 'error' },
      { field: 'spec.http[0].retries.attempts', message: 'must be at least 0', severity: 'error' },
    ]);
  });

  test('tells which fields cannot be combined', () => {
    expect(validate(virtualService({ http: [{ match: [{ uri: { exact: 'a', regex: 'b' } }] }] }))).toEqual([
      {
        field: 'spec.http[0].match[0].uri',
        message: 'at most one of exact, prefix and regex may be set',
        severity: 'error',
      },
    ]);
  });

  test('puts a key that is not a plain name in brackets', () => {
    expect(fieldsOf(virtualService({ http: [{ match: [{ headers: { 'a.b/c~d': 1, '0': 1 } }] }] }))).toEqual([
      'spec.http[0].match[0].headers.0',
      'spec.http[0].match[0].headers[a.b/c~d]',
    ]);
  });
});

describe('an unknown field', () => {
  test('is a warning that names the field that was probably meant', () => {
    expect(validate(virtualService({ http: [{ time_out: '1s', mirorr: {}, whatever: 1 }] }))).toEqual([
      {
        field: 'spec.http[0].time_out',
        message: 'unknown field; it has no effect. Did you mean timeout?',
        severity: 'warning',
      },
      {
        field: 'spec.http[0].mirorr',
        message: 'unknown field; it has no effect. Did you mean mirror?',
        severity: 'warning',
      },
      { field: 'spec.http[0].whatever', message: 'unknown field; it has no effect', severity: 'warning' },
    ]);
  });

  test('is found at the top of the object too', () => {
    expect(validate(virtualService({}, { sepc: {} }))).toEqual([
      { field: 'sepc', message: 'unknown field; it has no effect. Did you mean spec?', severity: 'warning' },
    ]);
  });

  test('is not looked for in status, which users do not write', () => {
    expect(validate(virtualService({}, { status: { conditions: 1, other: 2 } }))).toEqual([]);
  });
});

describe('metadata', () => {
  test.each([
    [undefined, 'metadata', 'is missing; give the object a name'],
    ['a', 'metadata', 'is missing; give the object a name'],
    [{}, 'metadata.name', 'is missing'],
    [{ name: 1 }, 'metadata.name', 'must be a string; put it in quotes'],
    [{ name: 'Upper' }, 'metadata.name', /^"Upper" is not a valid name for a VirtualService; use lower-case/],
    [{ name: 'a..b' }, 'metadata.name', /is not a valid name/],
    [{ name: 'a'.repeat(254) }, 'metadata.name', /^"a{100}\.\.\." is not a valid name/],
    [{ name: 'a', namespace: 'a.b' }, 'metadata.namespace', '"a.b" is not a valid name for a namespace'],
    [{ name: 'a', namespace: 'a'.repeat(64) }, 'metadata.namespace', /is not a valid name for a namespace/],
    [{ name: 'a', labels: [] }, 'metadata.labels', 'must be a map of strings'],
    [{ name: 'a', labels: { 'a/b/c': 'd' } }, 'metadata.labels[a/b/c]', /^"b\/c" is not a valid name for labels/],
    [{ name: 'a', labels: { a: 'b c' } }, 'metadata.labels.a', /^"b c" is not a valid label value/],
    [{ name: 'a', labels: { a: 1 } }, 'metadata.labels.a', 'must be a string; put it in quotes'],
    [{ name: 'a', annotations: { '*/b': '' } }, 'metadata.annotations[*/b]', /before the slash is not a DNS name/],
    [{ name: 'a', creationTimestamp: '2026' }, 'metadata.creationTimestamp', /^must look like/],
    [{ name: 'a', namespace: 1 }, 'metadata.namespace', 'must be a string; put it in quotes'],
  ])('%j is refused', (metadata, field, message) => {
    expect(validate(virtualService({}, { metadata }))).toEqual([
      { field, message: expect.stringMatching(message) as string, severity: 'error' },
    ]);
  });

  test('may have annotations with any text', () => {
    expect(fieldsOf(virtualService({}, { metadata: { name: 'a', annotations: { 'a.b/c': 'any: text' } } }))).toEqual(
      [],
    );
  });
});

describe('a core kind', () => {
  test.each([
    [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a.b' }, spec: {} }, ['metadata.name']],
    [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' } }, ['spec']],
    [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec: [] }, ['spec']],
    [{ apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a' }, subsets: {} }, ['subsets']],
    [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: 'x' }, ['data']],
    [
      { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { name: 'a' }, endpoints: {} },
      ['addressType', 'endpoints'],
    ],
    [
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'a' },
        addressType: 'IPv4',
        ports: null,
      },
      [],
    ],
    [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec: { ports: [{ port: 80 }], more: 1 } }, []],
    [
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec: { type: 'X', ports: [{ port: 0 }, {}] } },
      ['spec.type', 'spec.ports[0].port', 'spec.ports[1].port'],
    ],
  ])('is checked where it is read: %j', (object, fields) => {
    expect(fieldsOf(object)).toEqual(fields);
  });
});

test('anything but an object of ours is refused or left alone', () => {
  for (const value of [null, undefined, 1, 'a', [], true]) expect(fieldsOf(value)).toEqual(['']);
  expect(fieldsOf({})).toEqual(['apiVersion']);
  expect(fieldsOf({ apiVersion: 'v1' })).toEqual(['kind']);
  expect(fieldsOf({ apiVersion: 1, kind: 'Service' })).toEqual(['apiVersion']);
  expect(fieldsOf({ apiVersion: 'apps/v1', kind: 'Deployment' })).toEqual([]);
});

describe('hostile input', () => {
  test('nested a hundred thousand levels deep is looked at no deeper than the schema', () => {
    const deep = JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`) as unknown;
    let deeper: unknown = deep;
    for (let level = 0; level < 100_000; level++) deeper = { http: deeper };
    expect(fieldsOf(virtualService(deeper))).toEqual(['spec.http']);
    expect(fieldsOf(virtualService({ http: [{ timeout: deeper, match: [{ headers: { a: deeper } }] }] }))).toEqual([
      'spec.http[0].timeout',
      'spec.http[0].match[0].headers.a.http',
    ]);
    expect(fieldsOf(deeper)).toEqual(['apiVersion']);
  });

  test('with members of the prototype is read like any other', () => {
    const spec = JSON.parse(
      '{"__proto__":{"http":1},"constructor":1,"http":[{"match":[{"headers":{"__proto__":{"exact":1},"constructor":{"exact":"a"}}}]}]}',
    ) as unknown;
    expect(fieldsOf(virtualService(spec))).toEqual([
      'spec.http[0].match[0].headers.__proto__.exact',
      'spec.__proto__',
      'spec.constructor',
    ]);
  });

  test('with half a million faults has one finding, with many faults the first hundred', () => {
    expect(fieldsOf(virtualService({ hosts: Array.from({ length: 500_000 }, () => 0) }))).toEqual(['spec.hosts[0]']);
    expect(validate(virtualService({ hosts: Array.from({ length: 1000 }, () => 0) }))).toHaveLength(100);
    const unknown = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x${index}`, index]));
    expect(validate(virtualService(unknown))).toHaveLength(100);
  });

  test('with a megabyte of text is as quick as any', () => {
    const long = 'a'.repeat(1 << 20);
    const rule = (spec: unknown, kind: string) => ({
      apiVersion: 'networking.istio.io/v1',
      kind,
      metadata: { name: long, namespace: long },
      spec,
    });
    const text = { timeout: long, [long]: long, directResponse: { status: 200, body: { bytes: long } } };
    expect(
      fieldsOf(rule({ hosts: [long], http: [text, { timeout: '1'.repeat(1 << 20) }] }, 'VirtualService')),
    ).toHaveLength(5);
    expect(fieldsOf(rule({ address: `unix://${long}`, ports: { [`${long}-`]: 1 } }, 'WorkloadEntry'))).toHaveLength(5);
    expect(fieldsOf(rule({ hosts: [long], addresses: [`${long}/`], resolution: 'DNS' }, 'ServiceEntry'))).toHaveLength(
      4,
    );
    expect(fieldsOf({ apiVersion: long, kind: long, metadata: long })).toEqual([]);
  });

  test('with half a surrogate pair is left to those who read the text', () => {
    expect(
      validate(virtualService({ hosts: ['a\ud800'], http: [{ match: [{ headers: { '\udc00': {} } }] }] })),
    ).toEqual([]);
  });

  test('never throws, whatever JSON it is', () => {
    const spec = fc.oneof(
      fc.jsonValue({ maxDepth: 6 }),
      ...kinds.filter(({ custom }) => custom).map(({ kind }) => mixed(`${kind}Spec`)),
    );
    const object = fc.record(
      {
        apiVersion: fc.oneof(fc.constantFrom('v1', 'networking.istio.io/v1', 'discovery.k8s.io/v1'), fc.jsonValue()),
        kind: fc.oneof(fc.constantFrom(...kinds.map(({ kind }) => kind)), fc.jsonValue()),
        metadata: fc.oneof(fc.record({ name: fc.jsonValue(), namespace: fc.jsonValue() }), fc.jsonValue()),
        spec,
        status: fc.jsonValue(),
      },
      { requiredKeys: ['apiVersion', 'kind'] },
    );
    fc.assert(
      fc.property(fc.oneof(object, fc.jsonValue()), (value) => {
        for (const { field, message } of validate(value)) expect(field.length + message.length).toBeGreaterThan(0);
      }),
      { numRuns: runs(2000) },
    );
  });

  test('of each kind never throws, near to what is right as it may be', () => {
    for (const { kind, custom } of kinds) {
      if (!custom) continue;
      const object = fc.record({
        apiVersion: fc.constant('networking.istio.io/v1'),
        kind: fc.constant(kind),
        metadata: fc.constant({ name: 'a' }),
        spec: mixed(`${kind}Spec`),
      });
      fc.assert(
        fc.property(object, (value) => void validate(value)),
        { numRuns: runs(200) },
      );
    }
  });
});

describe('a rule of the schemas', () => {
  const rules = new Set(Object.values(definitions).flatMap(rulesOf));

  test('exists', () => {
    expect(rules.size).toBeGreaterThan(10);
  });

  test.each([...rules])('has an equivalent that takes any value: %s', (rule) => {
    fc.assert(fc.property(fc.jsonValue(), (value) => typeof ruleHolds(rule, value) === 'boolean'));
  });

  test('without an equivalent is a bug', () => {
    expect(() => ruleHolds('self == 1', 1)).toThrow('no equivalent of the rule self == 1');
  });
});

function rulesOf(schema: SchemaNode): readonly string[] {
  const parts = [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties];
  return [
    ...(schema['x-kubernetes-validations'] ?? []).map(({ rule }) => rule),
    ...parts.flatMap((part) => (part === undefined ? [] : rulesOf(part))),
  ];
}

/** Values of the shape that a definition has, with any JSON here and there. */
function mixed(name: string): fc.Arbitrary<unknown> {
  const build = (schema: SchemaNode): fc.Arbitrary<unknown> => {
    const { $ref, properties, items, additionalProperties, type, enum: names } = schema;
    if ($ref !== undefined) return mixed($ref.slice('#/definitions/'.length));
    const right = (): fc.Arbitrary<unknown> => {
      if (names !== undefined) return fc.constantFrom(...names);
      if (items !== undefined) return fc.array(build(items), { maxLength: 2 });
      if (additionalProperties !== undefined)
        return fc.dictionary(fc.string(), build(additionalProperties), { maxKeys: 2 });
      if (properties !== undefined)
        return fc.record(Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, build(value)])), {
          requiredKeys: schema.required ? [...schema.required] : [],
        });
      if (type === 'string') return fc.oneof(fc.string(), fc.constantFrom('1s', '0s', '*', 'unix://', 'a'));
      return type === 'boolean' ? fc.boolean() : fc.oneof(fc.integer(), fc.double());
    };
    return fc.oneof({ weight: 20, arbitrary: right() }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) });
  };
  return build(definitions[name]!);
}
