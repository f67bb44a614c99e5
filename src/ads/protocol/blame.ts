import { GONE, namesIn, shortMessage, UNKNOWN } from './rejections.ts';
import { halves, itemsOf, priorOf, type Sent } from './sent.ts';
import { type Held, type Served, versionOf } from '../store/served.ts';
import type { Subscription } from './subscription.ts';

/** Whether a rejection only repeats what was known when the response was sent. */
export function isTolerated(sent: Sent, message: string): boolean {
  if (sent.tolerated.size === 0) return false;
  const mentioned = namesIn(message, new Set([...itemsOf(sent)].map(({ name }) => name)));
  return mentioned.length > 0 && mentioned.every((name) => sent.tolerated.has(name));
}

/**
 * A rejected response counts as not delivered: Envoy applies its good clusters and listeners, but only some of its
 * assignments and tables, and does not say which. All of it is owed again at once, except the suspects: the names in
 * the message, or else what the client did not hold before. Several suspects that the message does not name are split
 * in halves and tried separately.
 *
 * Returns the resources that are to blame; their versions are not repeated. Empty if not known yet.
 */
export function blame(subscription: Subscription, rejected: readonly Sent[], message: string, now: number): Served[] {
  const { inFlight, ledger } = subscription;
  const delivered = new Map<string, { item: Served; prior: Held }>();
  const unchanged = new Map<string, Served>();
  for (const sent of rejected) {
    for (const item of itemsOf(sent)) {
      // Given up meanwhile, or known to be rejected.
      if (!subscription.interest.has(item.name) || sent.tolerated.has(item.name)) continue;
      // State of the world repeats what the client has.
      if (sent.prior?.has(item.name) === false) unchanged.set(item.name, item);
      else
        delivered.set(item.name, { item, prior: (delivered.get(item.name) ?? { prior: priorOf(sent, item) }).prior });
    }
    if (sent.trial !== undefined) subscription.trial?.answered(sent.trial);
  }
  const rejection = {
    now,
    about: rejected.at(-1)?.nonce ?? 0,
    after: inFlight.sentNonce,
    suspected: false,
    message: shortMessage(message),
  };
  for (const sent of rejected) {
    for (const name of sent.removed) {
      const prior = sent.prior?.get(name);
      if (!subscription.interest.has(name)) continue;
      if (delivered.size > 0) ledger.ask(name, prior);
      else ledger.reject(name, { ...rejection, version: GONE, held: prior });
    }
  }
  const hasNews = delivered.size > 0;
  const mentioned = namesIn(message, new Set([...delivered.keys(), ...unchanged.keys()]));
  for (const name of mentioned) {
    const item = unchanged.get(name);
    // Not the name as mentioned: that is a slice of the message, and would keep all of it in memory.
    if (item !== undefined && !delivered.has(name)) delivered.set(item.name, { item, prior: UNKNOWN });
  }
  const fresh = [...delivered].filter(([, { item, prior }]) => item.version !== versionOf(prior)).map(([name]) => name);
  const suspects = mentioned.length > 0 ? mentioned : fresh.length > 0 ? fresh : [...delivered.keys()];
  const suspected = new Set(suspects);
  const lone = suspects.length === 1;
  if (mentioned.length === 0 && subscription.wholeState && isIndivisible(subscription, rejected, delivered, lone)) {
    subscription.rejectWhole(now, rejection.message);
    return [];
  }
  if (subscription.wholeState && !hasNews) askForLeftOut(subscription, rejected);
  let pinned = mentioned.length > 0 || lone;
  if (!pinned && suspects.length > 0) {
    const trial = subscription.beginTrial();
    pinned = !trial.goOn();
    const innocent = [...delivered.keys()].filter((name) => !suspected.has(name));
    if (!pinned) trial.prepend([innocent, ...halves(suspects)]);
  }

  const culpable = pinned ? suspected : new Set<string>();
  const culprits: Served[] = [];
  inFlight.amend(new Map([...delivered].map(([name, { prior }]) => [name, prior])));
  for (const [name, { item, prior }] of delivered) {
    // A later response that is still on its way carries the name: its answer decides, unless it has the same bytes.
    const later = inFlight.last(name);
    if (culpable.has(name)) {
      const takenBack = ledger.rejections?.suspects(name, item.version) === true;
      ledger.reject(name, { ...rejection, version: item.version, held: prior });
      ledger.tookNot(name, item);
      culprits.push(item);
      if (versionOf(ledger.kept?.get(name)) === item.version) {
        ledger.unkeep(name);
        if (prior !== undefined) ledger.keep(name, prior);
      }
      if (takenBack || (later !== undefined && later.version !== item.version)) continue;
      // A rejected cluster may warm forever and block all answers, so the client gets its previous version back or is
      // told that the name is gone. A client that has nothing yet must not wait forever either: it is told that there
      // is nothing.
      if (prior === undefined && subscription.absent(name) !== undefined) ledger.ask(name, undefined);
      else ledger.owe(name, item);
    } else if (later === undefined) {
      if (ledger.rejections?.suspects(name, item.version) === true) ledger.rejections.forget(name);
      ledger.owe(name, prior);
      ledger.ask(name, prior);
      if (subscription.type.refersTo !== undefined) ledger.took(name, item);
    }
  }
  return culprits;
}

/** The client may still have what a rejected state left out: nothing else of that state is owed again. */
function askForLeftOut(subscription: Subscription, rejected: readonly Sent[]): void {
  for (const { batches, prior } of rejected) {
    for (const [name, held] of prior ?? []) {
      const isThere = batches.some((batch) => batch.get(name) !== undefined);
      if (!isThere && subscription.interest.has(name)) subscription.ledger.ask(name, held);
    }
  }
}

/**
 * Leaving out half of a state would delete what the client has; and what it rejects anyway, or may have rejected
 * before, says nothing about the rest. The client keeps what it has until the state changes, or is tried again.
 */
function isIndivisible(
  { wholeRejection }: Subscription,
  rejected: readonly Sent[],
  delivered: ReadonlyMap<string, { readonly prior: Held }>,
  lone: boolean,
): boolean {
  if (wholeRejection !== undefined || delivered.size === 0 || rejected.some(({ tolerated }) => tolerated.size > 0))
    return true;
  if (!lone && [...delivered.values()].some(({ prior }) => typeof prior === 'string')) return true;
  return rejected.some(({ prior, before }) => prior === undefined && (before !== undefined || !lone));
}
