import type { Earlier } from './earlier.ts';
import type { Changes, Former, List, Root } from './forest.ts';
import type { Served } from './served.ts';
import { findIn, type HoldersByName, type Sight } from './world.ts';

/** What a list had of a name, with a qualifier, before it changed. */
interface Noted {
  readonly list: List;
  readonly qualifier: string;
  readonly was: Served | undefined;
}

/**
 * What a root reached at one time. Lists go on changing; what they had of a name is noted when it changes, so that this
 * costs only pointers to the lists, and what has changed since.
 */
export class FormerRoot implements Former {
  readonly root: Root;
  readonly lists: ReadonlySet<List>;
  /** How many former worlds have this root. */
  users = 0;
  readonly #noted = new Map<string, Map<string, Noted[]>>();

  constructor(root: Root) {
    this.root = root;
    this.lists = new Set(root.lists.keys());
    for (const list of this.lists) (list.formers ??= new Set<Former>()).add(this);
  }

  /** One of its lists changed. For several changes, the first one's `was` counts. */
  note(list: List, changes: Changes): void {
    for (const [typeUrl, names] of changes) {
      let byName = this.#noted.get(typeUrl);
      if (byName === undefined) this.#noted.set(typeUrl, (byName = new Map<string, Noted[]>()));
      for (const [name, each] of names) {
        let noted = byName.get(name);
        if (noted === undefined) byName.set(name, (noted = []));
        for (const { qualifier, was } of each) {
          const known = noted.some((other) => other.list === list && other.qualifier === qualifier);
          if (!known) noted.push({ list, qualifier, was });
        }
      }
    }
  }

  /** Keyed by the names that have changed since. */
  changed(typeUrl: string): ReadonlyMap<string, unknown> {
    return this.#noted.get(typeUrl) ?? NOTHING;
  }

  resolve(typeUrl: string, name: string, qualifiers: readonly string[], holders: HoldersByName): Served | undefined {
    const noted = this.#noted.get(typeUrl)?.get(name);
    if (noted === undefined) return findIn(this.lists, holders, typeUrl, name, qualifiers);
    for (const list of new Set([...noted.map((each) => each.list), ...listsWith(holders, typeUrl, name)])) {
      if (!this.lists.has(list)) continue;
      for (const qualifier of ['', ...qualifiers]) {
        const change = noted.find((each) => each.list === list && each.qualifier === qualifier);
        const found = change === undefined ? list.exactly(typeUrl, name, qualifier) : change.was;
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  release(): void {
    if (--this.users > 0) return;
    for (const list of this.lists) {
      list.formers?.delete(this);
      if (list.formers?.size === 0) list.formers = undefined;
    }
  }
}

const NOTHING: ReadonlyMap<string, unknown> = new Map();

/** What streams saw when they were told to move to another world: what a client has until its stream's turn comes. */
export class FormerWorld implements Sight {
  /** How many streams remember it. */
  streams = 0;
  readonly roots: readonly FormerRoot[];
  readonly qualifiers: readonly string[];
  readonly excluded: ReadonlySet<string>;
  readonly holders: HoldersByName;

  constructor(roots: readonly FormerRoot[], { qualifiers, excluded }: Sight, holders: HoldersByName) {
    this.roots = roots;
    this.qualifiers = qualifiers;
    this.excluded = excluded;
    this.holders = holders;
  }

  hold(): this {
    if (this.streams++ === 0) for (const root of this.roots) root.users++;
    return this;
  }

  resolve(typeUrl: string, name: string, before?: Earlier): Served | undefined {
    if (this.excluded.has(name)) return undefined;
    for (const root of this.roots) {
      const former = before?.in(root.root, name);
      const found = former ? former.was : root.resolve(typeUrl, name, this.qualifiers, this.holders);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  release(): void {
    if (--this.streams === 0) for (const root of this.roots) root.release();
  }
}

function listsWith(holders: HoldersByName, typeUrl: string, name: string): Iterable<List> {
  const found = holders.get(typeUrl)?.get(name);
  return found === undefined ? [] : found instanceof Set ? (found as ReadonlySet<List>) : [found as List];
}
