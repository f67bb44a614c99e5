import { expect, test } from 'vitest';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { Graph } from '../../cache/graph.ts';
import { declareProblems } from './problems.ts';

const object = { source: 's', group: 'g', kind: 'K', namespace: 'n', name: 'o', uid: '', generation: 1 };
const problem = (field: string, message = 'wrong'): Problem => ({ object, field, reason: 'Invalid', message });

test('findings of all collections stand in the order of the object, each once', () => {
  const graph = new Graph();
  const sources = [graph.input<HasProblems>('a'), graph.input<HasProblems>('b')] as const;
  const { byObject } = declareProblems(graph, sources);
  const fields = ['spec.http[10].route', 'spec.http[2]', 'spec.http[2].fault', 'spec.hosts[0]'];
  graph.commit([
    sources[0].write('x', { problems: fields.map((field) => problem(field)) }),
    sources[1].write('x', { problems: [problem('spec.http[2]', 'odd'), problem('spec.http[2]')] }),
  ]);
  const [[, found]] = [...byObject.entries()] as [[string, readonly Problem[]]];
  expect(found.map(({ field, message }) => `${field} ${message}`)).toEqual([
    'spec.hosts[0] wrong',
    'spec.http[2] odd',
    'spec.http[2] wrong',
    'spec.http[2].fault wrong',
    'spec.http[10].route wrong',
  ]);
});

test('objects of one kind and name in two groups have their findings each', () => {
  const graph = new Graph();
  const source = graph.input<HasProblems>('a');
  const { byObject } = declareProblems(graph, [source]);
  const of = (group: string): Problem => ({ ...problem('spec'), object: { ...object, group } });
  graph.commit([source.write('1', { problems: [of('g')] }), source.write('2', { problems: [of('other')] })]);
  expect([...byObject.entries()].map(([, found]) => found.length)).toEqual([1, 1]);
});

test('a finding about thousands of objects is split among them once', () => {
  const graph = new Graph();
  const source = graph.input<HasProblems>('a');
  const { byObject } = declareProblems(graph, [source]);
  byObject.track();
  let reads = 0;
  const count = 2_000;
  const problems = Array.from({ length: count }, (_, i) => ({
    ...problem('spec'),
    get object() {
      reads++;
      return { ...object, name: `o${i}` };
    },
  }));
  graph.commit([source.write('x', { problems })]);
  expect(byObject.size).toBe(count);
  expect(reads).toBeLessThan(20 * count);
});
