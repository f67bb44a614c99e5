import { parentPort, workerData } from 'node:worker_threads';
import { setTimeout as delay } from 'node:timers/promises';
import { randomOf } from '../soak/random.ts';
import { startBackends } from './backends.ts';
import { Client } from './clients.ts';
import type { Flow, Ports } from './world.ts';

/**
 * The outside world, in a thread of its own so that it never waits for the server: back ends, and clients that send
 * requests without pause.
 */

export interface LoadOptions {
  readonly ports: Ports;
  readonly seed: number;
}

export type Order =
  /** These flows, and no others, run from now on; `done` when what was under way in others has ended. */
  | { readonly do: 'run'; readonly id: number; readonly flows: readonly Flow[] }
  /** One request on a new connection; answers with what it got. */
  | { readonly do: 'ask'; readonly id: number; readonly flow: Flow };

export type Report =
  | { readonly is: 'done'; readonly id: number; readonly answer: string }
  | {
      readonly is: 'failure';
      readonly at: number;
      readonly since: number;
      readonly flow: string;
      readonly what: string;
    }
  | { readonly is: 'counts'; readonly counts: Readonly<Record<string, number>> };

/** Clients of one flow. */
const CLIENTS = 2;
/** Between two requests of a client. Milliseconds. */
const PAUSE = { least: 1, more: 12 };
/** How often counts are reported. Milliseconds. */
const COUNT_MS = 50;

const { ports, seed } = workerData as LoadOptions;
const random = randomOf(seed);
const counts: Record<string, number> = {};
const running = new Map<string, { stop(): Promise<void> }>();

const report = (message: Report): void => parentPort!.postMessage(message);

function start(flow: Flow): { stop(): Promise<void> } {
  let stopped = false;
  const kind = `${flow.protocol}${flow.tls ? ' over TLS' : ''}, ${flow.fresh ? 'new' : 'kept'} connections`;
  const loop = async (): Promise<void> => {
    const client = new Client(flow);
    while (!stopped) {
      const since = Date.now();
      const answer = await client.ask();
      counts[kind] = (counts[kind] ?? 0) + 1;
      if (!answer.startsWith('200 ')) report({ is: 'failure', at: Date.now(), since, flow: flow.id, what: answer });
      await delay(PAUSE.least + random() * PAUSE.more);
    }
    client.close();
  };
  const loops = Array.from({ length: CLIENTS }, loop);
  return {
    async stop() {
      stopped = true;
      await Promise.all(loops);
    },
  };
}

async function obey(order: Order): Promise<string> {
  if (order.do === 'ask') {
    const client = new Client({ ...order.flow, fresh: true });
    const answer = await client.ask();
    client.close();
    return answer;
  }
  const wanted = new Map(order.flows.map((flow) => [flow.id, flow]));
  const gone = [...running].filter(([id]) => !wanted.has(id));
  for (const [id] of gone) running.delete(id);
  for (const [id, flow] of wanted) if (!running.has(id)) running.set(id, start(flow));
  await Promise.all(gone.map(([, each]) => each.stop()));
  return '';
}

await startBackends(ports, random);
setInterval(() => report({ is: 'counts', counts }), COUNT_MS);
parentPort!.on('message', (order: Order) => {
  void obey(order).then((answer) => {
    // With the answer, so that nothing that it counts is missing.
    report({ is: 'counts', counts });
    report({ is: 'done', id: order.id, answer });
  });
});
report({ is: 'done', id: 0, answer: '' });
