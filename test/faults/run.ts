import { setTimeout as delay } from 'node:timers/promises';
import { randomOf } from '../soak/random.ts';
import { poll } from '../peers/process.ts';
import { type Fault, type FaultName, FAULTS } from './api-way.ts';
import { Lab, type Member, memoryOf, PATIENCE_MS } from './lab.ts';
import { type Episode, schedule } from './schedule.ts';

export interface FaultsOptions {
  readonly seed: number;
  readonly services: number;
  /** Each has every fault once. */
  readonly rounds: number;
}

export interface FaultsReport {
  readonly changes: number;
  readonly requests: number;
  /** Requests that did not get 200, with the faults of the time. */
  readonly failures: readonly string[];
  readonly usurpations: readonly string[];
  /** How often each fault hit something. */
  readonly hits: Readonly<Record<string, number>>;
  /** Of one replica to the API server, at one time. */
  readonly mostConnections: number;
  /** Of one replica at the end, in bytes. */
  readonly memory: number;
}

/** What a run needs. */
export const PEERS = ['envoy', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'] as const;

/** What one replica may use. A watch has a connection of its own. */
export const BOUNDS = { connections: 100, memoryMiB: 400 } as const;

/** What happens at least while a fault lasts, however slow the machine is. */
export const DURING_A_FAULT = { changes: 1, requests: 20 } as const;

/** Between two changes. Milliseconds. */
const PAUSE = { least: 30, more: 200 };

/**
 * Everything goes wrong between the replicas and the API server, while objects change. Settles when everything is as it
 * should be after that; rejects if it never is.
 */
export async function runFaults({ seed, services, rounds }: FaultsOptions): Promise<FaultsReport> {
  const random = randomOf(seed);
  const lab = await Lab.start({ services, random });
  try {
    const told: string[] = [];
    let isOver = false;
    let changes = 0;
    const changing = (async () => {
      for (; !isOver; changes++) {
        const what = await lab.shop.change();
        told.push(`${new Date().toISOString()} ${what}`);
        await delay(PAUSE.least + random() * PAUSE.more);
      }
    })();
    const progress = (): Progress => ({ changes, requests: lab.load.requests });
    for (const episode of schedule(rounds, random)) {
      const { replicas, faults } = episode;
      told.push(`${new Date().toISOString()} ${replicas.join()}: ${faults.map(printFault).join('; ')}`);
      await play(episode, lab.members, progress);
    }
    isOver = true;
    await changing;
    for (const { way } of lab.members) way.mend();
    await lab.settled();
    await lab.load.stop();
    const hits = Object.fromEntries(FAULTS.map((name) => [name, hitsOf(name, lab.members)]));
    const { requests, failures } = lab.load;
    return {
      ...{ changes, requests, hits },
      failures: failures.map((failure) => [failure, ...before(told, failure)].join('\n')),
      usurpations: lab.usurpations(),
      mostConnections: Math.max(...lab.members.map(({ way }) => way.mostConnections)),
      memory: Math.max(...(await Promise.all(lab.members.map(memoryOf)))),
    };
  } finally {
    await lab.stop();
  }
}

type Progress = Readonly<Record<keyof typeof DURING_A_FAULT, number>>;

/** The pause after an episode is an episode without faults. */
async function play(
  { faults, replicas, ms }: Episode,
  members: readonly Member[],
  progress: () => Progress,
): Promise<void> {
  const [main] = faults;
  const before = main === undefined ? -1 : hitsOf(main.name, members);
  const { changes, requests } = progress();
  const setTo = (now: readonly Fault[]): void => {
    for (const [number, member] of members.entries()) member.way.set(replicas.includes(number) ? now : []);
  };
  setTo(faults);
  await delay(ms);
  const hasHit = (): boolean => main === undefined || hitsOf(main.name, members) > before;
  // Watches that nothing ends ask for nothing.
  if (!hasHit()) setTo([...faults, { name: 'gone' }]);
  const hasMoved = (): boolean => {
    const now = progress();
    return now.changes >= changes + DURING_A_FAULT.changes && now.requests >= requests + DURING_A_FAULT.requests;
  };
  await poll(
    `${main?.name ?? 'no fault'}: hits something, while objects change and requests are answered`,
    () => Promise.resolve((hasHit() && hasMoved()) || undefined),
    { timeoutMs: PATIENCE_MS },
  );
}

function hitsOf(name: FaultName, members: readonly Member[]): number {
  return members.reduce((sum, { way }) => sum + (way.hits.get(name) ?? 0), 0);
}

function printFault({ name, of }: Fault): string {
  return of === undefined ? name : `${name} (${[...of].join(', ')})`;
}

/** Told with a failure. */
const TOLD = 12;

/** Lines begin with times. */
function before(told: readonly string[], failure: string): readonly string[] {
  return told
    .filter((line) => line < failure)
    .slice(-TOLD)
    .map((line) => `  ${line}`);
}
