import { originsOf } from '../store/origins.ts';
import type { Refused } from '../store/recipient.ts';
import { GONE } from './refusals.ts';
import type { Names } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from '../store/world.ts';

/** Names of which the client refuses what it should have, among those that it refuses anything of. */
export function refusedNames(subscription: Subscription, view: WorldView): string[] {
  const { refusals } = subscription.ledger;
  return refusals === undefined
    ? []
    : [...refusals.names()].filter((name) => refusals.refused(name, versionFor(subscription, name, view)));
}

/** What the client refuses of these names, in its own words: a whole state, or what it should have of some. */
export function refusedOf(subscription: Subscription, names: Names, view: WorldView): ReadonlyMap<string, Refused> {
  const { ledger, type, wholeRefusal } = subscription;
  const { typeUrl } = type;
  const refused = new Map<string, Refused>();
  const add = (name: string, version: string, message: string): void => {
    const body = view.resolve(typeUrl, name)?.resource.body;
    let origins: ReadonlySet<string> | undefined;
    refused.set(name, {
      ...{ typeUrl, name, version, message },
      get origins() {
        return (origins ??= body === undefined ? NOTHING : originsOf(body));
      },
    });
  };
  if (wholeRefusal !== undefined)
    for (const name of names.keys()) add(name, versionFor(subscription, name, view), wholeRefusal.message);
  for (const name of ledger.refusals?.names() ?? []) {
    if (!names.has(name)) continue;
    const version = versionFor(subscription, name, view);
    const message = ledger.refusals?.messageOf(name, version);
    if (message !== undefined) add(name, version, message);
  }
  return refused;
}

function versionFor(subscription: Subscription, name: string, view: WorldView): string {
  return (view.resolve(subscription.type.typeUrl, name) ?? subscription.absent(name))?.version ?? GONE;
}

const NOTHING: ReadonlySet<string> = new Set();
