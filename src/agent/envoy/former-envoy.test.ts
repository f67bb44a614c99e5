import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { createAgentLog } from '../log.ts';
import { endFormerEnvoy, rememberEnvoy } from './former-envoy.ts';

const lines: string[] = [];
const log = createAgentLog({ level: 'info', format: 'text' }, (line) => void lines.push(line));
beforeEach(() => void lines.splice(0));

const endFormer = (file: string): Promise<void> =>
  endFormerEnvoy(file, { clock: systemClock, log, signal: new AbortController().signal });

/** An "Envoy" that waits for its end, and the file in which its agent remembers it, perhaps with a mistake in it. */
async function start(change: Readonly<Record<string, unknown>> = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'fl-former-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'envoy.pid');
  const envoy: ChildProcess = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)']);
  onTestFinished(() => void envoy.kill('SIGKILL'));
  await once(envoy, 'spawn');
  rememberEnvoy(file, envoy.pid!, log);
  // Its parent is alive: in tests, the agent that was killed is another one.
  const remembered = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...remembered, agent: 1, ...change }));
  return { envoy, file };
}

const isAlive = ({ pid, signalCode }: ChildProcess): boolean => signalCode === null && process.kill(pid!, 0);

test('the Envoy of an agent that was killed is ended, and then forgotten', async () => {
  const { envoy, file } = await start();
  const ended = once(envoy, 'exit');
  await endFormer(file);
  expect(await ended).toEqual([null, 'SIGKILL']);
  expect(existsSync(file)).toBe(false);
  expect(lines).toEqual([expect.stringContaining(`Ending the Envoy of an agent that was killed  pid=${envoy.pid}`)]);
});

test.each([
  ['has started at another time', { started: 'another boot 1' }],
  ['is another program', { executable: '/usr/local/bin/envoy' }],
])('a process with its number that %s is left alone', async (_, change) => {
  const { envoy, file } = await start(change);
  await endFormer(file);
  expect(isAlive(envoy)).toBe(true);
  expect([lines, existsSync(file)]).toEqual([[], false]);
});

test('an Envoy whose agent is alive is left alone, and the second agent says which it is', async () => {
  const { envoy, file } = await start({ agent: process.pid });
  await expect(endFormer(file)).rejects.toThrow(
    `the agent with pid ${process.pid} runs an Envoy from the same directory; end it first`,
  );
  expect([isAlive(envoy), existsSync(file)]).toEqual([true, true]);
});

test('a file that is broken, or of an Envoy that has ended, ends nothing', async () => {
  const { envoy, file } = await start();
  const remembered = JSON.parse(readFileSync(file, 'utf8')) as object;
  const broken = [-1, 0, 1, process.pid, '1', null].map((pid) => JSON.stringify({ ...remembered, pid }));
  for (const content of ['', '{', 'null', '[]', ...broken]) {
    writeFileSync(file, content);
    await endFormer(file);
  }
  expect(isAlive(envoy)).toBe(true);
  writeFileSync(file, JSON.stringify(remembered));
  envoy.kill('SIGKILL');
  await once(envoy, 'exit');
  await endFormer(file);
  rmSync(file, { force: true });
  await endFormer(file);
  expect(lines).toEqual([]);
});
