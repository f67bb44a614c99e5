import { NONE } from './ledger.ts';
import { itemsOf } from './sent.ts';
import { type Held, type Names, type References, Served } from '../store/served.ts';
import type { Subscription } from './subscription.ts';

/** What a client may use of some names, by how long it may do so. */
export interface UsesByTime {
  readonly lasting: Uses;
  /** Until an answer comes, or the wait for it ends. */
  readonly awaited: Uses;
}

/** The subscriptions of a stream that refer to others. */
export interface Referring {
  readonly referrers: readonly Subscription[];
  /** The client was connected before: it has listeners and tables, whether or not it has asked for them here. */
  readonly resumed: boolean;
  /** When to assume that the client lacks what it has not asked for; 0 if it has asked for everything. */
  readonly silentUntil: number;
}

/**
 * Which of these names the client may be using. Tables and listeners of the present world name only what is in it, so
 * only those that deviate are checked.
 */
export function usesOf(
  { referrers, resumed, silentUntil }: Referring,
  references: References,
  wanted: Names,
  now: number,
): UsesByTime {
  const lasting = new Uses(references, wanted);
  const awaited = new Uses(references, wanted);
  awaited.all = now < silentUntil;
  for (const { all, inFlight, ledger } of referrers) {
    for (const held of ledger.kept?.values() ?? []) lasting.add(held);
    for (const rejected of ledger.rejections?.names.keys() ?? []) lasting.add(ledger.rejections!.held(rejected));
    for (const items of ledger.partial?.values() ?? []) for (const item of items) lasting.add(item);
    if (all && (resumed || inFlight.sentNonce > 0)) awaited.all = true;
    for (const held of ledger.pending?.values() ?? []) awaited.add(held);
    for (const sent of inFlight) {
      if (sent.prior === undefined && resumed) awaited.all = true;
      for (const item of itemsOf(sent)) awaited.add(item);
      for (const held of sent.prior?.values() ?? []) awaited.add(held);
    }
  }
  return { lasting, awaited };
}

/** Which of the wanted names occur in what was checked. */
class Uses {
  #names: Set<string> | undefined;
  /** Something that was checked has unknown names. */
  all = false;
  readonly #references: References;
  readonly #wanted: Names;

  constructor(references: References, wanted: Names) {
    this.#references = references;
    this.#wanted = wanted;
  }

  get names(): Names {
    return this.#names ?? NONE;
  }

  add(held: Held): void {
    if (typeof held === 'string') this.all = true;
    if (!(held instanceof Served)) return;
    this.#references.find(held.resource.body, this.#wanted, (name) => {
      (this.#names ??= new Set()).add(name);
      return false;
    });
  }
}
