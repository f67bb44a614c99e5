import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { validateBootstrap } from '../peers/envoy.ts';
import { withPeers } from '../peers/with-peers.ts';
import { caseNames, expectedFile, orphans, printBootstrap, readCase } from './case.ts';

test.each(caseNames())('the bootstrap for %s', (name) => {
  const { settings, bootstrap } = readCase(name);
  expect(printBootstrap(bootstrap), 'run make golden and review the diff').toBe(
    readFileSync(expectedFile(name), 'utf8'),
  );
  expect(settings.unused).toEqual([]);
});

test('there is no expected file without a case', () => {
  expect(orphans()).toEqual([]);
});

withPeers(['envoy'], 'a real Envoy', () => {
  test.each(caseNames())('takes the bootstrap for %s', async (name) => {
    expect(await validateBootstrap(readCase(name).bootstrap)).toEqual({ ok: true });
  });

  test('writes its log as text, too', async () => {
    expect(await validateBootstrap(readCase('sidecar', 'text').bootstrap)).toEqual({ ok: true });
  });

  test('would be heard to refuse', async () => {
    const bootstrap = { ...readCase('sidecar').bootstrap, nobodyKnows: true };
    expect(await validateBootstrap(bootstrap)).toMatchObject({ ok: false });
  });
});
