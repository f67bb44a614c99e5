import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';

const generate = (...args: string[]) =>
  run(process.execPath, [resolve('tools/protos/generate.ts'), '--check', ...args]);

test('the interfaces are those of the committed descriptors', async () => {
  expect(await generate('--types')).toMatchObject({ code: 0, stderr: '' });
});

withPeers(['go'], 'with Go', () => {
  // The first compilation takes minutes.
  test('the descriptors are those of the Go module', { timeout: 600_000 }, async () => {
    expect(await generate()).toMatchObject({ code: 0 });
  });
});
