import { setTimeout as delay } from 'node:timers/promises';
import { poll } from '../../peers/process.ts';

/** One program that asks again and again, in one way. */
export interface Client {
  /** For messages. */
  readonly name: string;
  /** How many questions it has open at the same time. */
  readonly askers: number;
  /** Settles once there is the right answer; throws if the question is lost. */
  ask(asker: number): Promise<void>;
  close(): Promise<void>;
}

export interface Load {
  /** Settles once every asker has been answered so many times more. */
  more(times: number): Promise<void>;
  /** How many questions were lost so far. */
  lost(): number;
  /** Ends it, once open questions are answered; what was lost: a sentence each, at most `MOST_FAILURES`. */
  stop(): Promise<readonly string[]>;
}

/** After these, nobody asks any more. */
const MOST_FAILURES = 20;

/** Between an answer and the next question: the machine also has to run what is tested. */
const PAUSE_MS = 20;

/** The slowest answer takes three seconds. */
const LONGEST_WAIT_MS = 60_000;

export function startLoad(clients: readonly Client[]): Load {
  const stopping = new AbortController();
  const failures: string[] = [];
  const askers = clients.flatMap((client) =>
    Array.from({ length: client.askers }, (_, index) => ({ client, index, answered: 0 })),
  );
  const ended = (): boolean => stopping.signal.aborted || failures.length >= MOST_FAILURES;
  const sending = Promise.all(
    askers.map(async (asker) => {
      while (!ended()) {
        try {
          await asker.client.ask(asker.index);
          asker.answered++;
        } catch (error) {
          if (failures.length < MOST_FAILURES)
            failures.push(`${asker.client.name}, after ${asker.answered} answers: ${reasonOf(error)}`);
        }
        await delay(PAUSE_MS, undefined, { signal: stopping.signal }).catch(() => {});
      }
    }),
  );
  return {
    async more(times) {
      const until = askers.map((asker) => ({ asker, count: asker.answered + times }));
      await poll(
        'answers',
        () => Promise.resolve(ended() || until.every(({ asker, count }) => asker.answered >= count) || undefined),
        { timeoutMs: LONGEST_WAIT_MS },
      );
    },
    lost: () => failures.length,
    async stop() {
      stopping.abort();
      await sending;
      await Promise.all(clients.map((client) => client.close()));
      return failures;
    },
  };
}

/** With what led to it: clients of HTTP hide that a connection was closed. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message} (${reasonOf(error.cause)})`;
}
