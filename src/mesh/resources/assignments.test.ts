import { expect, test } from 'vitest';
import { TestMesh } from '../../../test/harness/mesh.ts';
import { Derived } from '../../cache/derived.ts';
import type { ResourceSet } from './resource-sets.ts';
import { MeshLab, objectOf, proxy } from '../../../test/harness/lab.ts';

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

const inLocality = (i: number) => ({ ...proxy(`x${i}.c`), locality: { region: `r${i}`, zone: '', subZone: '' } });

const entry = (endpoints: number, localities: number) =>
  objectOf('ServiceEntry', 'shop/e', {
    spec: {
      hosts: ['h.example.com'],
      resolution: 'STATIC',
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      endpoints: many(endpoints, (i) => ({ address: `10.2.${i >> 8}.${i & 255}`, locality: `r${i % localities}` })),
    },
  });

const ruleOf = (subsets: number, trafficPolicy?: object) =>
  objectOf('DestinationRule', 'shop/r', {
    spec: {
      host: 'h.example.com',
      subsets: many(subsets, (i) => ({ name: `v${i}`, labels: {} })),
      ...(trafficPolicy && { trafficPolicy }),
    },
  });
const near = (subsets = 0) => ruleOf(subsets, { outlierDetection: {} });

const join = (mesh: TestMesh, count: number) =>
  mesh.commit(many(count, inLocality).map((one) => mesh.mesh.inputs.proxies.write(one.stream, one)));

const problemsOf = (mesh: TestMesh): string[] =>
  [...mesh.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems.map(({ object, field, reason }) => `${object.kind} ${field} ${reason}`),
  );

const localitiesIn = (message: unknown) => (message as { endpoints: unknown[] }).endpoints.length;

/** How many resources the sets of assignments make while something happens. */
function madeBy(happens: () => void): number {
  const runs = Derived.prototype as unknown as {
    name: string;
    execute(key: string, causes: unknown): Map<string, unknown> | undefined;
  };
  const { execute } = runs;
  let made = 0;
  runs.execute = function (key, causes) {
    const outputs = execute.call(this, key, causes);
    if (this.name.endsWith('assignmentSets'))
      for (const set of outputs?.values() ?? []) made += (set as ResourceSet).resources.length;
    return outputs;
  };
  try {
    happens();
  } finally {
    Object.assign(runs, { execute });
  }
  return made;
}

test.each([0, 3])('a proxy of a new locality has assignments made for few others again, with %i subsets', (subsets) => {
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([near(subsets)]);
  join(mesh, 100);
  const each = 1 + subsets;
  expect(madeBy(() => mesh.apply([entry(50, 10)]))).toBe(100 * each);
  expect(madeBy(() => mesh.connect(inLocality(100)))).toBeLessThanOrEqual(10 * each);
  for (const stream of ['x0.c', 'x99.c', 'x100.c']) expect(mesh.snapshot(stream).eds).toHaveLength(each);
  expect(madeBy(() => mesh.disconnect('x100.c'))).toBeLessThanOrEqual(10 * each);
});

test('steps of places that come and go are those that would be made from scratch', () => {
  const lab = new MeshLab([entry(50, 10), near(1)]);
  for (const i of many(12, (n) => n)) lab.connect(inLocality(i));
  for (const stream of ['x0.c', 'x11.c']) expect(lab.faults(stream)).toEqual([]);
  for (const i of many(11, (n) => n)) lab.disconnect(`x${i}.c`);
  expect(lab.size('more assignmentSets')).toBe(0);
  expect(lab.snapshot('x11.c').eds).toHaveLength(2);
});

test('assignments of few places are one step', () => {
  const lab = new MeshLab([entry(50, 3), near()], many(3, inLocality));
  expect(lab.size('assignmentSets')).toBe(1);
  expect(lab.size('more assignmentSets')).toBe(0);
});

test('endpoints in many localities are more steps', () => {
  // Of 19 and of 4 assignments: of the host and its 40 subsets, which are the same for all proxies.
  const sizes = [1, 1000].map((localities) => {
    const lab = new MeshLab([entry(1000, localities), ruleOf(40)], [proxy('x.c')]);
    return lab.size('more assignmentSets');
  });
  expect(sizes).toEqual([3, 11]);
});

test('endpoints in many localities are near for fewer proxies, and the owner of the rule is told', () => {
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([entry(1000, 1000), near()]);
  join(mesh, 126);
  expect(problemsOf(mesh)).toEqual(['ServiceEntry spec Ineffective']);
  mesh.disconnect('x0.c');
  expect(problemsOf(mesh)).toEqual([]);
});

test('localities count in what subsets of a host hold together', () => {
  const mesh = new TestMesh({ oracle: false });
  mesh.connect(proxy('x.c'));
  mesh.apply([entry(1000, 1000), ruleOf(199)]);
  expect(problemsOf(mesh)).toEqual(['DestinationRule spec.subsets Ineffective']);
  // 2500 for each: an endpoint and four for each further one.
  expect(new Set(mesh.json('x.c').eds.map(localitiesIn))).toEqual(new Set([1000, 625]));
});
