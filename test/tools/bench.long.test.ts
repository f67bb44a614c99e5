import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Benchmarks with programs of their own run once, small: so that they still do when somebody needs a figure. */
test.each([
  ['ads-fanout', ['5', '40', '1'], ['connect, from nothing', 'one assignment', 'reconnect, with versions']],
  ['ads-rollouts', ['5', '40', '1'], ['delta, one assignment', 'state of the world, one route table', 'KB each']],
  ['way-back', ['5', '50', '2'], ['delta, VirtualService', 'state of the world, DestinationRule']],
  ['ads-moves', ['5', '100'], ['come back', 'move: all but one', 'move: and back', 'move: a tenth']],
])(
  'bench/%s.ts measures what it says',
  async (name, args, measured) => {
    const run = promisify(execFile)(process.execPath, [`bench/${name}.ts`, ...args], { timeout: 60_000 });
    const { stdout, stderr } = await run;
    for (const each of measured) expect(stdout).toContain(each);
    expect(stdout).toContain('failures: 0');
    expect(stderr).toBe('');
  },
  60_000,
);
