import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../peers/process.ts';

test('the interfaces are those of the committed descriptors', async () => {
  expect(await run(process.execPath, [resolve('tools/protos/generate.ts'), '--check', '--types'])).toMatchObject({
    code: 0,
    stderr: '',
  });
});
