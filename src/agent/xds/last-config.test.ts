import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { createAgentLog } from '../log.ts';
import { LastConfig } from './last-config.ts';
import { readDeltaResponse, writeDeltaRequest, writeDeltaResponse, writeRawResponse } from './messages.ts';
import { savedAnswers } from './saved-stream.ts';

const CDS = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const EDS = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';
const SDS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret';

function start() {
  const directory = mkdtempSync(join(tmpdir(), 'fl-last-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'last-config.bin');
  const [clock, end, lines] = [new FakeClock(), new AbortController(), [] as string[]];
  onTestFinished(() => end.abort());
  const log = createAgentLog({ level: 'info', format: 'text' }, (line) => void lines.push(line));
  const last = new LastConfig({ file, clock, log, signal: end.signal });
  let nonces = 0;
  const response = (typeUrl: string, content: Readonly<Record<string, string>>, removed: readonly string[] = []) => {
    const version = `${++nonces}`;
    if (removed.length > 0) return writeRawResponse({ typeUrl, nonce: version, resources: [], removed });
    const resources = Object.entries(content).map(([name, value]) => [name, Buffer.from(value)] as const);
    return writeDeltaResponse({ typeUrl, version, resources });
  };
  return {
    file,
    clock,
    last,
    lines,
    /** Sends it to Envoy, which accepts or rejects it. */
    give(
      typeUrl: string,
      content: Readonly<Record<string, string>>,
      { error, removed }: { error?: string; removed?: string[] } = {},
    ) {
      const message = response(typeUrl, content, removed);
      const { nonce } = readDeltaResponse(message);
      last.sent(typeUrl, nonce, message);
      last.received(writeDeltaRequest({ typeUrl, nonce, ...(error !== undefined && { error }) }));
    },
    async saved() {
      await clock.advance(31_000);
      await expect.poll(() => statSync(file, { throwIfNoEntry: false })?.size ?? 0).toBeGreaterThan(0);
      return contentOf(last);
    },
  };
}

/** What an Envoy that asks for everything is answered with. */
function contentOf(last: LastConfig): Readonly<Record<string, readonly string[]>> {
  const answer = savedAnswers(last.load()?.resources ?? new Map());
  const of = (typeUrl: string, subscribe: readonly string[]) =>
    answer(writeDeltaRequest({ typeUrl, subscribe }))
      .map(readDeltaResponse)
      .flatMap(({ resources, removed }) => [
        ...resources.map(({ name, version, value }) => `${name}@${version}=${Buffer.from(value).toString()}`),
        ...removed.map((name) => `-${name}`),
      ]);
  return { clusters: of(CDS, []), assignments: of(EDS, ['a', 'gone']), secrets: of(SDS, ['default']) };
}

test('what Envoy has accepted is saved with its versions; what it has rejected, and secrets, are not', async () => {
  const { give, saved } = start();
  give(CDS, { a: 'first', b: 'first' });
  give(CDS, { a: 'second' }, { error: 'no' });
  give(EDS, { a: 'endpoints' });
  give(SDS, { default: 'key' });
  expect(await saved()).toEqual({
    clusters: ['a@1=first', 'b@1=first'],
    assignments: ['a@3=endpoints', '-gone'],
    secrets: [],
  });
});

test('what leaves the configuration leaves what is saved', async () => {
  const { give, saved } = start();
  give(CDS, { a: '1', b: '1' });
  give(CDS, {}, { removed: ['a'] });
  expect((await saved())['clusters']).toEqual(['b@1=1']);
});

test('changes are written seldom, and only if there are any', async () => {
  const { give, saved, file, clock } = start();
  give(CDS, { a: '1' });
  await saved();
  const { mtimeMs } = statSync(file);
  await clock.advance(600_000);
  expect(statSync(file).mtimeMs).toBe(mtimeMs);
  expect(clock.pending).toBe(0);
});

test('only its owner can read it', async () => {
  const { give, saved, file } = start();
  give(CDS, { a: '1' });
  await saved();
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a configuration that is too large is not kept, and that is said', () => {
  const { give, last, lines, file } = start();
  // What was saved cannot be removed.
  mkdirSync(file);
  for (let i = 0; i < 10; i++) give(CDS, { [`c${i}`]: 'x'.repeat(1024 * 1024) });
  expect(last.isTooLarge).toBe(true);
  expect(lines.filter((line) => line.includes('too large'))).toHaveLength(1);
});

test('responses that Envoy does not answer are not kept without end', () => {
  const { last } = start();
  const message = (nonce: number) =>
    writeDeltaResponse({ typeUrl: CDS, version: `${nonce}`, resources: [['a', Buffer.alloc(1024 * 1024)]] });
  for (let nonce = 0; nonce < 15; nonce++) last.sent(CDS, `${nonce}`, message(nonce));
  // The same once more takes the place of the first.
  last.sent(CDS, '0', message(0));
  last.restart();
  for (let nonce = 0; nonce < 15; nonce++) last.sent(CDS, `${nonce}`, message(nonce));
  expect(last.isTooLarge).toBe(false);
  for (let nonce = 15; nonce < 18; nonce++) last.sent(CDS, `${nonce}`, message(nonce));
  expect(last.isTooLarge).toBe(true);
});

test('a file that cannot be read is as if it were not there', () => {
  const { last, file } = start();
  expect(last.load()).toBe(undefined);
  for (const content of ['', 'nonsense', Buffer.from([10, 255, 255, 255, 255])]) {
    writeFileSync(file, content);
    expect(last.load()).toBe(undefined);
  }
  // Nobody writes into a pipe, and a file may have no end.
  rmSync(file);
  execFileSync('mkfifo', [file]);
  expect(last.load()).toBe(undefined);
});
