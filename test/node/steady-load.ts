import { Pool } from 'undici';

export interface SteadyLoad {
  /** Requests answered with 200 so far. */
  answered(): number;
  /** Ends it; what was answered otherwise, or not at all: a sentence each, at most `MOST_FAILURES`. */
  stop(): Promise<readonly string[]>;
}

const MOST_FAILURES = 20;

/** Sends requests from several clients, one after the other each, over connections that are kept. */
export function startLoad(origin: string, clients: number, headers: Record<string, string> = {}): SteadyLoad {
  const pool = new Pool(origin, { connections: clients, headersTimeout: 10_000, bodyTimeout: 10_000 });
  const stopping = new AbortController();
  const failures: string[] = [];
  let answered = 0;
  const fail = (what: string): void => {
    if (failures.length < MOST_FAILURES) failures.push(`request ${answered}: ${what}`);
  };
  const send = async (): Promise<void> => {
    while (!stopping.signal.aborted && failures.length < MOST_FAILURES) {
      try {
        const { statusCode, body } = await pool.request({ method: 'GET', path: '/', headers });
        const text = await body.text();
        if (statusCode === 200) answered++;
        else fail(`${statusCode} ${text.slice(0, 200)}`);
      } catch (error) {
        fail(String(error));
      }
    }
  };
  const sending = Promise.all(Array.from({ length: clients }, send));
  return {
    answered: () => answered,
    async stop() {
      stopping.abort();
      await sending;
      await pool.destroy();
      return failures;
    },
  };
}
