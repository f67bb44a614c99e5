import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ExecConfig, ExecPlugin } from './exec-plugin.ts';

const { signal } = new AbortController();
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'fairlead-exec-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A plugin that is a shell script; it runs in a directory of its own. */
function script(text: string): ExecConfig {
  return { command: '/bin/sh', args: ['-c', `cd ${directory}; ${text}`] };
}

function printing(status: object): string {
  return `echo '${JSON.stringify({ kind: 'ExecCredential', status })}'`;
}

async function file(name: string): Promise<string> {
  const path = join(directory, name);
  await expect.poll(() => existsSync(path) && readFileSync(path, 'utf8').endsWith('\n')).toBe(true);
  return readFileSync(path, 'utf8').trim();
}

async function hasEnded(pid: number): Promise<void> {
  // Whoever takes care of orphans here may not: one that is dead and was not asked for has ended, too.
  const state = (): string => {
    try {
      return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1] ?? 'gone';
    } catch {
      return 'gone';
    }
  };
  await expect.poll(state).toMatch(/^(gone|Z|X)$/);
}

describe('a credential plugin', () => {
  test('runs once for all that wait, and again when what it printed has expired', async () => {
    let now = Date.parse('2030-01-01T00:00:00Z');
    const plugin = new ExecPlugin({ now: () => now });
    const exec = script(
      `echo run >> runs; ${printing({ token: 't', expirationTimestamp: '2030-01-01T00:01:00Z' })}; sleep 0.1`,
    );
    const all = await Promise.all(Array.from({ length: 20 }, () => plugin.credential(exec, undefined, { signal })));
    expect(new Set(all.map(({ token }) => token))).toEqual(new Set(['t']));
    await plugin.credential(exec, undefined, { signal });
    expect(await file('runs')).toBe('run');
    now += 60_000;
    await plugin.credential(exec, undefined, { signal });
    expect((await file('runs')).split('\n')).toHaveLength(2);
  });

  test('runs again when the server refused what it printed', async () => {
    const plugin = new ExecPlugin();
    const exec = script(`echo run >> runs; ${printing({ token: 't' })}`);
    await plugin.credential(exec, undefined, { signal });
    plugin.forget();
    await plugin.credential(exec, undefined, { signal });
    expect((await file('runs')).split('\n')).toHaveLength(2);
  });

  test('is told what it runs for', async () => {
    const exec = { ...script(`echo "$KUBERNETES_EXEC_INFO $MORE" > told; ${printing({ token: 't' })}`) };
    const env = [{ name: 'MORE', value: 'more' }];
    const apiVersion = 'client.authentication.k8s.io/v1beta1';
    await new ExecPlugin().credential({ ...exec, env, apiVersion }, { server: 'https://x' }, { signal });
    const spec = { interactive: false, cluster: { server: 'https://x' } };
    expect(await file('told')).toBe(`${JSON.stringify({ apiVersion, kind: 'ExecCredential', spec })} more`);
  });

  test('that is not done in time is ended, with all that it started', async () => {
    const plugin = new ExecPlugin({ timeout: 200 });
    const exec = script('sleep 1000 & echo $! > child; sleep 1000');
    await expect(plugin.credential(exec, undefined, { signal })).rejects.toThrow('timed out after 0.2 s');
    await hasEnded(Number(await file('child')));
    expect(await plugin.credential(script(printing({ token: 't' })), undefined, { signal })).toEqual({ token: 't' });
  });

  test('is ended when the last one that waits for it gives up', async () => {
    const plugin = new ExecPlugin();
    const exec = script('sleep 1000 & echo $! > child; sleep 1000');
    const [first, second] = [new AbortController(), new AbortController()];
    const calls = [first, second].map((each) => plugin.credential(exec, undefined, { signal: each.signal }));
    const pid = Number(await file('child'));
    first.abort(new Error('first'));
    await expect(calls[0]).rejects.toThrow('first');
    expect(() => process.kill(pid, 0)).not.toThrow();
    second.abort(new Error('second'));
    await expect(calls[1]).rejects.toThrow('second');
    await hasEnded(pid);
  });

  test('leaves nobody behind who keeps its output open', async () => {
    const exec = script(`sleep 1000 & echo $! > child; ${printing({ token: 't' })}`);
    expect(await new ExecPlugin().credential(exec, undefined, { signal })).toEqual({ token: 't' });
    await hasEnded(Number(await file('child')));
  });

  test.each<[string, object, object]>([
    ['a token', { token: 't' }, { token: 't' }],
    ['a certificate', { clientCertificateData: 'c', clientKeyData: 'k' }, { cert: 'c', key: 'k' }],
  ])('prints %s', async (_, status, expected) => {
    expect(await new ExecPlugin().credential(script(printing(status)), undefined, { signal })).toEqual(expected);
  });

  test.each<[string, () => ExecConfig, string]>([
    [
      'is not there',
      () => ({ command: '/none', installHint: 'get it' }),
      'plugin /none: cannot be started: ENOENT; get',
    ],
    ['fails', () => script('echo "log in first" >&2; exit 3'), 'ended with 3: log in first'],
    ['fails and prints nothing', () => script('exit 3'), 'ended with 3: no error output'],
    ['prints something other than JSON', () => script('echo secret'), 'printed invalid JSON'],
    ['prints no credential', () => script(printing({ clientCertificateData: 'c' })), 'neither a token nor'],
    [
      'prints no time',
      () => script(printing({ token: 't', expirationTimestamp: 'soon' })),
      'printed an invalid expirationTimestamp',
    ],
    ['does not stop to print', () => script('cat /dev/zero'), 'printed more than 1048576 characters'],
  ])('that %s is an error that says so', async (_, exec, message) => {
    const failed = new ExecPlugin().credential(exec(), undefined, { signal });
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.not.toThrow('secret');
  });
});
