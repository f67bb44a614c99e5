import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { definitions } from '../../src/api/gen/schemas.gen.ts';
import { createValidator } from '../../src/api/validate.ts';
import { readCorpus } from './corpus.ts';

const corpus = readCorpus();
const validate = createValidator();

describe('the offline validator', () => {
  test.each(corpus.filter(({ fields }) => fields.length === 0))('accepts $name', ({ object }) => {
    expect(validate(object)).toEqual([]);
  });

  test.each(corpus.filter(({ fields }) => fields.length > 0))('refuses $name at $fields.0', ({ object, fields }) => {
    expect(validate(object)).toEqual(
      fields.map((field) => ({ field, message: expect.any(String) as string, severity: 'error' })),
    );
  });
});

test('valid objects of the corpus use every field of the schemas', () => {
  const used = new Set<string>();
  const visit = (value: unknown, name: string) => {
    for (const part of Array.isArray(value) ? value : [value])
      for (const [field, schema] of Object.entries(definitions[name]?.properties ?? {})) {
        const member = (part as Record<string, unknown>)[field];
        if (member === undefined) continue;
        used.add(`${name}.${field}`);
        const ref = schema.$ref ?? schema.items?.$ref;
        const inMap = schema.additionalProperties?.$ref;
        if (ref !== undefined) visit(member, nameOf(ref));
        if (inMap !== undefined) visit(Object.values(member as object), nameOf(inMap));
      }
  };
  for (const { object, fields } of corpus) if (fields.length === 0) visit(object.spec, `${object.kind}Spec`);
  const all = Object.entries(definitions).flatMap(([name, { properties = {} }]) =>
    Object.keys(properties).map((field) => `${name}.${field}`),
  );
  expect(all.filter((field) => !used.has(field))).toEqual([]);
});

test('CRDs, types and schemas are what their sources generate', () => {
  const generate = join(import.meta.dirname, '../../tools/api/generate.ts');
  expect(execFileSync(process.execPath, [generate, '--check'], { encoding: 'utf8' })).toBe('');
});

function nameOf(ref: string): string {
  return ref.slice('#/definitions/'.length);
}
