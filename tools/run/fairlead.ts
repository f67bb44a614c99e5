import { join } from 'node:path';
import { plainEnvironment, type RunningProcess, poll, startProcess } from '../../test/peers/process.ts';
import type { Ports } from './ports.ts';
import { RunError } from './run-error.ts';

/** Fairlead as a separate process, on a directory. */
export interface Fairlead extends Pick<RunningProcess, 'log' | 'exited' | 'stop'> {
  /** What each connected proxy has acknowledged, from `/debug/syncz`. */
  proxies(): Promise<readonly ProxyState[]>;
  /** What is wrong with the objects, from `/debug/problems`: one line each. */
  problems(): Promise<readonly string[]>;
  /** Warnings and errors since the last call: one line each. */
  complaints(): readonly string[];
}

export interface ProxyState {
  /** `name.namespace` */
  readonly name: string;
  readonly types: readonly TypeState[];
}

export interface TypeState {
  /** cluster, endpoint, listener or route */
  readonly name: string;
  /** Nonces of the latest response and of the latest accepted one; empty before the first. */
  readonly sent: string;
  readonly acked: string;
  /** Everything due to it was sent and acknowledged. */
  readonly synced: boolean;
  readonly rejected: readonly string[];
}

const ROOT = join(import.meta.dirname, '../..');

/** Ready to serve when it returns. Always call `stop`. */
export async function startFairlead(directory: string, ports: Ports, signal: AbortSignal): Promise<Fairlead> {
  const address = (port: number): string => `127.0.0.1:${port}`;
  const child = startProcess(
    process.execPath,
    [
      ...[join(ROOT, 'src/main.ts'), 'serve', '--directory', directory, '--log-format', 'json'],
      ...['--grpc-address', address(ports.xds), '--health-address', address(ports.health)],
      ...['--monitoring-address', address(ports.monitoring)],
    ],
    { signal, env: plainEnvironment() },
  );
  let seen = '';
  const health = `http://${address(ports.health)}`;
  try {
    await poll('Fairlead', () => fetch(`${health}/ready`).then(({ ok }) => ok || undefined, nothing), {
      process: child,
      signal,
    });
  } catch (cause) {
    await child.stop();
    throw new RunError(`Fairlead did not start:\n${child.log().trim()}`, { cause });
  }
  const debug = async <T>(page: string): Promise<readonly T[]> =>
    (await (await fetch(`${health}/debug/${page}`)).json()) as readonly T[];
  return {
    log: () => child.log(),
    exited: child.exited,
    stop: () => child.stop(),
    proxies: async () => (await debug<SyncState>('syncz')).map(readState).sort((a, b) => (a.name < b.name ? -1 : 1)),
    problems: async () =>
      (await debug<Problem>('problems')).map(
        ({ place, object, field, message }) => `${place ?? object}: ${field}: ${message}`,
      ),
    complaints() {
      const lines = child.log().split('\n').slice(0, -1);
      const fresh = lines.slice(lines.lastIndexOf(seen) + 1);
      seen = lines.at(-1) ?? '';
      return fresh.flatMap(readComplaint);
    },
  };
}

interface SyncState {
  readonly proxy: string;
  readonly resources: Readonly<
    Record<string, { sent: string; acked: string; synced: boolean; rejected: readonly string[] }>
  >;
}

interface Problem {
  readonly object: string;
  readonly place?: string;
  readonly field: string;
  readonly message: string;
}

/** In order of sending. */
const TYPES: Readonly<Record<string, string>> = {
  Cluster: 'cluster',
  ClusterLoadAssignment: 'endpoint',
  Listener: 'listener',
  RouteConfiguration: 'route',
};

function readState({ proxy, resources }: SyncState): ProxyState {
  const byName = new Map(Object.entries(resources).map(([url, state]) => [url.slice(url.lastIndexOf('.') + 1), state]));
  const types = Object.entries(TYPES).flatMap(([message, name]) => {
    const state = byName.get(message);
    return state === undefined ? [] : [{ name, ...state }];
  });
  return { name: proxy, types };
}

function readComplaint(text: string): string[] {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Node itself writes plain text.
    return text.trim() === '' ? [] : [text];
  }
  const { level, msg, time: _, place, object, field, problem, ...rest } = entry;
  if (level !== 'warn' && level !== 'error') return [];
  if (problem === undefined) return [`${String(msg)}: ${JSON.stringify({ object, ...rest })}`];
  return [[place, object, field, problem].filter((part) => part !== undefined).join(': ')];
}

function nothing(): undefined {
  return undefined;
}
