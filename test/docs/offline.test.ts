import { beforeAll, expect, test } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { PAGES, blockOf, isCommands, readPage } from './markdown.ts';
import { type Shell, createShell, stepsOf } from './shell.ts';

const onEnd = afterSuite();
let shell: Shell;
beforeAll(async () => {
  shell = await createShell({ onEnd });
});

test.each(['README.md#look-before-you-apply', 'first-steps.md#look-before-you-apply'])('%s works in a clone', async (id) => {
  const { code, stdout, stderr } = await shell.run(blockOf(id));
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('reviews.bookshop.svc.cluster.local');
});

test.each([
  ['security.md#why-is-a-request-denied', 0],
  ['security.md#why-is-a-request-denied/2', 1],
])('%s prints what the guide says', async (id, code) => {
  const steps = stepsOf(blockOf(id));
  expect(steps).toHaveLength(1);
  for (const { command, output } of steps) expect(await shell.run(command)).toMatchObject({ code, stdout: output });
});

/** What the pages have fairlead do: the command, and its options. */
const uses = PAGES.flatMap((page) =>
  readPage(page)
    .blocks.filter(({ language }) => isCommands(language))
    .flatMap(({ id, text }) =>
      [...text.replaceAll('\\\n', ' ').matchAll(/(?:^|[|$] |\n)fairlead ([^|#\n]*)/g)].map(([, line = '']) => ({
        ...{ id, command: /^(explain access|clusters identities|\S+)/.exec(line)?.[0] ?? '' },
        options: [...line.matchAll(/ (--[a-z-]+)/g)].map(([, option]) => option),
      })),
    ),
);

test('every command of Fairlead in the pages exists, with its options', async () => {
  expect(uses.length).toBeGreaterThan(15);
  for (const { id, command, options } of uses) {
    let help = '';
    await runCli([...command.split(' '), '--help'], {
      ...{ program: () => Promise.reject(new Error('help needs no program')), env: {} },
      ...{ out: (text) => void (help += text), err: (text) => void (help += text) },
      signal: new AbortController().signal,
    });
    expect(help, id).toContain(`Usage: fairlead ${command}`);
    for (const option of options) expect(help, `${id}: ${command}`).toContain(option);
  }
});
