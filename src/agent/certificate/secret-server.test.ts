import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Server, credentials } from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';
import { expect, onTestFinished, test } from 'vitest';
import { createAgentLog } from '../log.ts';
import { bytes } from '../xds/dial.ts';
import { listenOnSocket } from '../xds/socket.ts';
import { secretService } from './secret-server.ts';

/** Serves the same secret under all names; says what is logged. */
async function lab() {
  const directory = mkdtempSync(join(tmpdir(), 'secrets-'));
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  let value = Buffer.from('one');
  const server = new Server();
  const log = createAgentLog({ level: 'warn', format: 'json' }, (line) => lines.push(line));
  server.addService(
    ...secretService(
      {
        watch(_, listener) {
          listeners.add(listener);
          return {
            get current() {
              return { parts: [String(value)], encode: () => value };
            },
            close: () => listeners.delete(listener),
          };
        },
      },
      log,
    ),
  );
  const path = join(directory, 'socket');
  await listenOnSocket(server, path);
  const client = new Client(`unix:${path}`, credentials.createInsecure());
  const open = () => {
    const stream = client.makeBidiStreamRequest(
      '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets',
      bytes,
      bytes,
    );
    const ended = once(stream, 'error') as Promise<[{ readonly code: number; readonly details: string }]>;
    ended.catch(() => undefined);
    return { stream, ended };
  };
  onTestFinished(() => {
    client.close();
    server.forceShutdown();
    rmSync(directory, { recursive: true });
  });
  const change = (next: string): void => {
    value = Buffer.from(next);
    for (const listener of listeners) listener();
  };
  return { ...open(), open, lines, change };
}

/** `resource_names` 3, `error_detail` 6 with a `message` 2. */
function request(names: readonly string[], error?: string): Buffer {
  const writer = protobuf.Writer.create();
  for (const name of names) writer.uint32((3 << 3) | 2).string(name);
  if (error !== undefined)
    writer
      .uint32((6 << 3) | 2)
      .fork()
      .uint32((2 << 3) | 2)
      .string(error)
      .ldelim();
  return Buffer.from(writer.finish());
}

test('a rejection that is repeated is logged once for each secret, and in part if it is long', async () => {
  const { stream, lines, change } = await lab();
  stream.write(request(['default']));
  await once(stream, 'data');
  for (let i = 0; i < 50; i++) stream.write(request([], 'x'.repeat(100_000)));
  // A new name is answered: all before it has been read.
  stream.write(request(['ROOTCA']));
  await once(stream, 'data');
  expect(lines).toHaveLength(1);
  expect(lines[0]!.length).toBeLessThan(1_000);
  change('two');
  await once(stream, 'data');
  stream.write(request([], 'x'.repeat(100_000)));
  stream.write(request(['another']));
  await once(stream, 'data');
  expect(lines).toHaveLength(2);
});

test('a stream that asks for many names is ended', async () => {
  const { stream, ended } = await lab();
  stream.on('data', () => undefined);
  stream.write(request(Array.from({ length: 101 }, (_, i) => `name${i}`)));
  expect((await ended)[0]).toMatchObject({ code: 3, details: 'more than 100 names in one stream' });
});

test('the names of files leave room for the own certificate of the workload, and for each other as streams end', async () => {
  const { open, ended } = await lab();
  ended.catch(() => undefined);
  const answered = async (names: readonly string[]) => {
    const { stream } = open();
    stream.on('error', () => undefined).write(request(names));
    await once(stream, 'data');
    return stream;
  };
  const files = (stream: number): string[] => Array.from({ length: 100 }, (_, i) => `file-root:/${stream}/${i}`);
  const full = await Promise.all(Array.from({ length: 10 }, (_, i) => answered(files(i))));
  const { stream, ended: refused } = open();
  stream.write(request(['file-root:/one-more']));
  expect((await refused)[0]).toMatchObject({ code: 3, details: 'more than 1000 names of files' });
  await answered(['default', 'ROOTCA']);
  full[0]!.write(request(['default']));
  await once(full[0]!, 'data');
  const isOver = once(full[1]!, 'error');
  full[1]!.cancel();
  await isOver;
  await answered(['file-root:/one-more']);
});
