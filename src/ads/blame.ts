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
  const { inFlight, ledger } = subscription;
  const delivered = new Map<string, { item: Served; prior: Held }>();
  for (const sent of refused) {
    for (const item of itemsOf(sent)) {
      // State of the world repeats what the client has.
      if (sent.prior?.has(item.name) === false) continue;
      delivered.set(item.name, { item, prior: (delivered.get(item.name) ?? { prior: priorOf(sent, item) }).prior });
    }
    if (sent.trial) subscription.trial?.answered();
    for (const name of sent.removed) ledger.ask(name, sent.prior?.get(name));
  }
  const about = refused.at(-1)?.nonce ?? 0;
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
    // A later response that is still on its way carries the name: its answer decides, unless it has the same bytes.
    inFlight.amend(name, prior);
    const later = inFlight.last(name);
    if (pinned && suspected.has(name)) {
      const takenBack = ledger.refusals?.doubts(name) === true && ledger.refusals.forbids(name, item.version);
      ledger.refuse(name, {
        version: item.version,
        held: prior,
        now,
        about,
        after: inFlight.sentNonce,
        doubted: false,
      });
      culprits.push(item);
      if (versionOf(ledger.kept?.get(name)) === item.version) {
        ledger.unkeep(name);
        if (prior !== undefined) ledger.keep(name, prior);
      }
      if (takenBack || (later !== undefined && later.version !== item.version)) continue;
      // A refused cluster may warm for ever and hold every answer back; behind a changed one a refused assignment
      // empties it. So the client is given back what it had, or is told to forget the name. And one that has nothing
      // yet must not wait for ever: it is told that there is nothing.
      if (prior === undefined && subscription.type.whenAbsent !== undefined) ledger.ask(name, undefined);
      else ledger.owe(name, subscription.reinstates ? item : prior);
    } else if (later === undefined) {
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
