import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';

withPeers(['go'], 'with Go', () => {
  // The first compilation takes minutes.
  test('the descriptors are those of the Go module', { timeout: 600_000 }, async () => {
    expect(await run(process.execPath, [resolve('tools/protos/generate.ts'), '--check'])).toMatchObject({ code: 0 });
  });
});
