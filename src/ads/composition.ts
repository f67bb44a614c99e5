import { type Sent, UNSENT } from './sent.ts';
import { Batch, type Held, type Served, versionOf } from './served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from './world.ts';

/** Says which resources must not be sent yet. */
export type Blocked = ((item: Served) => boolean) | undefined;

const NOTHING_OWED: ReadonlyMap<string, Held> = new Map();

/** Names or delta: what is owed, no more. */
export function composeOwed(of: Subscription, view: WorldView, blocked: Blocked): Sent | undefined {
  if (of.all && blocked === undefined) return composeAll(of, view);
  // A wildcard is answered, whatever there is.
  let unanswered = of.all && of.wildcard;
  oweEach(of, view);
  const { ledger, type } = of;
  const { delta } = of.context;
  for (; ; unanswered = false) {
    const owed = ledger.pending ?? (unanswered ? NOTHING_OWED : undefined);
    if (owed === undefined) return undefined;
    const group = groupOf(of, owed);
    const items: Served[] = [];
    const removed: string[] = [];
    const rest = new Map<string, Held>();
    for (const [name, held] of owed) {
      if (group !== undefined && !group.has(name)) {
        rest.set(name, held);
        continue;
      }
      const present = view.resolve(type.typeUrl, name);
      const offer = ledger.offer(name, present);
      const must = ledger.asked?.has(name) === true || ledger.uncertain(name, present);
      if (offer !== undefined) {
        if (!must && offer.version === versionOf(held)) continue;
        if (blocked?.(offer) === true) rest.set(name, held);
        else items.push(offer);
      } else if (ledger.unknown(name, present)) {
        // There are no bytes to answer with; should it come back, it is sent though it may be what the client has.
        if (must) rest.set(name, held);
      } else if (type.whenAbsent !== undefined) {
        if (must) items.push(of.context.once(type.whenAbsent(name)));
      } else if (delta && (must || held !== undefined)) {
        removed.push(name);
      }
    }
    const prior = priorsOf(of, owed);
    for (const name of owed.keys()) if (!rest.has(name)) forgetRefusal(of, name, view);
    leave(of, rest);
    if (items.length > 0 || removed.length > 0 || unanswered) {
      const batches = items.length === 0 ? [] : [new Batch(items)];
      return { ...UNSENT, batches, removed, prior, trial: group !== undefined };
    }
    if (group === undefined) return undefined;
  }
}

/** Some of it may have to wait: everything is owed name by name. */
function oweEach(of: Subscription, view: WorldView): void {
  if (!of.all) return;
  of.all = false;
  const { batches, missing } = of.subscribed(view);
  for (const batch of batches) for (const { name } of batch.items) of.ledger.ask(name, of.before);
  for (const name of missing) if (of.ledger.kept?.has(name) !== true) of.ledger.ask(name, undefined);
}

/** Everything that is subscribed. */
function composeAll(of: Subscription, view: WorldView): Sent | undefined {
  const { ledger, type } = of;
  const { batches, missing } = of.subscribed(view);
  const given = ledger.deviates ? [new Batch(offersOf(of, batches, () => false))] : batches;
  const removed: string[] = [];
  const absent: Served[] = [];
  for (const name of missing) {
    if (ledger.kept?.has(name) === true) continue;
    if (type.whenAbsent !== undefined) absent.push(of.context.once(type.whenAbsent(name)));
    else if (of.context.delta) removed.push(name);
  }
  of.all = false;
  of.trial = undefined;
  leave(of, new Map());
  const all = absent.length === 0 ? given : [...given, new Batch(absent)];
  if (all.length === 0 && removed.length === 0 && !of.wildcard && !of.wholeState) return undefined;
  return { ...UNSENT, batches: all, removed, prior: undefined, trial: false };
}

/** State of the world where absence means removal: all of it, as soon as something in it is owed. */
export function composeState(of: Subscription, view: WorldView, blocked: Blocked): Sent | undefined {
  if (of.all && blocked === undefined) return composeAll(of, view);
  const first = of.all;
  oweEach(of, view);
  const { ledger } = of;
  for (;;) {
    const owed = ledger.pending ?? (first ? NOTHING_OWED : undefined);
    if (owed === undefined) return undefined;
    const group = groupOf(of, owed);
    const rest = new Map<string, Held>();
    const differing = new Map<string, Held>();
    for (const [name, held] of owed) {
      const present = view.resolve(of.type.typeUrl, name);
      const offer = ledger.offer(name, present);
      const must = ledger.asked?.has(name) === true || ledger.uncertain(name, present);
      if ((!must && offer?.version === versionOf(held)) || ledger.unknown(name, present)) continue;
      const withheld = group !== undefined ? !group.has(name) : offer !== undefined && blocked?.(offer) === true;
      (withheld ? rest : differing).set(name, held);
    }
    const prior = priorsOf(of, differing);
    for (const name of differing.keys()) forgetRefusal(of, name, view);
    leave(of, rest);
    if (prior.size > 0 || first) {
      const { batches } = of.subscribed(view);
      const plain = rest.size === 0 && !ledger.deviates;
      const given = plain ? batches : [new Batch(offersOf(of, batches, (name) => rest.has(name)))];
      return { ...UNSENT, batches: given, removed: [], prior: first ? undefined : prior, trial: group !== undefined };
    }
    if (group === undefined) return undefined;
  }
}

/** What this client is given in place of the world's own resources; withheld names stay as it holds them. */
function offersOf(of: Subscription, batches: readonly Batch[], withheld: (name: string) => boolean): Served[] {
  const { ledger } = of;
  const offers: Served[] = [];
  for (const batch of batches) {
    for (const item of batch.items) {
      const offer = withheld(item.name) ? ledger.pending?.get(item.name) : ledger.offer(item.name, item);
      if (typeof offer === 'object') offers.push(offer);
    }
  }
  for (const [name, held] of ledger.kept ?? []) if (of.has(name) && typeof held === 'object') offers.push(held);
  return offers;
}

function groupOf(of: Subscription, owed: ReadonlyMap<string, Held>): ReadonlySet<string> | undefined {
  const group = of.trial?.next(owed);
  if (group === undefined) of.trial = undefined;
  return group;
}

/** What the client goes back to if it refuses what it is sent now. */
function priorsOf({ ledger }: Subscription, owed: ReadonlyMap<string, Held>): ReadonlyMap<string, Held> {
  if (ledger.refusals === undefined) return owed;
  return new Map([...owed].map(([name, held]) => [name, ledger.uses(name, held)]));
}

/** A refusal is of no interest any more when the client was told that the name is gone. */
function forgetRefusal({ ledger, type }: Subscription, name: string, view: WorldView): void {
  if (ledger.refusals === undefined) return;
  if (ledger.uncertain(name, view.resolve(type.typeUrl, name))) ledger.refusals.forget(name);
}

/** Only these names stay owed. */
function leave({ ledger }: Subscription, rest: Map<string, Held>): void {
  ledger.pending = rest.size === 0 ? undefined : rest;
  if (ledger.asked === undefined) return;
  for (const name of ledger.asked) if (!rest.has(name)) ledger.asked.delete(name);
  if (ledger.asked.size === 0) ledger.asked = undefined;
}
