import { parseObjectKey, printRef } from '../api/object.ts';
import type { Draft, Write } from '../cache/graph.ts';
import type { ConnectedProxy } from '../ads/types.ts';
import type { Members } from '../mesh/resources/members.ts';

/** Enough for what happened in the last minutes. */
const MOST_COMMITS = 200;
/** The same for the causes and the resources of one commit; all are counted. */
const MOST_NAMES = 20;
/** Characters of a name. */
const LONGEST = 200;

/** What one commit did. */
export interface CommitRecord {
  readonly number: number;
  readonly at: Date;
  /** From the first change to publication, and the part of it that was computation. Milliseconds. */
  delay?: number;
  work?: number;
  /** How many inputs were written. */
  readonly writes: number;
  /** Some of the inputs that changed a resource, objects as `kind/namespace/name`. */
  readonly causes: readonly string[];
  /** How many resources changed, were added or were removed. */
  readonly resources: number;
  /** Size of all of them. */
  readonly bytes: number;
  /** Some of their names, each after its type; with `-` if removed. */
  readonly names: readonly string[];
}

/** The last commits, in bounded memory. */
export class CommitLog {
  readonly #members: readonly Members[];
  readonly #date: () => Date;
  #records: CommitRecord[] = [];

  constructor(members: readonly Members[], date: () => Date) {
    this.#members = members;
    this.#date = date;
  }

  /** @param number of the commit. */
  published(draft: Draft, number: number): void {
    const causes = new Set<string>();
    const names: string[] = [];
    let [resources, bytes] = [0, 0];
    for (const collection of this.#members)
      for (const change of draft.changes(collection)) {
        const { resource } = (change.after ?? change.before)!;
        resources++;
        bytes += change.after?.resource.body.length ?? 0;
        const type = resource.typeUrl.slice(resource.typeUrl.lastIndexOf('.') + 1);
        if (names.length < MOST_NAMES) names.push(cut(`${change.after ? '' : '-'}${type} ${resource.name}`));
        if (causes.size >= MOST_NAMES) continue;
        for (const write of draft.causesOf(change.causes)) causes.add(cut(printWrite(write)));
      }
    const { length } = draft.writes;
    const kept = [...causes].slice(0, MOST_NAMES);
    this.#records.push({ number, at: this.#date(), writes: length, causes: kept, resources, bytes, names });
    // Cut now and then: each costs as much as all that are kept.
    if (this.#records.length >= 2 * MOST_COMMITS) this.#records = this.#records.slice(-MOST_COMMITS);
  }

  /** The commit just published is complete. */
  measured(delay: number, work: number): void {
    const rounded = (ms: number): number => Math.round(ms * 10) / 10;
    Object.assign(this.#records.at(-1) ?? {}, { delay: rounded(delay), work: rounded(work) });
  }

  /** The newest first. */
  get newest(): readonly CommitRecord[] {
    return this.#records.slice(-MOST_COMMITS).reverse();
  }
}

function printWrite({ input, key, value }: Write): string {
  const [, kind] = /^objects\.(.*)$/.exec(input.name) ?? [];
  if (kind !== undefined) return printRef({ kind, ...parseObjectKey(key) });
  const proxy = input.name === 'proxies' ? (value as ConnectedProxy | undefined)?.nodeId : undefined;
  return `${input.name} ${proxy ?? key}`.trim();
}

function cut(name: string): string {
  return name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name;
}
