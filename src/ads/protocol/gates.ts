import type { Parties } from './parties.ts';
import type { Canaries, Gate, Waiter } from './canaries.ts';
import type { Blocked } from './composition.ts';
import type { HeldNames } from './ledger.ts';
import type { Served } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from '../store/world.ts';

/**
 * What a client is owed may have to be tried by another one first. Whoever has just come is sent everything; and what
 * restricts clients is sent to everybody at once: the first one could be the one that it shuts out.
 */
export function gateOf(subscription: Subscription, view: WorldView, canaries: Canaries, client: Waiter): Gate {
  const { type, all, ledger } = subscription;
  const { pending } = ledger;
  if (type.isTried !== true || all || pending === undefined || !canaries.holdBack(client)) return 'open';
  return gateOfNames(subscription, pending, view, canaries, client);
}

function gateOfNames(
  { type, ledger, context, awaited }: Subscription,
  pending: HeldNames,
  view: WorldView,
  canaries: Canaries,
  client: Waiter,
): Gate {
  const { restrictions } = awaited;
  const restricts = (name: string): boolean => restrictions.some((concern) => concern.restricts(name));
  const items = (): Served[] =>
    [...pending.keys()].flatMap((name) => (restricts(name) ? [] : (view.resolve(type.typeUrl, name) ?? [])));
  const { many, gates } = context.shared();
  const shared = pending.size < many ? undefined : ledger.marks?.pending;
  const gate = canaries.gate(client, items, shared && { gates, from: [type, view, shared, ...restrictions] });
  if (gate === 'open' || restrictions.length === 0) return gate;
  return (item) => !restricts(item.name) && (gate === 'shut' || gate(item));
}

/**
 * While others try a new version of a cluster, the client goes on with what it has, of its assignment, too: endpoints of
 * the new version may speak another protocol.
 */
export function heldWith(gate: Gate, { guarded, view }: Parties): Blocked {
  if (gate === 'open' || guarded?.ledger.pending === undefined) return undefined;
  return heldWithNames(gate, guarded, guarded.ledger.pending, view);
}

function heldWithNames(
  gate: Exclude<Gate, 'open'>,
  guarded: Subscription,
  pending: HeldNames,
  view: WorldView,
): Blocked {
  return ({ name }) => {
    if (pending.get(name) === undefined) return false;
    const cluster = view.resolve(guarded.type.typeUrl, name);
    return cluster !== undefined && (gate === 'shut' || gate(cluster));
  };
}
