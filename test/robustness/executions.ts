import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

/** How often each piece of code was executed, by where it is. */
export type Executed = ReadonlyMap<string, number>;

/** Counts what this process executes: blocks of code, and the elements that built-in functions go through. */
export class Executions {
  readonly #session = new Session();
  readonly #elements = new Map<string, number>();
  readonly #sources = new Map<string, string>();

  async start(): Promise<void> {
    // Optimized code is not counted in full, and what was counted of a function goes with its bytecode.
    for (const flag of ['opt', 'maglev', 'sparkplug', 'flush-bytecode']) setFlagsFromString(`--no-${flag}`);
    this.#session.connect();
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    this.#countElements();
  }

  /** Since the last call. */
  async take(): Promise<Executed> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    const executed = new Map(this.#elements);
    this.#elements.clear();
    for (const { url, scriptId, functions } of result) {
      if (url.startsWith('node:') || url === import.meta.url) continue;
      for (const { functionName, ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges) {
          if (count === 0) continue;
          const key = `${url || scriptId}|${startOffset}|${endOffset}|${functionName}`;
          executed.set(key, (executed.get(key) ?? 0) + count);
        }
    }
    return executed;
  }

  /** For people. */
  describe(key: string): string {
    const [url = '', start = '', , name = ''] = key.split('|');
    if (!url.startsWith('file:')) return key;
    let source = this.#sources.get(url);
    if (source === undefined) this.#sources.set(url, (source = readFileSync(fileURLToPath(url), 'utf8')));
    const file = /(?:src|node_modules)\/.*/.exec(url)?.[0] ?? url;
    return `${file}:${source.slice(0, Number(start)).split('\n').length} ${name}`;
  }

  /** Built-in functions have no blocks. Those with callbacks are counted as calls of these. */
  #countElements(): void {
    const count = (name: string, elements: number): void => {
      this.#elements.set(name, (this.#elements.get(name) ?? 0) + elements);
    };
    const wrap = (
      owner: object,
      name: PropertyKey,
      label: string,
      elementsOf: (self: never, result: never, argument: unknown) => number,
    ): void => {
      const original = Reflect.get(owner, name) as (...args: unknown[]) => unknown;
      Object.defineProperty(owner, name, {
        configurable: true,
        writable: true,
        value: function (this: never, ...args: unknown[]) {
          const result = original.apply(this, args);
          const elements = elementsOf(this, result as never, args[0]);
          count(
            elements < 50
              ? label
              : `${label} ${/(?:src|node_modules)\/[^)]*/.exec(new Error().stack!.split('\n')[2]!)?.[0]}`,
            elements,
          );
          return result;
        },
      });
    };
    Error.stackTraceLimit = 4;
    const { indexOf } = Array.prototype;
    const whole = ({ length }: { readonly length: number }): number => length;
    const found = ({ length }: readonly unknown[], at: number): number => (at < 0 ? length : at + 1);
    const result = (_: unknown, { length }: { readonly length: number }): number => length;
    wrap(Array.prototype, 'includes', 'Array includes', (list: readonly unknown[], _: never, element) =>
      found(list, indexOf.call(list, element)),
    );
    for (const name of ['join', 'reverse', 'toSorted', 'sort', 'shift', 'unshift'] as const)
      wrap(Array.prototype, name, `Array ${name}`, whole);
    for (const name of ['indexOf', 'lastIndexOf'] as const) wrap(Array.prototype, name, `Array ${name}`, found);
    for (const name of ['slice', 'concat', 'flat'] as const) wrap(Array.prototype, name, `Array ${name}`, result);
    for (const name of ['keys', 'values', 'entries'] as const) wrap(Object, name, `Object ${name}`, result);
    for (const [label, iterator] of [
      ['Array', [][Symbol.iterator]()],
      ['Set', new Set()[Symbol.iterator]()],
      ['Map', new Map()[Symbol.iterator]()],
    ] as const)
      wrap(Object.getPrototypeOf(iterator) as object, 'next', `${label} next`, () => 1);
  }
}
