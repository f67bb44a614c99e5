import { expect, test } from 'vitest';
import { read } from './markdown.ts';

const readme = read('README.md');

test('the README is a door: it has at most 100 lines', () => {
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(100);
});

test('the figures of the README are those of docs/performance.md', () => {
  const page = read('docs/performance.md');
  const row = (name: string): readonly string[] =>
    page
      .split('\n')
      .find((line) => line.startsWith(`| ${name} |`))!
      .split(' | ');
  const [, cpu, own] = row('route weight change: CPU');
  const [, slow, fast] = row('route weight change: to the last sidecar, p99');
  const text = readme.replaceAll(/\s+/g, ' ');
  expect(text).toContain(`costs the control plane **${own} of CPU; istiod needs ${cpu}**`);
  expect(text).toContain(`The last sidecar has it after ${fast!.split(' (')[0]} instead of ${slow} (p99)`);
});
