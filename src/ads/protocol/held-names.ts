import { UNKNOWN } from './rejections.ts';
import type { Interest } from './interest.ts';
import type { Ledger } from './ledger.ts';
import type { ResourceType } from '../types.ts';
import type { RequestedVersions } from '../wire/wire-read.ts';
import type { WorldView } from '../store/world.ts';

/** The subscription of a client that comes back. */
interface Returning {
  readonly type: ResourceType;
  readonly interest: Interest;
  readonly ledger: Ledger;
  keeps(name: string): boolean;
}

/**
 * Compares with what a reconnecting client holds: only differences are owed. Returns names that it lacks or has in another
 * version, and whether it has anything as it is.
 */
export function compareHeld(
  of: Returning,
  versions: RequestedVersions,
  view: WorldView,
): { readonly asked: string[]; readonly anyCurrent: boolean } {
  const { type, interest, ledger } = of;
  const { batches, missing } = interest.in(view);
  const { items, held, anyCurrent } = versions.compare(view.indexesOf(batches));
  const asked: string[] = [];
  for (const { name, version } of items) {
    const has = held.get(name);
    held.delete(name);
    if (has === version) continue;
    asked.push(name);
    if (has === undefined) ledger.ask(name, undefined);
    else ledger.owe(name, has);
  }
  for (const name of missing) if (!held.has(name)) ledger.ask(name, undefined);
  for (const [name, version] of held) {
    if (!interest.has(name) || view.resolve(type.typeUrl, name) !== undefined) continue;
    if (isLeft(of, name, view)) ledger.keep(name, version);
    else ledger.ask(name, version);
  }
  return { asked, anyCurrent };
}

/** A client that reconnects in state of the world does not say what it holds. */
export function keepMissing(of: Returning, view: WorldView): void {
  for (const name of of.interest.in(view).missing) if (isLeft(of, name, view)) of.ledger.keep(name, UNKNOWN);
}

/**
 * A reconnecting client keeps what it has of names that no longer exist, since old listeners and tables may use it.
 * But a live cluster must not wait for its assignment.
 */
function isLeft(of: Returning, name: string, view: WorldView): boolean {
  const { behind } = of.type;
  return of.keeps(name) && (behind === undefined || view.resolve(behind, name) === undefined);
}

/** The same for a name that goes before the client is answered: its cluster may live on. */
export function mayGoOnWith(of: Returning, name: string): boolean {
  return of.type.behind === undefined && of.keeps(name);
}
