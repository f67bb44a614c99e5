import { type CommonMarks, type Marks, NONE } from './ledger.ts';
import { itemsOf, type Piece, type Sent, UNSENT } from './sent.ts';
import { Batch, type Held, type Served, versionOf } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from '../store/world.ts';

/**
 * How many names that do not exist are answered in one response; the others follow when it is acknowledged. Each such
 * answer is made for one client alone, and costs about 10 µs.
 */
export const MAX_ABSENT = 4_096;

/** Says which resources must not be sent yet. */
export type Blocked = ((item: Served) => boolean) | undefined;

/** What either of them says. */
export function either(a: Blocked, b: Blocked): Blocked {
  if (a === undefined || b === undefined) return a ?? b;
  return (item) => a(item) || b(item);
}

/**
 * The next response of a subscription, if one is owed and may be sent now. The caller sets its nonce. Whatever
 * `blocked` returns true for stays owed, and so do names that do not exist while `keepsSilent`.
 */
export function take(
  of: Subscription,
  view: WorldView,
  now: number,
  blocked?: Blocked,
  keepsSilent = false,
): Sent | undefined {
  if (!of.owes || of.waits(now) || isYetToCome(of, view)) return undefined;
  const sent = compose(of, { view, blocked, maxAbsent: keepsSilent ? 0 : MAX_ABSENT });
  if (sent === undefined) return undefined;
  const { rejections } = of.ledger;
  if (rejections !== undefined) {
    for (const item of itemsOf(sent)) if (!sent.tolerated.has(item.name)) rejections.gave(item.name, item);
    for (const name of sent.removed) rejections.gave(name, undefined);
  }
  of.inFlight.add(sent);
  return sent;
}

/** What is computed on demand is there, or it is not: a client that connects again keeps what it has until then. */
function isYetToCome({ type, interest }: Subscription, view: WorldView): boolean {
  return type.onDemand === true && !interest.in(view).batches.some(({ items }) => items.length > 0);
}

/** What there is, and what of it may be sent. */
interface Supply {
  readonly view: WorldView;
  readonly blocked: Blocked;
  /** How many names that do not exist may be answered. */
  readonly maxAbsent: number;
}

function compose(of: Subscription, supply: Supply): Sent | undefined {
  const { view, blocked } = supply;
  if (of.all) return blocked === undefined ? composeAll(of, supply) : composeOwn(of, supply);
  const common = of.trial === undefined && !of.wholeState ? of.ledger.commonIn(of.context.shared()) : undefined;
  const extent = common && extentOf(of, view, blocked);
  if (extent === 'all') return undefined;
  return common !== undefined && extent === 'none' ? composeCommon(of, view, common) : composeOwn(of, supply);
}

/** How much of what is owed must not be sent yet. What does not exist any more may always be. */
function extentOf({ type, ledger }: Subscription, view: WorldView, blocked: Blocked): 'none' | 'some' | 'all' {
  if (blocked === undefined) return 'none';
  let free = 0;
  let held = 0;
  for (const name of ledger.pending?.keys() ?? []) {
    const present = view.resolve(type.typeUrl, name);
    if (present !== undefined && blocked(present)) held++;
    else free++;
    if (free > 0 && held > 0) return 'some';
  }
  return held === 0 ? 'none' : 'all';
}

function composeOwn(of: Subscription, supply: Supply): Sent | undefined {
  const { view, blocked, maxAbsent } = supply;
  const isPlain = blocked === undefined && maxAbsent > 0 && of.trial === undefined;
  const marks = isPlain ? manyMarksOf(of) : undefined;
  if (marks !== undefined) return composeAlike(of, view, marks);
  const first = of.all && (of.interest.wildcard || of.wholeState);
  oweEach(of, view);
  // Each piece of a rejected response is considered once; what is in no piece is sent when no piece can be.
  const pieces = of.trial?.owed(of.ledger.pending ?? NONE) ?? [];
  if (pieces.length === 0) of.endTrial();
  for (const piece of [...pieces, undefined]) {
    const only = (name: string): boolean => (piece === undefined ? of.trial?.has(name) !== true : piece.has(name));
    const what = { ...supply, piece, only, first: first && piece === undefined };
    const sent = of.wholeState ? composeState(of, what) : composeOwed(of, what);
    if (sent !== undefined) return sent;
  }
  if (!of.wholeState || of.trial === undefined || blocked !== undefined || !needsWhole(of)) return undefined;
  of.endTrial();
  return composeState(of, { ...supply, piece: undefined, only: () => true, first });
}

/** No piece can be sent alone: nobody has the bytes of the rest of what the client holds. */
function needsWhole({ ledger, inFlight }: Subscription): boolean {
  if (inFlight.size > 0) return false;
  return [...(ledger.pending ?? NONE)].some(([name, held]) => typeof ledger.goesBackTo(name, held) === 'string');
}

function manyMarksOf({ context, ledger }: Subscription): Marks | undefined {
  return (ledger.pending?.size ?? 0) >= context.shared().many ? ledger.marks : undefined;
}

/** The same names with the same content for all that share these marks. */
function composeCommon(of: Subscription, view: WorldView, common: CommonMarks): Sent | undefined {
  const kind = of.context.delta ? 'delta' : 'state of the world';
  let response = common.responses[kind];
  if (response === undefined) {
    const sent = composeOwed(of, wholeOf(view));
    common.responses[kind] = response = { sent, after: of.ledger.marks! };
  } else of.ledger.take(response.after);
  return response.sent && { ...response.sent };
}

/** What is owed to many streams alike is composed once. */
function composeAlike(of: Subscription, view: WorldView, { pending, kept, asked }: Marks): Sent | undefined {
  const { context, type, interest, ledger } = of;
  const kind = context.delta ? DELTA : STATE_OF_THE_WORLD;
  const what = wholeOf(view);
  const from = [kind, type, view, ...interest.key, pending, kept, asked] as const;
  const { sent, after } = context.shared().responses.of(from, () => {
    const first = of.wholeState ? composeState(of, what) : composeOwed(of, what);
    return { sent: first, after: ledger.marks! };
  });
  ledger.take(after);
  return sent && { ...sent };
}

const DELTA = {};
const STATE_OF_THE_WORLD = {};

/** What to compose a response from. */
interface Wanted extends Supply {
  readonly piece: Piece | undefined;
  /** The names that it may contain. */
  readonly only: (name: string) => boolean;
  /** The first response: a wildcard is answered, even if there is nothing. */
  readonly first: boolean;
}

/** All that is owed. */
function wholeOf(view: WorldView): Wanted {
  return { view, blocked: undefined, maxAbsent: MAX_ABSENT, piece: undefined, only: () => true, first: false };
}

/** Some of it may have to wait: everything is owed name by name. */
function oweEach(of: Subscription, view: WorldView): void {
  if (!of.all) return;
  of.ceaseOwingAll();
  const { batches, missing } = of.interest.in(view);
  for (const batch of batches) {
    for (const item of batch.items) of.ledger.ask(item.name, of.known ? of.ledger.offer(item.name, item) : of.before);
  }
  for (const name of missing) if (of.ledger.kept?.has(name) !== true) of.ledger.ask(name, undefined);
}

/** Everything that the client is subscribed to. */
function composeAll(of: Subscription, { view, maxAbsent }: Supply): Sent | undefined {
  const { ledger, before, known } = of;
  const owed = ledger.pending ?? NONE;
  const prior = known ? priorsOf(of, owed) : undefined;
  const { batches, missing } = of.interest.in(view);
  const given = ledger.deviates ? stateOf(of, batches, () => false) : { batches, tolerated: UNSENT.tolerated };
  const removed: string[] = [];
  const absent: Served[] = [];
  const later: string[] = [];
  const unanswered = new Set<string>();
  for (const name of missing) {
    if (ledger.kept?.has(name) === true) {
      if (ledger.offer(name, undefined) === undefined) unanswered.add(name);
      continue;
    }
    if (absent.length === maxAbsent) {
      later.push(name);
      continue;
    }
    const answer = of.absent(name);
    if (answer !== undefined) absent.push(of.context.once(answer));
    else if (of.context.delta) removed.push(name);
  }
  of.ceaseOwingAll();
  of.endTrial();
  ledger.oweOnly(NONE, unanswered);
  for (const name of later) ledger.ask(name, known ? owed.get(name) : before);
  const all = absent.length === 0 ? given.batches : [...given.batches, new Batch(absent)];
  if (all.length === 0 && removed.length === 0 && !of.interest.wildcard && !of.wholeState) return undefined;
  return { ...UNSENT, batches: all, removed, prior, before, tolerated: given.tolerated };
}

/** Names or delta: only what is owed. */
function composeOwed(of: Subscription, { view, blocked, maxAbsent, piece, only, first }: Wanted): Sent | undefined {
  const { ledger, type } = of;
  const owed = ledger.pending ?? NONE;
  const items: Served[] = [];
  const removed: string[] = [];
  const rest = new Map<string, Held>();
  const unanswered = new Set<string>();
  const repeated: string[] = [];
  let absents = 0;
  for (const [name, held] of owed) {
    if (!only(name)) {
      rest.set(name, held);
      continue;
    }
    const present = view.resolve(type.typeUrl, name);
    const must = ledger.asked?.has(name) === true || ledger.uncertain(name, present);
    const offer = ledger.offer(name, present);
    if (offer !== undefined) {
      if (!must && offer.version === versionOf(held)) {
        ledger.rejections?.settled(name);
        continue;
      }
      if (blocked?.(offer) !== true) {
        items.push(offer);
        continue;
      }
      rest.set(name, held);
      // A cluster that is changed in place warms until it has an assignment: until then, that of the former one.
      if (!must || type.behind === undefined || typeof held !== 'object') continue;
      if (ledger.rejections?.rejected(name, held.version) === true) continue;
      items.push(held);
      repeated.push(name);
    } else if (!ledger.lacks(name, present)) {
      // The client has something whose bytes nobody has, and is left with it. If the name comes back, it is sent, even
      // though the client may already have it.
      if (must) unanswered.add(name);
    } else if (must && absents === maxAbsent) {
      rest.set(name, held);
    } else {
      const absent = of.absent(name);
      if (absent !== undefined) {
        if (!must || ledger.rejections?.forbids(name, absent.version) === true) continue;
        items.push(of.context.once(absent));
        absents++;
      } else if (of.context.delta && (must || held !== undefined) && !ledger.rejectsRemoval(name)) {
        removed.push(name);
      }
    }
  }
  const prior = priorsOf(of, owed);
  ledger.oweOnly(rest, unanswered);
  for (const name of repeated) ledger.answered(name);
  if (items.length === 0 && removed.length === 0 && !first) return undefined;
  return { ...UNSENT, batches: items.length === 0 ? [] : [new Batch(items)], removed, prior, trial: piece };
}

/** State of the world, where absence means removal: all of it, as soon as something in it is owed. */
function composeState(of: Subscription, { view, blocked, piece, only, first }: Wanted): Sent | undefined {
  const { ledger } = of;
  const rest = new Map<string, Held>();
  const differing = new Map<string, Held>();
  for (const [name, held] of ledger.pending ?? NONE) {
    const present = view.resolve(of.type.typeUrl, name);
    const must = ledger.asked?.has(name) === true || ledger.uncertain(name, present);
    const offer = ledger.offer(name, present);
    if (offer === undefined ? !ledger.lacks(name, present) : !must && offer.version === versionOf(held)) {
      ledger.rejections?.settled(name);
      continue;
    }
    const withheld = !only(name) || (offer !== undefined && blocked?.(offer) === true);
    (withheld ? rest : differing).set(name, held);
  }
  // What waits must be in the state as the client has it. If nobody has those bytes, all of it waits.
  if ([...rest].some(([name, held]) => typeof ledger.goesBackTo(name, held) === 'string')) {
    ledger.oweOnly(new Map([...rest, ...differing]));
    return undefined;
  }
  const prior = priorsOf(of, differing);
  ledger.oweOnly(rest);
  if (prior.size === 0 && !first) return undefined;
  const { batches } = of.interest.in(view);
  const plain = rest.size === 0 && !ledger.deviates;
  const given = plain ? { batches, tolerated: UNSENT.tolerated } : stateOf(of, batches, (name) => rest.has(name));
  return { ...UNSENT, ...given, prior: first ? undefined : prior, before: first ? of.before : undefined, trial: piece };
}

/** What this client is given in place of the world's own resources; withheld names stay as it holds them. */
function stateOf(
  of: Subscription,
  batches: readonly Batch[],
  withheld: (name: string) => boolean,
): Pick<Sent, 'batches' | 'tolerated'> {
  const { ledger } = of;
  const items = new Map<string, Served>();
  const tolerated = new Set<string>();
  const give = (name: string, present: Served | undefined): void => {
    const offer = withheld(name) ? ledger.goesBackTo(name, ledger.pending?.get(name)) : ledger.offer(name, present);
    if (typeof offer === 'object') items.set(name, offer);
    else if (!withheld(name) && present !== undefined && of.wholeState && !ledger.lacks(name, present)) {
      // Left out, it would be deleted; rejected once more, it leaves the client with what it has.
      items.set(name, present);
      tolerated.add(name);
    }
  };
  for (const batch of batches) for (const item of batch.items) give(item.name, item);
  for (const name of ledger.kept?.keys() ?? []) if (of.interest.has(name) && !items.has(name)) give(name, undefined);
  return { batches: [new Batch([...items.values()])], tolerated };
}

/** What the client goes back to if it rejects what is being sent. */
function priorsOf({ ledger }: Subscription, owed: ReadonlyMap<string, Held>): ReadonlyMap<string, Held> {
  if (ledger.rejections === undefined) return owed;
  return new Map([...owed].map(([name, held]) => [name, ledger.goesBackTo(name, held)]));
}
