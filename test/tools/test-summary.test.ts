import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { run } from '../peers/process.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-summary-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

const passed = { ancestorTitles: [], title: 'works', status: 'passed' };
const skipped = {
  ancestorTitles: ['Envoy (skipped: no Envoy. Needs python3 (fetches it), or ENVOY_BIN)'],
  title: 'starts',
  status: 'skipped',
};
const todo = { ancestorTitles: [], title: 'later', status: 'todo' };

function reportOf(status: 'passed' | 'failed', ...assertionResults: object[]) {
  const file = { name: resolve('test/a.test.ts'), status, message: '', assertionResults };
  return { success: status === 'passed', testResults: [file] };
}

async function summaryOf(reports: object[], env: NodeJS.ProcessEnv = {}) {
  const paths = reports.map((_, index) => join(directory, `${index}.json`));
  await Promise.all(paths.map((path, index) => writeFile(path, JSON.stringify(reports[index]))));
  const { code, stdout } = await run(process.execPath, [resolve('tools/test-summary.ts'), ...paths], {
    env: { ...process.env, FAIRLEAD_REQUIRE_PEERS: '', ...env },
  });
  return { code, lines: stdout.trimEnd().split('\n') };
}

test('reports are added up, and every test that was not run is named under its reason', async () => {
  const { code, lines } = await summaryOf([reportOf('passed', passed, skipped), reportOf('passed', passed, todo)]);
  expect(lines).toEqual([
    'skipped: no Envoy. Needs python3 (fetches it), or ENVOY_BIN',
    '  test/a.test.ts > Envoy > starts',
    'skipped: without a reason',
    '  test/a.test.ts > later',
    '2 passed, 0 failed, 2 skipped',
  ]);
  expect(code).toBe(0);
});

test('a skipped test is a failure where peers are required', async () => {
  const env = { FAIRLEAD_REQUIRE_PEERS: '1' };
  expect((await summaryOf([reportOf('passed', passed, skipped)], env)).code).toBe(1);
  expect((await summaryOf([reportOf('passed', passed)], env)).code).toBe(0);
});

test('a failed test is named with the beginning of what it said', async () => {
  const message = ['Error: \u001b[31mexpected 1 to be 2\u001b[39m', ...Array.from({ length: 40 }, () => 'at x')].join(
    '\n',
  );
  const failed = { ancestorTitles: ['adding'], title: 'works', status: 'failed', failureMessages: [message] };
  const { code, lines } = await summaryOf([reportOf('failed', passed, failed)]);
  expect(lines.slice(0, 3)).toEqual([
    'failed: test/a.test.ts > adding > works',
    '  Error: expected 1 to be 2',
    '  at x',
  ]);
  expect(lines.slice(-2)).toEqual(['  ... 11 more lines', '1 passed, 1 failed, 0 skipped']);
  expect(code).toBe(1);
});

test('a file that failed without a failed test counts as one', async () => {
  const { code, lines } = await summaryOf([reportOf('failed', { ...skipped, ancestorTitles: [] })]);
  expect(lines).toContain('failed: test/a.test.ts: a hook failed');
  expect(lines.at(-1)).toBe('0 passed, 1 failed, 1 skipped');
  expect(code).toBe(1);
});

test('an error outside of every test counts as a failure', async () => {
  const { code, lines } = await summaryOf([{ ...reportOf('passed', passed), success: false }]);
  expect(lines.at(-1)).toBe('1 passed, 1 failed, 0 skipped');
  expect(code).toBe(1);
});
