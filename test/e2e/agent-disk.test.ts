import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../../src/testing/free-ports.ts';
import { withPeers } from '../peers/with-peers.ts';
import { HOST, messages, serverEntry, startMesh } from './agent-mesh.ts';
import { startFairleadAgent } from './fairlead-agent.ts';
import { ask } from './traffic.ts';

const isRoot = process.getuid?.() === 0;

withPeers(['envoy'], 'an agent whose disk', () => {
  describe.skipIf(!isRoot)(isRoot ? 'is a file system of its own' : 'skipped: needs root to mount one', () => {
    test('is full says so once, and serves on', async () => {
      const { setup, made, inbound, outbound } = await startMesh();
      const server = await startFairleadAgent(setup('server'));
      const configPath = mounted('size=512k');
      const client = await startFairleadAgent({ ...setup('client'), proxyConfig: { configPath } });
      await expect.poll(() => messages(client)).toContain('Envoy started');
      // What Envoy gets now has no room.
      fill(configPath);
      await Promise.all([server.ready(), client.ready()]);
      expect(await ask(outbound, HOST)).toBe('200 served');
      const said = 'The configuration is not saved for a restart';
      await expect.poll(() => messages(client)).toContain(said);
      expect(readdirSync(configPath)).not.toContain('last-config.bin.new');
      const [other = 0] = await freePorts(1);
      await made.apply(serverEntry(inbound, other));
      await expect.poll(() => ask(other, HOST)).toBe('200 served');
      expect(messages(client).filter((each) => each === said)).toHaveLength(1);
    });

    test('is full when it starts says what it cannot write', async () => {
      const { setup } = await startMesh();
      const configPath = mounted('size=8k');
      const agent = await startFairleadAgent({ ...setup('client'), proxyConfig: { configPath } });
      expect(await agent.process.exited).toBe(1);
      expect(messages(agent)).toContain('The certificate is not saved for a restart');
      expect(agent.process.log()).toContain(`cannot write ${configPath}/envoy-rev.json (ENOSPC)`);
    });

    test('cannot be written to says where it needs a volume', async () => {
      const { setup } = await startMesh();
      const configPath = mounted('size=8k,ro');
      const agent = await startFairleadAgent({ ...setup('client'), proxyConfig: { configPath } });
      expect(await agent.process.exited).toBe(1);
      expect(agent.process.log()).toContain(`cannot write to ${configPath} (EROFS); mount an emptyDir there`);
    });
  });
});

/** A directory that is a small file system. Unmounted with the end of the test. */
function mounted(options: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'fl-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory]);
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', directory]);
    rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}

/** Until there is no room for another page. */
function fill(directory: string): void {
  const { bavail, bsize } = statfsSync(directory);
  writeFileSync(join(directory, 'filler'), Buffer.alloc(bavail * bsize));
}
