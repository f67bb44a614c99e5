import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { AgentSettings } from '../settings/settings.ts';

export interface EnvoyOptions {
  readonly bootstrapFile: string;
  /** Of Envoy: `warning`, `info`, `debug`, ... */
  readonly level: string;
  /** `misc:error,rbac:debug`; empty: none. */
  readonly componentLevels: string;
  /** YAML that Envoy merges over its bootstrap; empty: none. */
  readonly override: string;
  /** Where its log goes. */
  readonly log: NodeJS.WritableStream;
}

/** How Envoy has ended. */
export interface EnvoyExit {
  /** As a shell has it: 128 and more if a signal has ended it. */
  readonly code: number;
  /** For a person: what it was, and what Envoy said last. */
  readonly reason: string;
}

/** A running Envoy. */
export interface EnvoyProcess {
  readonly pid: number | undefined;
  readonly exited: Promise<EnvoyExit>;
  kill(): void;
}

/** Of the end of its log. Characters. */
const KEPT = 4_096;

/** What ends the wait for whoever reads the log. */
const ENDS = ['drain', 'error', 'close'] as const;

/** Its standard output is ours: access logs pass without a detour. */
export function startEnvoy(settings: AgentSettings, options: EnvoyOptions): EnvoyProcess {
  const [{ paths, root }, { log }] = [settings, options];
  const child = spawn(paths.envoy, argumentsOf(settings, options), {
    cwd: root,
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let last = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    last = (last + chunk.toString()).slice(-KEPT);
    // Without a reader, Envoy goes on: it would wait for its log, and everybody for it.
    if (!log.writable || log.write(chunk)) return;
    child.stderr.pause();
    const resume = (): void => {
      for (const event of ENDS) log.off(event, resume);
      child.stderr.resume();
    };
    for (const event of ENDS) log.on(event, resume);
  });
  return {
    pid: child.pid,
    exited: exitOf(child, paths.envoy, () => last),
    kill: () => void child.kill('SIGKILL'),
  };
}

function exitOf(child: ChildProcess, program: string, last: () => string): Promise<EnvoyExit> {
  return new Promise((resolve) => {
    child.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      resolve({
        code: 127,
        reason: code === 'ENOENT' ? `there is no Envoy at ${program}` : `Envoy does not start: ${message}`,
      }),
    );
    // Not `exit`: its log may come after it.
    child.once('close', (code, signal) => {
      const said = lastLine(last());
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      resolve({
        code: code ?? 128 + (signal === null ? 0 : constants.signals[signal]),
        reason: `Envoy ended ${how}${code === 0 || said === '' ? '' : `: ${said}`}`,
      });
    });
  });
}

function argumentsOf({ proxy, env, pod }: AgentSettings, options: EnvoyOptions): readonly string[] {
  const isV6 = pod.addresses[0]?.includes(':') === true;
  const concurrency = proxy.concurrency ?? cpus(env['ISTIO_CPU_LIMIT'] ?? '');
  return [
    ...['-c', options.bootstrapFile, '--drain-time-s', String(Math.ceil(proxy.drainDuration / 1000))],
    // Who drains decides how gently: the agent, with `graceful`.
    ...['--drain-strategy', 'immediate', '--local-address-ip-version', isV6 ? 'v6' : 'v4'],
    ...['--file-flush-interval-msec', String(Math.max(1, Math.round(proxy.fileFlush.interval)))],
    ...(proxy.fileFlush.minSizeKb === undefined ? [] : ['--file-flush-min-size-kb', String(proxy.fileFlush.minSizeKb)]),
    '--disable-hot-restart',
    ...['-l', options.level],
    ...(options.componentLevels === '' ? [] : ['--component-log-level', options.componentLevels]),
    ...(env['ISTIO_META_ENVOY_SKIP_DEPRECATED_LOGS'] === 'false' ? [] : ['--skip-deprecated-logs']),
    ...(concurrency === undefined ? [] : ['--concurrency', String(concurrency)]),
    ...(options.override === '' ? [] : ['--config-yaml', options.override]),
  ];
}

/** A CPU limit, as the downward API has it with divisor 1: whole CPUs, rounded up. */
function cpus(text: string): number | undefined {
  return /^[1-9]\d{0,3}$/.test(text) ? Number(text) : undefined;
}

/** Without the time before it. */
function lastLine(log: string): string {
  const line = log.trimEnd().split('\n').at(-1)?.trim() ?? '';
  return line.replace(/^\[[^\]]*\](?:\[[^\]]*\])*\s*/, '');
}
