import { join } from 'node:path';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { afterSuite } from '../../src/testing/on-end.ts';
import { movePorts, findBase } from '../../tools/run/ports.ts';
import { type Stage, startStage } from '../../tools/run/stage.ts';
import type { Answer } from '../../tools/run/http.ts';
import { Visitor } from '../../tools/run/visitor.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { blockOf } from './markdown.ts';
import { type Shell, createShell } from './shell.ts';

/** What `make run` starts, with the examples of a clone that the commands of the guide change. */
withPeers(['envoy'], 'the guide on a laptop', () => {
  const onEnd = afterSuite();
  let shell: Shell;
  let stage: Stage;
  let base = 0;
  let visitor: Visitor;
  printLogOnFailure(() => stage?.fairlead);

  beforeAll(async () => {
    base = await findBase();
    shell = await createShell({ onEnd });
    await shell.run(`sed -i -E 's/\\b280([0-9]{2})\\b/${base / 100}\\1/' examples/*/*.yaml`);
    await shell.run('git init -q . && git add examples && git -c user.name=a -c user.email=a@b commit -qm a');
    stage = await startStage(join(shell.directory, 'examples/bookshop'), base, new AbortController().signal);
    onEnd(() => stage.stop());
    visitor = new Visitor(stage.ports);
    onEnd(() => visitor.leave());
  });

  /** Runs a block, or commands, with the ports of this stage; returns what it prints. */
  async function type(commands: string): Promise<string> {
    const { code, stdout, stderr } = await shell.run(movePorts(commands, base));
    expect(code, stderr).toBe(0);
    return stdout;
  }

  /** The versions that answered, once they are these. */
  const versions = (wanted: readonly string[], headers: Record<string, string> = {}) =>
    poll(`${wanted.join(' and ')}`, async () => {
      const answers = await Promise.all(Array.from({ length: 30 }, () => visitor.fromStorefront('http://reviews/', { headers })));
      const found = new Set(answers.map(({ body }) => (JSON.parse(body) as { version: string }).version));
      return [...found].sort().join() === wanted.join() ? true : undefined;
    });

  /** An answer of the reviews that is as wanted. */
  const answer = (url: string, isWanted: (answer: Answer) => boolean) =>
    poll('the answer', async () => {
      const found = await visitor.fromStorefront(url);
      return isWanted(found) ? found : undefined;
    });

  /** Takes the place of reviews.yaml. */
  const apply = (name: string, file = 'reviews') => type(`cp examples/guide/${name}.yaml examples/bookshop/${file}.yaml`);

  beforeEach(async () => {
    await type(`${blockOf('first-steps.md#on-a-laptop/4')}\ngit clean -fq examples`);
    await versions(['v1', 'v2']);
  });

  test('requests go where the first steps say, before and after the change', async () => {
    const answers = await type(blockOf('first-steps.md#on-a-laptop/2'));
    expect(answers).toContain('"storefront"');
    expect(answers).toMatch(/"version": ?"v2"[^}]*\}$/);
    const found = await type(blockOf('first-steps.md#on-a-laptop/3'));
    expect(found.match(/"reviews"/g)).toHaveLength(20);
  });

  test('only beta readers get v2 of the canary', async () => {
    await type(blockOf('routing.md#routing-by-example'));
    await versions(['v1']);
    await versions(['v2'], { 'x-reader': 'beta' });
  });

  test('both versions answer under split, and v1 alone under mirror', async () => {
    await type(blockOf('examples/guide/README.md#examples-of-the-guide').split('\n')[0]!);
    await versions(['v1', 'v2']);
    await apply('mirror');
    await versions(['v1']);
    const envoy = stage.proxies['storefront.bookshop']!;
    const name = 'cluster.outbound|80|v2|reviews.bookshop.svc.cluster.local';
    const mirrored = async () =>
      Object.entries(await envoy.stats('upstream_rq_total')).find(([key]) => key.startsWith(name))?.[1] ?? 0;
    const before = await mirrored();
    await visitor.fromStorefront('http://reviews/');
    await poll('the copy', async () => ((await mirrored()) > before ? true : undefined));
  });

  test('headers are written and paths rewritten', async () => {
    await apply('headers');
    const { headers, status } = await answer('http://reviews/v1/', (found) => found.headers['cache-control'] !== undefined);
    expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
    expect((await visitor.fromStorefront('http://reviews/')).headers['cache-control']).toBeUndefined();
  });
});
