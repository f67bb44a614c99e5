import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { plainEnvironment, poll, type RunningProcess, startProcess } from '../peers/process.ts';
import { Honest } from './honest.ts';
import { changeOf, documents, mesh, storm } from './objects.ts';
import { randomOf } from './random.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Number of proxies that receive each change and keep their streams. */
  readonly proxies: number;
  /** Number of proxies that keep losing their connections and reconnect with what they know. */
  readonly commuters: number;
  readonly services: number;
  /** Heap limit of the server, in MiB. */
  readonly heapMiB: number;
}

export interface SoakReport {
  readonly changes: number;
  /** For each change that arrived, milliseconds from the change of the file until the last honest proxy has it. */
  readonly delays: readonly number[];
  /** What happened while a change took longer than {@link SLOW}, with its number and milliseconds. */
  readonly slow: readonly string[];
  /** Number of changes that some proxy did not have within {@link PATIENCE}. */
  readonly missed: number;
  /** Peak memory of the server process. Bytes. */
  readonly peakMemory: number;
  /** Growth of its log in the busiest minute. Bytes. */
  readonly logPerMinute: number;
  readonly reconnects: number;
  /** Exit code or signal of the server, if it ended early. */
  readonly died: number | string | undefined;
}

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const ATTACK = fileURLToPath(new URL('attack.ts', import.meta.url));
/** Milliseconds after which honest proxies lose their connections and reconnect. */
const CUT_EVERY = 15_000;
/** Milliseconds after which all objects of the storm are replaced. */
const STORM_EVERY = 5_000;
/** Milliseconds. */
const SLOW = 2_000;
/** A change that has not arrived after this time counts as missed. Milliseconds. */
const PATIENCE = 30_000;

/**
 * Runs a server on a directory in a separate process and attacks it in every way at once from many loopback addresses,
 * while files change and honest proxies must receive each change.
 */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-soak-'));
  const log = join(directory, 'log');
  const files = join(directory, 'files');
  const random = randomOf(options.seed);
  await writeMesh(files, options.services);
  // The shell only redirects the log to a file.
  const server = startProcess(
    '/bin/sh',
    [
      '-c',
      'exec "$0" "$@" 2>"$LOG"',
      process.execPath,
      `--max-old-space-size=${options.heapMiB}`,
      MAIN,
      'serve',
      `--directory=${files}`,
      '--grpc-address=127.0.0.1:0',
      '--monitoring-address=127.0.0.1:0',
      '--health-address=127.0.0.1:0',
      '--log-format=json',
      '--shutdown-duration=0s',
    ],
    { env: { ...plainEnvironment(), LOG: log } },
  );
  let attackers: RunningProcess | undefined;
  let died: SoakReport['died'];
  let over = false;
  void server.exited.then((code) => (died = over ? undefined : code));
  const proxies: Honest[] = [];
  const commuters: Honest[] = [];
  const delays: number[] = [];
  const slow: string[] = [];
  let [changes, missed, peakMemory] = [0, 0, 0];
  /** Events since the last change. */
  const events: string[] = [];
  const logSizes: number[] = [];
  try {
    const { grpc: port, monitoring } = await poll('the server is ready', () => readyPorts(log), { process: server });
    // One in five uses state of the world.
    const honest = (i: number): Honest => new Honest(port, i, i % 5 !== 0);
    for (let i = 0; i < options.proxies; i++) proxies.push(honest(i));
    for (let i = 0; i < options.commuters; i++) commuters.push(honest(options.proxies + i));
    /** Milliseconds until the change arrived; undefined: not within PATIENCE. Names a few late proxies in `late`. */
    const arrived = async (at: readonly Honest[], late: string[] = []): Promise<number | undefined> => {
      const since = performance.now();
      while (!at.every((proxy) => proxy.hasMark) && died === undefined) {
        const without = at.filter((proxy) => !proxy.hasMark);
        if (late.length === 0 && performance.now() - since > SLOW)
          late.push(`${without.length} late`, ...without.slice(0, 3).map((proxy) => proxy.describe()));
        if (performance.now() - since > PATIENCE) {
          missed++;
          return undefined;
        }
        await delay(10);
      }
      return performance.now() - since;
    };
    const change = async (): Promise<void> => {
      const { mark, object } = changeOf(changes++);
      for (const proxy of [...proxies, ...commuters]) proxy.expect(mark);
      await replace(join(files, `${String(object['kind'])}.yaml`), documents([object]));
      const late: string[] = [];
      const ms = await arrived(proxies, late);
      if (ms !== undefined) delays.push(ms);
      if (ms !== undefined && ms > SLOW)
        slow.push(
          `change ${changes - 1} (${String(object['kind'])}): ${Math.round(ms)} ms, ${[...events, ...late].join(', ')}`,
        );
      events.length = 0;
    };
    await change();
    delays.length = slow.length = 0;
    attackers = startProcess(process.execPath, [ATTACK, ...[port, monitoring, options.seed].map(String)]);
    let attacksEnded: number | string | undefined;
    void attackers.exited.then((code) => (attacksEnded = code));
    const until = performance.now() + options.seconds * 1_000;
    let nextLook = performance.now();
    let nextStorm = nextLook;
    let nextCut = nextLook + CUT_EVERY;
    while (performance.now() < until && died === undefined) {
      if (performance.now() >= nextStorm) {
        nextStorm += STORM_EVERY;
        events.push('storm of objects');
        await replace(join(files, 'storm.yaml'), documents(storm(random)));
      }
      if (performance.now() >= nextCut) {
        nextCut += CUT_EVERY;
        // Some of them, or all at once.
        const share = random() < 0.3 ? 1 : random();
        const cut = commuters.filter(() => random() < share);
        for (const commuter of cut) commuter.cut();
        events.push(`${cut.length} cut off`);
      }
      await change();
      if (performance.now() >= nextLook) {
        nextLook += 1_000;
        logSizes.push((await readFile(log)).length);
        peakMemory = Math.max(peakMemory, await memoryOf(server.pid));
      }
      // Without attacks, the run proves nothing.
      if (attacksEnded !== undefined) throw new Error(`the attacks ended with ${attacksEnded}:\n${attackers.log()}`);
      await delay(200);
    }
    // Proxies that were away must get the last change, too.
    await arrived(commuters);
    over = true;
    const reconnects = commuters.reduce((sum, proxy) => sum + proxy.reconnects, 0);
    const minutes = logSizes.map((size, i) => size - (logSizes[i - 60] ?? 0));
    return { changes, delays, slow, missed, peakMemory, logPerMinute: Math.max(0, ...minutes), reconnects, died };
  } catch (error) {
    const text = await readFile(log, 'utf8').catch(() => '');
    throw new Error(`${String(error)}\nThe log of the server ends with:\n${text.slice(-10_000)}`, { cause: error });
  } finally {
    over = true;
    await attackers?.stop();
    for (const proxy of [...proxies, ...commuters]) proxy.stop();
    await server.stop();
    await rm(directory, { recursive: true });
  }
}

interface Ports {
  readonly grpc: number;
  readonly monitoring: number;
  readonly health: number;
}

/** Where the server listens according to its log, once it is ready. */
async function readyPorts(log: string): Promise<Ports | undefined> {
  const text = await readFile(log, 'utf8').catch(() => '');
  const line = text.split('\n').find((each) => each.includes('"Serving proxies'));
  if (line === undefined) return undefined;
  const ports = JSON.parse(line) as Ports;
  const ready = await fetch(`http://127.0.0.1:${ports.health}/ready`).catch(() => undefined);
  return ready?.ok === true ? ports : undefined;
}

async function writeMesh(directory: string, services: number): Promise<void> {
  await mkdir(directory);
  await writeFile(join(directory, 'services.yaml'), documents(mesh(services)));
}

/** Writes the file atomically. */
async function replace(path: string, content: string): Promise<void> {
  await writeFile(`${path}.new`, content);
  await rename(`${path}.new`, path);
}

/** Resident memory of a process, in bytes. */
async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}
