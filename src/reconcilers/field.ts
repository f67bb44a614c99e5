import { quote } from '../api/quote.ts';
import { isObject } from '../api/json.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Problem, ProblemReason } from '../api/problem.ts';
import { ProblemList } from '../api/problem-list.ts';
import { parseDuration } from './durations.ts';

/** A tenth of a second. */
const mostWork = 80_000;

/** Problems found while reading one object. */
export class Findings {
  readonly found = new ProblemList();
  private refused = 0;
  private work = 0;
  readonly object: ObjectRef;

  constructor(object: ObjectRef) {
    this.object = object;
  }

  get problems(): readonly Problem[] {
    return this.found.all;
  }

  /** Whether a finding makes it impossible to serve the object as its owner meant it. */
  get invalid(): boolean {
    return this.refused > 0;
  }

  /** How many values cannot be read or used, reported or not. */
  get invalidValues(): number {
    return this.refused;
  }

  /**
   * Whether the object may use this much more work, in units of 1 to 2 µs. Reading is one step of a commit and blocks
   * everything else, so it must be short whatever an object contains.
   */
  spend(work: number): boolean {
    this.work += work;
    return this.work <= mostWork;
  }

  /** Unsupported fields come from their list, and readers do not report them. */
  report(field: string, reason: Exclude<ProblemReason, 'UnsupportedField'>, message: string): void {
    if (reason === 'Invalid') this.refused++;
    this.found.add({ object: this.object, field, reason, message });
  }
}

/**
 * A value in an object's JSON, with its path. Reading it as the wrong type is a finding, and returns the default:
 * reading always continues, so that an owner learns of everything at once. `null` counts as absent, as for the API
 * server.
 */
export class Field {
  readonly value: unknown;
  readonly findings: Findings;
  private readonly parent: Field | undefined;
  /** A name, a list index, or a map key in brackets. Becomes text only if the path is needed. */
  private readonly step: string | number;

  constructor(value: unknown, step: string | number, findings: Findings, parent?: Field) {
    this.value = value;
    this.step = step;
    this.findings = findings;
    this.parent = parent;
  }

  /** `spec.http[0].route[1].destination` */
  get path(): string {
    const { parent, step } = this;
    if (typeof step === 'number') return `${parent?.path}[${step}]`;
    if (parent === undefined) return step;
    return step.startsWith('[') ? parent.path + step : `${parent.path}.${step}`;
  }

  /** Reports a problem with this value. */
  invalid(message: string): void {
    this.findings.report(this.path, 'Invalid', message);
  }

  get isSet(): boolean {
    return this.value !== undefined && this.value !== null;
  }

  /** A member of an object; absent if this is not an object. */
  get(name: string): Field {
    const value = this.value;
    // Own members only: `__proto__` and `constructor` are not fields.
    const member = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    return new Field(member, name, this.findings, this);
  }

  /** Reports a value that is neither absent nor an object. */
  expectObject(): this {
    if (this.isSet && !isObject(this.value)) this.invalid('must be an object.');
    return this;
  }

  string(fallback = ''): string {
    if (!this.isSet) return fallback;
    if (typeof this.value !== 'string') {
      this.invalid('must be a string.');
      return fallback;
    }
    if (!this.value.isWellFormed()) {
      this.invalid('has an unpaired UTF-16 surrogate; use valid Unicode.');
      return fallback;
    }
    return this.value;
  }

  boolean(): boolean | undefined {
    if (!this.isSet) return undefined;
    if (typeof this.value === 'boolean') return this.value;
    this.invalid('must be true or false.');
    return undefined;
  }

  number(): number | undefined {
    if (!this.isSet) return undefined;
    if (typeof this.value === 'number' && Number.isFinite(this.value)) return this.value;
    this.invalid('must be a number.');
    return undefined;
  }

  integer(min: number, max: number): number | undefined {
    const value = this.number();
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    this.invalid(`must be a whole number from ${min} to ${max}, not ${value}.`);
    return undefined;
  }

  /** Milliseconds. */
  duration(): number | undefined {
    if (!this.isSet) return undefined;
    const text = this.string();
    const ms = parseDuration(text);
    if (ms === undefined) this.invalid(`${quote(text)} is not a duration such as 1.5s, 200ms or 1h.`);
    return ms;
  }

  /** One of the names; the first if absent. */
  oneOf<Name extends string>(...names: readonly [Name, ...Name[]]): Name {
    const text = this.string(names[0]);
    const found = names.find((name) => name === text);
    if (found === undefined) this.invalid(`${quote(text)} is not one of ${names.join(', ')}.`);
    return found ?? names[0];
  }

  list(): Field[] {
    if (!this.isSet) return [];
    if (!Array.isArray(this.value)) {
      this.invalid('must be a list.');
      return [];
    }
    return this.value.map((value: unknown, index) => new Field(value, index, this.findings, this));
  }

  /** Elements of a list of objects. A null element is a finding. */
  objects(): Field[] {
    return this.list().filter((element) => {
      if (isObject(element.value)) return true;
      element.invalid('must be an object.');
      return false;
    });
  }

  strings(): string[] {
    return this.list().map((element) => {
      if (!element.isSet) element.invalid('must be a string.');
      return element.string();
    });
  }

  /** Members of a map, sorted by key. */
  entries(): [string, Field][] {
    if (!this.isSet) return [];
    const value = this.value;
    if (!isObject(value)) {
      this.invalid('must be an object.');
      return [];
    }
    const found: [string, Field][] = [];
    for (const key of Object.keys(value).sort()) {
      const field = new Field(value[key], `[${quote(key)}]`, this.findings, this);
      if (key.isWellFormed()) found.push([key, field]);
      else field.invalid('has a name with an unpaired UTF-16 surrogate; use valid Unicode.');
    }
    return found;
  }

  /** A map of strings. */
  stringMap(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.entries().map(([key, field]) => [key, field.string()]));
  }
}
