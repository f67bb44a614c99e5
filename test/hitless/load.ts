import { Worker } from 'node:worker_threads';
import type { LoadOptions, Order, Report } from './load-thread.ts';
import type { Flow } from './world.ts';

export type Failure = Omit<Extract<Report, { is: 'failure' }>, 'is'>;

type OrderOf<T> = T extends Order ? Omit<T, 'id'> : never;

/** The clients and back ends of a run, in another thread. */
export class Load {
  readonly #thread: Worker;
  readonly #waiting = new Map<number, { resolve(answer: string): void; reject(error: Error): void }>();
  #lastId = 0;
  /** What runs now. */
  flows: readonly Flow[] = [];
  readonly failures: Failure[] = [];
  requests: Readonly<Record<string, number>> = {};

  private constructor(options: LoadOptions) {
    this.#thread = new Worker(new URL('load-thread.ts', import.meta.url), { workerData: options });
    this.#thread.on('message', (report: Report) => this.#received(report));
    const failed = (error: Error): void => {
      for (const { reject } of this.#waiting.values()) reject(error);
    };
    this.#thread.on('error', failed).on('exit', () => failed(new Error('the load has ended')));
  }

  static async start(options: LoadOptions): Promise<Load> {
    const load = new Load(options);
    await load.#answer(0);
    return load;
  }

  /** Settles when what was under way in other flows has ended. */
  async run(flows: readonly Flow[]): Promise<void> {
    this.flows = flows;
    await this.#order({ do: 'run', flows });
  }

  /** What one request on a new connection gets. */
  ask(flow: Flow): Promise<string> {
    return this.#order({ do: 'ask', flow });
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  #order(order: OrderOf<Order>): Promise<string> {
    const id = ++this.#lastId;
    const answer = this.#answer(id);
    this.#thread.postMessage({ ...order, id } as Order);
    return answer;
  }

  #answer(id: number): Promise<string> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #received(report: Report): void {
    switch (report.is) {
      case 'failure':
        this.failures.push(report);
        return;
      case 'counts':
        this.requests = report.counts;
        return;
      case 'done':
        this.#waiting.get(report.id)?.resolve(report.answer);
        this.#waiting.delete(report.id);
    }
  }
}
