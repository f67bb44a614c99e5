import { readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { type Clock, sleep } from '../../base/clock.ts';
import { readText } from '../certificate/files.ts';
import type { AgentLog } from '../log.ts';
import { removeFile } from '../machine.ts';
import { AgentConfigError } from '../settings/config-fields.ts';

/** An Envoy as it is remembered, so that it is recognized although its number may since be another's. */
interface Remembered {
  readonly pid: number;
  /** Of this boot; see proc_pid_stat(5), `starttime`. */
  readonly started: string;
  readonly executable: string;
  /** The process that started it. */
  readonly agent: number;
}

/** Writes down which Envoy this agent runs. Where there is no /proc, nothing. */
export function rememberEnvoy(file: string, pid: number, log: AgentLog): void {
  const found = look(pid);
  if (found === undefined) return;
  const { started, executable, parent } = found;
  try {
    writeFileSync(file, JSON.stringify({ pid, started, executable, agent: parent } satisfies Remembered), {
      flush: true,
    });
  } catch (error) {
    log.warn('If this agent is killed, its Envoy has to be ended by hand', { pid, reason: String(error) });
  }
}

/** Milliseconds between looks, and how many looks there are before the next Envoy starts anyway. */
const [EVERY, MOST] = [50, 100];

export interface FormerEnvoyOptions {
  readonly clock: Clock;
  readonly log: AgentLog;
  readonly signal: AbortSignal;
}

/**
 * Ends the Envoy of an agent that was killed: it would have the ports of the next one, and nobody renews its certificate.
 * Ends no process that is not that Envoy. Throws {@link AgentConfigError} if its agent is still there.
 */
export async function endFormerEnvoy(file: string, { clock, log, signal }: FormerEnvoyOptions): Promise<void> {
  const former = read(file);
  if (former === undefined) return;
  const { pid } = former;
  const isThere = (): boolean => {
    const found = look(pid);
    return found !== undefined && found.started === former.started && found.executable === former.executable;
  };
  if (isThere()) {
    // An orphan has another parent.
    if (look(pid)?.parent === former.agent)
      throw new AgentConfigError(
        `the agent with pid ${former.agent} runs an Envoy from the same directory; end it first`,
      );
    log.warn('Ending the Envoy of an agent that was killed', { pid });
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      log.warn('It cannot be ended', { pid, reason: String(error) });
    }
    for (let look = 0; look < MOST && isThere(); look++) await sleep(clock, EVERY, { signal });
  }
  removeFile(file);
}

function read(file: string): Remembered | undefined {
  try {
    const value = JSON.parse(readText(file) ?? '') as Partial<Remembered> | null;
    const { pid, started, executable, agent } = value ?? {};
    // Any other number would be a group of processes, or this one.
    return Number.isInteger(pid) && pid! > 1 && typeof started === 'string' && typeof executable === 'string'
      ? { pid: pid!, started, executable, agent: Number(agent) }
      : undefined;
  } catch {
    return undefined;
  }
}

/** What the system says of a process, or undefined if it has ended, or there is no /proc. */
function look(
  pid: number,
): { readonly started: string; readonly executable: string; readonly parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Its name, which may contain anything, is in parentheses.
    const [state = '', parent = '', ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    // A new version may have taken its place on disk.
    const executable = readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, '');
    return { started: `${boot} ${rest[17] ?? ''}`, executable, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
