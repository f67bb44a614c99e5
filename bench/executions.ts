import { Session } from 'node:inspector/promises';
import { setFlagsFromString } from 'node:v8';

/** How often blocks of our code are executed, by what they are part of: V8 counts it. The same on every machine. */
export class Executions {
  readonly #session = new Session();

  async start(): Promise<void> {
    // Optimized code is not counted in full, and what was counted of a function goes with its bytecode.
    for (const flag of ['opt', 'maglev', 'sparkplug', 'flush-bytecode']) setFlagsFromString(`--no-${flag}`);
    this.#session.connect();
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Since the last call. */
  async take(): Promise<{ graph: number; ads: number }> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    const calls = { graph: 0, ads: 0 };
    for (const { url, functions } of result) {
      if (!url.includes('/src/') || url.includes('/node_modules/')) continue;
      const part = url.includes('/src/ads/') ? 'ads' : 'graph';
      for (const { ranges } of functions) for (const { count } of ranges) calls[part] += count;
    }
    return calls;
  }
}
