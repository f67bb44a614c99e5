import { namesIn } from './refusals.ts';
import { halves, itemsOf, priorOf, type Sent, Trial } from './sent.ts';
import { type Held, type Served, versionOf } from './served.ts';
import type { Subscription } from './subscription.ts';

/**
 * A refused response counts as not delivered: Envoy applies the good clusters and listeners of it, but of assignments
 * and tables only some, and does not say which. All of it is owed again at once, but for the suspects: the names in
 * the message, else what the client did not hold before. Several nameless suspects are cut in halves and tried apart.
 *
 * Returns the resources that are to blame; their versions are not repeated. None: not known yet.
 */
export function blame(subscription: Subscription, refused: readonly Sent[], message: string, now: number): Served[] {
  const { ledger } = subscription;
  const delivered = new Map<string, { item: Served; prior: Held }>();
  for (const sent of refused) {
    for (const item of itemsOf(sent)) {
      delivered.set(item.name, { item, prior: (delivered.get(item.name) ?? { prior: priorOf(sent, item) }).prior });
    }
    if (sent.trial) subscription.trial?.answered();
    for (const name of sent.removed) ledger.ask(name, sent.prior?.get(name));
  }
  const mentioned = namesIn(message, delivered.keys());
  const fresh = [...delivered].filter(([, { item, prior }]) => item.version !== versionOf(prior)).map(([name]) => name);
  const suspects = mentioned.length > 0 ? mentioned : fresh.length > 0 ? fresh : [...delivered.keys()];
  const pinned = mentioned.length > 0 || suspects.length === 1;
  if (!pinned && subscription.wholeState && refused.some((sent) => sent.prior === undefined)) {
    // To leave out half of the state would delete what the client has. It keeps that until the state changes.
    return [];
  }

  const suspected = new Set(suspects);
  const culprits: Served[] = [];
  for (const [name, { item, prior }] of delivered) {
    if (pinned && suspected.has(name)) {
      const takenBack = ledger.refusals?.doubts(name) === true && ledger.refusals.forbids(name, item.version);
      ledger.refuse(name, item.version, prior, now);
      // A refused cluster may warm for ever and hold every answer back; behind a changed one a refused assignment
      // empties it. So the client is given back what it had, or is told to forget the name.
      if (!takenBack) ledger.owe(name, subscription.reinstates ? item : prior);
      culprits.push(item);
    } else if (!carriedLater(subscription, name, prior)) {
      if (ledger.refusals?.doubts(name) === true) ledger.refusals.forget(name);
      ledger.owe(name, prior);
      ledger.ask(name, prior);
    }
  }
  if (!pinned) {
    const innocent = [...delivered.keys()].filter((name) => !suspected.has(name));
    (subscription.trial ??= new Trial()).prepend([innocent, ...halves(suspects)]);
  }
  return culprits;
}

/** A later response that is still on its way carries the name: its answer decides. */
function carriedLater(subscription: Subscription, name: string, prior: Held): boolean {
  for (const sent of subscription.inFlight) {
    for (const item of itemsOf(sent)) {
      if (item.name !== name) continue;
      if (sent.prior !== undefined) sent.prior = new Map(sent.prior).set(name, prior);
      return true;
    }
  }
  return false;
}
