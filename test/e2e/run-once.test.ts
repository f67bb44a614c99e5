import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { blockOf } from '../docs/markdown.ts';
import { type RunningProcess, poll, run, startProcess } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';

/** What `make run` starts, when everything is installed. */
const RUN = join(import.meta.dirname, '../../tools/run/run.ts');

withPeers(['envoy'], 'make run', () => {
  test('is the first command of README.md#two-commands, and that of first-steps.md#on-a-laptop', () => {
    expect(blockOf('README.md#two-commands').split('\n')[0]).toBe('make run');
    expect(blockOf('first-steps.md#on-a-laptop')).toBe('make run\n');
  });

  test('ONCE=1 sees that requests go where the files say, and follow their change', { timeout: 60_000 }, async () => {
    const { code, stdout, stderr } = await run(process.execPath, [RUN, '--once']);
    expect(code, stdout + stderr).toBe(0);
    const looks = stdout.split('\n').flatMap((line) => /^ok {6}(.*?) {2}/.exec(line)?.[1]?.trim() ?? []);
    expect(looks).toEqual([
      ...['whole path', 'acknowledged', 'problems', 'split', 'header match', 'fault', 'redirect'],
      ...['change of weights', 'split after it'],
    ]);
    expect(stdout).toContain('All 9 looks as the files say.');
  });

  describe.skipIf(process.platform !== 'linux')('what it started', () => {
    let directory = '';
    let runner: RunningProcess;
    beforeEach(async () => {
      directory = mkdtempSync(join(tmpdir(), 'fairlead-run-'));
      runner = startProcess(process.execPath, [RUN, '--ports', 'any'], { env: { ...process.env, TMPDIR: directory } });
      await until('it shows who answers', () => /storefront v1/.test(runner.log()), runner);
    });
    afterEach(async () => {
      await runner.stop();
      rmSync(directory, { recursive: true });
    });

    test('ends with it at Ctrl-C', async () => {
      const children = childrenOf(runner.pid);
      expect(children).toHaveLength(3);
      process.kill(runner.pid, 'SIGINT');
      expect(await runner.exited).toBe(0);
      expect(children.filter(isAlive)).toEqual([]);
      expect(readdirSync(directory)).toEqual([]);
    });

    test('ends with it when it is killed', async () => {
      const children = childrenOf(runner.pid);
      process.kill(runner.pid, 'SIGKILL');
      await until('its children have ended', () => !children.some(isAlive));
    });

    test('ends, with a word about it, when one part of it does', async () => {
      const [first = 0, ...others] = childrenOf(runner.pid);
      process.kill(first, 'SIGKILL');
      expect(await runner.exited).toBe(1);
      expect(runner.log()).toMatch(/error: .* ended \(SIGKILL\)/);
      expect(others.filter(isAlive)).toEqual([]);
    });
  });
});

test('a port that is taken is named in one line', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const base = port - 80;
    const { code, stdout, stderr } = await run(process.execPath, [RUN, '--ports', `${base}`]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^error: ports? (\\d+, )*${port}(, \\d+)* of 127.0.0.1 (is|are) taken: .*\n$`));
  } finally {
    server.close();
  }
});

async function until(what: string, is: () => boolean, process?: RunningProcess): Promise<void> {
  await poll(what, () => Promise.resolve(is() || undefined), process && { process });
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((other) => statOf(other)?.parent === pid);
}

function isAlive(pid: number): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.state !== 'Z';
}

function statOf(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
