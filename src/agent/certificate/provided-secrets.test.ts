import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Server, credentials } from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';
import { expect, onTestFinished, test } from 'vitest';
import { startAgent } from '../../../test/e2e/agent.ts';
import { createAgentLog } from '../log.ts';
import { bytes } from '../xds/dial.ts';
import { listenOnSocket } from '../xds/socket.ts';
import { fromProvider } from './certificate-source.ts';
import { providedSecrets } from './provided-secrets.ts';
import { secretService } from './secret-server.ts';
import { workloadSecrets } from './workload-secrets.ts';

/** An agent whose provider is to be at `socket`. */
async function lab() {
  const [directory, end] = [mkdtempSync(join(tmpdir(), 'fl-provider-')), new AbortController()];
  const [path, socket] = [join(directory, 'SDS'), join(directory, 'socket')];
  const lines: string[] = [];
  const log = createAgentLog({ level: 'warn', format: 'json' }, (line) => lines.push(line));
  const server = new Server();
  const own = secretService(workloadSecrets(fromProvider, join(directory, 'crl'), log, end.signal), log);
  server.addService(...providedSecrets(own, socket, log));
  await listenOnSocket(server, path);
  const client = new Client(`unix:${path}`, credentials.createInsecure());
  onTestFinished(() => {
    client.close();
    server.forceShutdown();
    end.abort();
    rmSync(directory, { recursive: true });
  });
  const open = (...names: string[]) => {
    const method = '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets';
    const stream = client.makeBidiStreamRequest(method, bytes, bytes);
    const failed = once(stream, 'error') as Promise<[{ readonly code: number; readonly details: string }]>;
    failed.catch(() => undefined);
    const writer = protobuf.Writer.create();
    for (const name of names) writer.uint32((3 << 3) | 2).string(name);
    stream.write(Buffer.from(writer.finish()));
    const next = async (): Promise<string> => String((await once(stream, 'data'))[0]);
    return { next, failed };
  };
  return { directory, socket, open, lines };
}

const secrets = (certificate: string) => ({ certificate, key: 'key of the provider', roots: 'roots of the provider' });

test("the workload's own secrets are the provider's, with what it changes, and files are read here", async () => {
  const { directory, socket, open } = await lab();
  const provider = await startAgent(secrets('first of the provider'), socket);
  onTestFinished(() => provider.close());
  const { next } = open('default');
  expect(await next()).toContain('first of the provider');
  expect(await open('ROOTCA').next()).toContain('roots of the provider');
  const [chain, key] = [join(directory, 'chain.pem'), join(directory, 'key.pem')];
  writeFileSync(chain, 'chain in a file');
  writeFileSync(key, 'key in a file');
  expect(await open(`file-cert:${chain}~${key}`).next()).toContain('chain in a file');
  const changed = next();
  provider.update(secrets('second of the provider'));
  expect(await changed).toContain('second of the provider');
});

test('while nobody listens on the socket of the provider, Envoy is told, it is logged once, and nobody removes it', async () => {
  const { socket, open, lines } = await lab();
  // As a process leaves it that was killed.
  const former = createServer().listen(`${socket}.former`);
  await once(former, 'listening');
  renameSync(`${socket}.former`, socket);
  former.close();
  const { ino } = statSync(socket);
  for (let attempt = 0; attempt < 5; attempt++) expect((await open('default').failed)[0]).toMatchObject({ code: 14 });
  expect(statSync(socket).ino).toBe(ino);
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    `A client is not connected to the provider of certificates at ${socket}`,
  ]);
  rmSync(socket);
  const provider = await startAgent(secrets('back again'), socket);
  onTestFinished(() => provider.close());
  expect(await open('default').next()).toContain('back again');
});
