import { originsOf } from '../store/origins.ts';
import type { Refused } from '../rollouts/recipient.ts';
import type { EncodedResource } from '../store/resource.ts';
import { common } from '../store/names.ts';
import { GONE } from './refusals.ts';
import type { Names } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from '../store/world.ts';

/** Names of which the client refuses what it should have, among those that it refuses anything of. */
export function refusedNames(subscription: Subscription, view: WorldView): string[] {
  const { refusals } = subscription.ledger;
  if (refusals === undefined) return [];
  return [...refusals.names.keys()].filter((name) => refusals.refused(name, versionFor(subscription, name, view)));
}

/** What the client refuses of these names, in its own words: a whole state, or what it should have of some. */
export function refusedOf(subscription: Subscription, names: Names, view: WorldView): ReadonlyMap<string, Refused> {
  const { ledger, type, wholeRefusal } = subscription;
  if (wholeRefusal === undefined && ledger.refusals === undefined) return NOTHING;
  const refused = new Map<string, Refused>();
  for (const name of wholeRefusal === undefined ? common(names, ledger.refusals?.names ?? NO_NAMES) : names.keys()) {
    const present = view.resolve(type.typeUrl, name)?.resource;
    const version = (present ?? subscription.absent(name))?.version ?? GONE;
    const message = ledger.refusals?.messageOf(name, version) ?? wholeRefusal?.message;
    if (message !== undefined) refused.set(name, new RefusedResource(type.typeUrl, name, version, message, present));
  }
  return refused;
}

/** A client may refuse thousands, of which nobody asks what they were made from. */
class RefusedResource implements Refused {
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
  readonly message: string;
  readonly #resource: EncodedResource | undefined;
  #origins: ReadonlySet<string> | undefined;

  constructor(typeUrl: string, name: string, version: string, message: string, resource: EncodedResource | undefined) {
    this.typeUrl = typeUrl;
    this.name = name;
    this.version = version;
    this.message = message;
    this.#resource = resource;
  }

  get origins(): ReadonlySet<string> {
    return (this.#origins ??= this.#resource === undefined ? NO_NAMES : originsOf(this.#resource.body));
  }
}

function versionFor(subscription: Subscription, name: string, view: WorldView): string {
  return (view.resolve(subscription.type.typeUrl, name) ?? subscription.absent(name))?.version ?? GONE;
}

const NO_NAMES: ReadonlySet<string> = new Set();
const NOTHING: ReadonlyMap<string, Refused> = new Map();
