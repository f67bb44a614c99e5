import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** A program that a test started. */
export interface RunningProcess {
  readonly pid: number;
  /** The end of what it wrote. */
  log(): string;
  /** Settles once it has ended: the exit code, or the name of the signal. */
  readonly exited: Promise<number | NodeJS.Signals>;
  /** Kills it and everything it started; settles once it has ended. */
  stop(): Promise<void>;
}

export interface ProcessOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly signal?: AbortSignal | undefined;
}

/** The environment for a Fairlead started here: ours, without variables that it would take for settings. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(FAIRLEAD_|KUBE|POD_NAME)/.test(name)));
}

/** From util-linux: makes the kernel kill a program when its parent ends. */
const SETPRIV = '/usr/bin/setpriv';

const LOG_LENGTH = 64 * 1024;

/**
 * Starts a program in its own process group. It is killed by `stop`, by the signal, and when this process ends; if
 * `setpriv` exists, the kernel ensures the latter, so that a killed test runner leaves nothing behind.
 */
export function startProcess(path: string, args: readonly string[], options: ProcessOptions = {}): RunningProcess {
  const { env, cwd, signal } = options;
  signal?.throwIfAborted();
  const watched = existsSync(SETPRIV);
  const [program, before] = watched ? [SETPRIV, ['--pdeathsig', 'KILL', '--', path]] : [path, []];
  const child = spawn(program, [...before, ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(env && { env }),
    ...(cwd && { cwd }),
  });
  let log = '';
  const keep = (text: string): void => {
    log = (log + text).slice(-LOG_LENGTH);
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);

  const kill = (): void => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has just ended.
    }
  };
  if (!watched) process.once('exit', kill);
  signal?.addEventListener('abort', kill, { once: true });
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('error', (error) => {
      keep(`${path}: ${error.message}\n`);
      resolve(127);
    });
    child.once('close', (code, name) => {
      resolve(code ?? name ?? 'SIGKILL');
    });
  }).finally(() => {
    process.off('exit', kill);
    signal?.removeEventListener('abort', kill);
  });

  return {
    pid: child.pid ?? 0,
    log: () => log,
    exited,
    async stop() {
      kill();
      await exited;
    },
  };
}

/** Runs a program until it ends. */
export async function run(
  path: string,
  args: readonly string[],
  options: ProcessOptions & { readonly input?: string } = {},
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const { input = '', ...rest } = options;
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'pipe'], ...withoutUndefined(rest) });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  // A program that does not read its input may close it early.
  child.stdin.on('error', () => {}).end(input);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => resolve(status ?? 1));
  });
  return { code, stdout, stderr };
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}

/**
 * Polls until the answer is not undefined. Other programs do not announce that they are ready, so this is the only
 * place that polls. Fails with the program's log if the program has ended.
 */
export async function poll<T>(
  what: string,
  ask: () => Promise<T | undefined>,
  options: {
    readonly process?: RunningProcess;
    readonly signal?: AbortSignal | undefined;
    readonly timeoutMs?: number;
  } = {},
): Promise<T> {
  const { process: watched, signal, timeoutMs = 30_000 } = options;
  let ended: number | NodeJS.Signals | undefined;
  void watched?.exited.then((code) => (ended = code));
  const start = performance.now();
  for (;;) {
    signal?.throwIfAborted();
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (ended !== undefined) throw new Error(`${what}: ended with ${ended}\n${watched?.log()}`);
    if (performance.now() - start > timeoutMs) {
      throw new Error(`${what}: not within ${timeoutMs} ms\n${watched?.log() ?? ''}`);
    }
    await delay(20);
  }
}
