import { expect, test } from 'vitest';
import { runCli } from './cli.ts';

async function run(...argv: readonly string[]): Promise<{ readonly code: number; readonly err: string }> {
  let err = '';
  const code = await runCli(['agent', ...argv], {
    program: () => Promise.reject(new Error('not expected to be called')),
    out: () => {},
    err: (text) => void (err += text),
    env: {},
    // So that a wait that should not have begun ends.
    signal: AbortSignal.abort(),
  });
  return { code, err };
}

test.each([
  [['wait', '--timeout', 'soon'], 'Use a number of seconds, such as 60.'],
  [['wait', '--timeout', '-1'], 'Use a number of seconds, such as 60.'],
  [['wait', '--port', '0'], 'Use a port number, from 1 to 65535.'],
  [['drain', '--port', '70000'], 'Use a port number, from 1 to 65535.'],
])('a number that cannot be meant is refused: agent %j', async (argv, message) => {
  const { code, err } = await run(...argv);
  expect(err).toContain(message);
  expect(code).not.toBe(0);
});

test('waiting ends when the process is told to end', async () => {
  expect(await run('wait', '--port', '1', '--timeout', '3600')).toMatchObject({ code: 1 });
});
