import { type Json, isObject } from '../../api/json.ts';
import { parseDuration } from '../../reconcilers/durations.ts';

/** A mistake in what a user configured: where, and what to do about it. */
export class AgentConfigError extends Error {
  readonly code = 'CONFIG';
}

/** Of counts, and of durations in milliseconds: more than Envoy's flags, or timers here, can take. */
const LARGEST = 2 ** 31 - 1;

/** Reads members of an object. All of its methods throw {@link AgentConfigError} for a value of another type. */
export class Fields {
  /** With a dot at its end. */
  readonly #path: string;
  readonly #values: Json;

  constructor(values: Json, path = '') {
    this.#values = values;
    this.#path = path;
  }

  /** Of those that are there. */
  get names(): readonly string[] {
    return Object.keys(this.#values).filter((name) => this.#get(name) !== undefined);
  }

  has(name: string): boolean {
    return this.#get(name) !== undefined;
  }

  /** Without members if there is none. */
  in(name: string): Fields {
    const value = this.#get(name) ?? {};
    return isObject(value) ? new Fields(value, `${this.#path}${name}.`) : this.wrong(name, 'must be an object');
  }

  text(name: string): string {
    const value = this.#get(name) ?? '';
    return typeof value === 'string' ? value : this.wrong(name, 'must be a string');
  }

  flag(name: string): boolean {
    const value = this.#get(name) ?? false;
    return typeof value === 'boolean' ? value : this.wrong(name, 'must be true or false');
  }

  count(name: string, most = LARGEST): number | undefined {
    const value = this.#get(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
      return this.wrong(name, 'must be a whole number');
    return value <= most ? value : this.wrong(name, `must be at most ${most}`);
  }

  port(name: string): number | undefined {
    const port = this.count(name);
    return port === undefined || (port >= 1 && port <= 65_535) ? port : this.wrong(name, 'must be a port number');
  }

  /** Of a `host:port` or `[host]:port`. */
  address(name: string): Address | undefined {
    const text = this.text(name);
    if (text === '') return undefined;
    return parseAddress(text) ?? this.wrong(name, 'must be host:port, such as collector.monitoring:9411');
  }

  /** Milliseconds. */
  duration(name: string): number | undefined {
    const text = this.text(name);
    if (text === '') return undefined;
    const ms = parseDuration(text) ?? this.wrong(name, 'must be a duration, such as 5s');
    return ms <= LARGEST ? ms : this.wrong(name, 'must be at most 596h');
  }

  texts(name: string): Readonly<Record<string, string>> {
    const value = this.#get(name) ?? {};
    if (!isObject(value)) return this.wrong(name, 'must be a map of strings');
    const entries = Object.entries(value);
    // Istio takes what is written as a number or a boolean, too.
    return Object.fromEntries(
      entries.map(([key, each]) => [
        key,
        typeof each === 'object' ? this.wrong(`${name}.${key}`, 'must be a string') : String(each),
      ]),
    );
  }

  list(name: string): readonly string[] {
    const value = this.#get(name) ?? [];
    if (!Array.isArray(value) || !value.every((each) => typeof each === 'string'))
      return this.wrong(name, 'must be a list of strings');
    const empty = value.findIndex((each) => each.trim() === '');
    return empty < 0 ? value : this.wrong(`${name}[${empty}]`, 'must not be empty');
  }

  /** `null` is as if it were not there. */
  #get(name: string): unknown {
    return (Object.hasOwn(this.#values, name) ? this.#values[name] : undefined) ?? undefined;
  }

  /** For a value that only its reader can judge. */
  wrong(name: string, what: string): never {
    throw new AgentConfigError(`ProxyConfig ${this.#path}${name} ${what}`);
  }
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Undefined unless it is `host:port` or `[host]:port`. */
export function parseAddress(text: string): Address | undefined {
  const [, v6, name, digits = ''] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const [host, port] = [v6 ?? name, Number(digits)];
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}
