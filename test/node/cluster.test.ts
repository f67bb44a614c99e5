import { readFileSync, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blockOf } from '../docs/markdown.ts';
import { pathOf } from '../peers/peer.ts';
import { poll, run } from '../peers/process.ts';
import { LOCK } from './only-node.ts';
import { withNode } from './with-node.ts';

const CLUSTER = join(import.meta.dirname, '../../tools/cluster/cluster.ts');

withNode('make cluster', () => {
  let directory = '';
  const cluster = (...args: string[]) =>
    run(process.execPath, [CLUSTER, ...args], {
      env: { ...process.env, FAIRLEAD_CLUSTER: join(directory, 'cluster') },
    });
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fairlead-cluster-'));
  });
  afterAll(async () => {
    await cluster('--down');
    await rm(directory, { recursive: true, force: true });
  }, 120_000);

  let keeper = 0;

  test('starts a cluster with the bookshop, and says how to use it', { timeout: 900_000 }, async () => {
    expect([blockOf('first-steps.md#on-this-machine'), blockOf('first-steps.md#on-this-machine/2')]).toEqual([
      'make cluster\n',
      'make cluster DOWN=1\n',
    ]);
    const { code, stdout, stderr } = await cluster();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [, kubeconfig = ''] = /KUBECONFIG=(\S+)/.exec(stdout) ?? [];
    const [, shop = ''] = /curl (\S+)/.exec(stdout) ?? [];
    const { stdout: pods } = await run(pathOf('kubectl'), ['--kubeconfig', kubeconfig, 'get', 'pods', '-A']);
    expect(pods).toMatch(/istio-system +fairlead-\S+ +1\/1 +Running/);
    const page = (await (await fetch(shop)).json()) as { parts: Record<string, object> };
    expect(page.parts['stock']).toMatchObject({ status: 200, copies: 7 });

    ({ keeper } = JSON.parse(readFileSync(join(directory, 'cluster/state.json'), 'utf8')) as { keeper: number });
    expect(existsSync(LOCK)).toBe(true);
  });

  test('started again, only says how to use it', async () => {
    expect(await cluster()).toMatchObject({ code: 0, stdout: expect.stringContaining('export KUBECONFIG=') as string });
  });

  test('is removed without a trace even if its process was killed', async () => {
    process.kill(keeper, 'SIGKILL');
    await poll('its end', () => Promise.resolve(existsSync(`/proc/${keeper}/exe`) ? undefined : true));
    expect(await cluster('--down')).toMatchObject({ code: 0, stdout: 'The cluster is removed.\n' });
    expect(existsSync(join(directory, 'cluster'))).toBe(false);
    expect(existsSync(LOCK)).toBe(false);
    expect(await cluster('--down')).toMatchObject({ code: 0, stdout: 'There is no cluster.\n' });
  });
});
