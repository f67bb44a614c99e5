import { originsOf } from '../store/origins.ts';
import { type RefusedByName, RefusedState } from '../rollouts/refused-by-name.ts';
import type { Refused } from '../rollouts/recipient.ts';
import type { EncodedResource, Part } from '../store/resource.ts';
import { common } from '../store/names.ts';
import { GONE } from './refusals.ts';
import type { Names } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from '../store/world.ts';

/** Who sees a world, and may move to another one. */
interface Viewer {
  readonly view: WorldView;
}

/** Names of which the client refuses what it should have, among those that it refuses anything of. */
export function refusedNames(subscription: Subscription, view: WorldView): string[] {
  const { refusals } = subscription.ledger;
  if (refusals === undefined) return [];
  return [...refusals.names.keys()].filter((name) => refusals.refused(name, versionFor(subscription, name, view)));
}

/** What the client refuses of these names, in its own words: a whole state, or what it should have of some. */
export function refusedOf(subscription: Subscription, names: Names, viewer: Viewer): RefusedByName {
  const { ledger, type, wholeRefusal } = subscription;
  const { refusals } = ledger;
  const refused = (name: string, messageOf: (version: string) => string | undefined): Refused | undefined => {
    const present = viewer.view.resolve(type.typeUrl, name)?.resource;
    const version = (present ?? subscription.absent(name))?.version ?? GONE;
    const message = messageOf(version);
    return message === undefined ? undefined : new RefusedResource(type.typeUrl, name, version, message, present);
  };
  const named = new Map<string, Refused>();
  for (const name of refusals === undefined ? [] : common(names, refusals.names)) {
    const found = refused(name, (version) => refusals!.messageOf(name, version));
    if (found !== undefined) named.set(name, found);
  }
  if (wholeRefusal === undefined) return named;
  return new RefusedState(names, named, { id: wholeRefusal, of: (name) => refused(name, () => wholeRefusal.message)! });
}

/** A client may refuse thousands, of which nobody asks what they were made from. */
class RefusedResource implements Refused {
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
  readonly message: string;
  readonly #resource: EncodedResource | undefined;

  constructor(typeUrl: string, name: string, version: string, message: string, resource: EncodedResource | undefined) {
    this.typeUrl = typeUrl;
    this.name = name;
    this.version = version;
    this.message = message;
    this.#resource = resource;
  }

  get origins(): ReadonlySet<string> {
    return this.#resource === undefined ? NO_NAMES : knownOrigins(this.#resource.body);
  }
}

/** Of what some client refuses: many may refuse the same. */
const originsOfRefused = new WeakMap<Part, ReadonlySet<string>>();

function knownOrigins(body: Part): ReadonlySet<string> {
  let origins = originsOfRefused.get(body);
  if (origins === undefined) originsOfRefused.set(body, (origins = originsOf(body)));
  return origins;
}

function versionFor(subscription: Subscription, name: string, view: WorldView): string {
  return (view.resolve(subscription.type.typeUrl, name) ?? subscription.absent(name))?.version ?? GONE;
}

const NO_NAMES: ReadonlySet<string> = new Set();
