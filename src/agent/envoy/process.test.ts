import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readSettings } from '../settings/settings.ts';
import { startEnvoy } from './process.ts';

test.runIf(process.platform === 'linux')(
  'an Envoy whose log cannot be written goes on, and says last why it ended',
  async () => {
    const root = mkdtempSync(join(tmpdir(), 'fl-envoy-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const binaryPath = join(root, 'envoy');
    // More than a pipe holds.
    writeFileSync(binaryPath, '#!/bin/sh\nhead -c 300000 /dev/zero >&2\necho "no room" >&2\nexit 3\n', { mode: 0o755 });
    const settings = readSettings(
      { type: 'sidecar', domain: '', root, meshConfigFile: 'none' },
      {
        env: { PROXY_CONFIG: JSON.stringify({ binaryPath }) },
        readFile: () => undefined,
        isSocket: () => false,
        addresses: () => [],
      },
    );
    const log = createWriteStream('/dev/full').on('error', () => {});
    const options = { bootstrapFile: '', level: 'info', componentLevels: '', override: '', log };
    expect(await startEnvoy(settings, options).exited).toMatchObject({
      code: 3,
      reason: expect.stringContaining('no room'),
    });
  },
);
