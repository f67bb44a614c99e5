import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { kindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { createValidator } from '../../src/api/validate.ts';
import { Interner } from '../../src/kube/reading/interner.ts';
import type { Json } from '../../src/api/json.ts';
import { shapeOf } from '../../src/kube/reading/trim.ts';
import { type EnvoyNode, readObjects } from '../harness/mesh.ts';
import { caseNames } from '../truth/cases.ts';
import { type GoldenCase, goldenNames, readGoldenCase } from './case.ts';
import { meshOf } from './mesh-of.ts';

const validate = createValidator();
const interner = new Interner();

function trimmed(object: KubernetesObject): KubernetesObject {
  const { trim } = shapeOf(kindOf(object.apiVersion, object.kind)!, interner);
  return trim(structuredClone(object) as unknown as Json);
}

function truthCase(name: string): GoldenCase {
  const directory = join('test/truth/cases', name);
  const read = (file: string) => readFileSync(join(directory, file), 'utf8');
  const proxies = readdirSync(join(directory, 'proxies')).map(
    (file) => [file.replace(/\.json$/, ''), JSON.parse(read(`proxies/${file}`)) as EnvoyNode] as const,
  );
  return { name, options: {}, proxies: new Map(proxies), objects: readObjects(read('input.yaml')), refused: new Map() };
}

/** All that proxies hold, and all that owners are told. */
function outcome(each: GoldenCase): unknown {
  const made = meshOf(each);
  return {
    problems: [...made.mesh.problems.byObject.entries()],
    resources: Array.from(each.proxies.keys(), (proxy) =>
      made.resources(proxy).map(({ typeUrl, name, version }) => `${typeUrl} ${name} ${version}`),
    ),
  };
}

test.each([
  ...goldenNames().map((name) => [name, () => readGoldenCase(name, validate)] as const),
  ...caseNames().map((name) => [name, () => truthCase(name)] as const),
])('what is dropped of objects from an API server changes nothing: %s', (_, read) => {
  const each = read();
  expect(outcome({ ...each, objects: each.objects.map(trimmed) })).toEqual(outcome(each));
});
