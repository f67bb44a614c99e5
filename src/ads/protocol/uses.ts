import { itemsOf } from './sent.ts';
import { type Held, type Names, type References, Served } from '../store/served.ts';
import type { Subscription } from './subscription.ts';

/** What a client may use of some names, by how long that may take. */
export interface UsesByTime {
  readonly lasting: Uses;
  /** Until an answer comes, or the wait for it ends. */
  readonly awaited: Uses;
}

/** Those of a stream's subscriptions that refer to others. */
export interface Referring {
  readonly referrers: readonly Subscription[];
  /** The client was connected before: it has listeners and tables, whether or not it has asked for them here. */
  readonly resumed: boolean;
  /** When what it has not asked for until now is what it does not have; 0 when it has asked for all. */
  readonly silentUntil: number;
}

/**
 * Which of these the client may use something of. Not by the tables and listeners of today's world, which name only
 * what is in it: so only those that deviate are looked at.
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
    for (const refused of ledger.refusals?.names() ?? []) lasting.add(ledger.refusals!.held(refused));
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

/** Which of the wanted names are in what was looked at. */
class Uses {
  readonly names = new Set<string>();
  /** Something was among it whose names are unknown. */
  all = false;
  readonly #references: References;
  readonly #wanted: Names;

  constructor(references: References, wanted: Names) {
    this.#references = references;
    this.#wanted = wanted;
  }

  add(held: Held): void {
    if (typeof held === 'string') this.all = true;
    if (!(held instanceof Served)) return;
    this.#references.find(held.resource.body, this.#wanted, (name) => {
      this.names.add(name);
      return false;
    });
  }
}
