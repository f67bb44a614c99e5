import { originsOf } from '../store/origins.ts';
import { type RejectedByName, RejectedState } from '../rollouts/rejected-by-name.ts';
import type { Rejected } from '../rollouts/recipient.ts';
import type { EncodedResource, Part } from '../store/resource.ts';
import { common } from '../store/names.ts';
import { GONE } from './rejections.ts';
import type { Names } from '../store/served.ts';
import type { Subscription } from './subscription.ts';
import type { WorldView } from '../store/world.ts';

/** Who sees a world, and may move to another one. */
interface Viewer {
  readonly view: WorldView;
}

/** Names of which the client rejects what it should have, among those that it rejects anything of. */
export function rejectedNames(subscription: Subscription, view: WorldView): string[] {
  const { rejections } = subscription.ledger;
  if (rejections === undefined) return [];
  return [...rejections.names.keys()].filter((name) => rejections.rejected(name, versionFor(subscription, name, view)));
}

/** What the client rejects of these names, in its own words: a whole state, or what it should have of some. */
export function rejectedOf(subscription: Subscription, names: Names, viewer: Viewer): RejectedByName {
  const { ledger, type, wholeRejection } = subscription;
  const { rejections } = ledger;
  const rejected = (name: string, messageOf: (version: string) => string | undefined): Rejected | undefined => {
    const present = viewer.view.resolve(type.typeUrl, name)?.resource;
    const version = (present ?? subscription.absent(name))?.version ?? GONE;
    const message = messageOf(version);
    return message === undefined ? undefined : new RejectedResource(type.typeUrl, name, version, message, present);
  };
  const named = new Map<string, Rejected>();
  for (const name of rejections === undefined ? [] : common(names, rejections.names)) {
    const found = rejected(name, (version) => rejections!.messageOf(name, version));
    if (found !== undefined) named.set(name, found);
  }
  if (wholeRejection === undefined) return named;
  return new RejectedState(names, named, {
    id: wholeRejection,
    of: (name) => rejected(name, () => wholeRejection.message)!,
  });
}

/** A client may reject thousands, of which nobody asks what they were made from. */
class RejectedResource implements Rejected {
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

/** Of what some client rejects: many may reject the same. */
const originsOfRejected = new WeakMap<Part, ReadonlySet<string>>();

function knownOrigins(body: Part): ReadonlySet<string> {
  let origins = originsOfRejected.get(body);
  if (origins === undefined) originsOfRejected.set(body, (origins = originsOf(body)));
  return origins;
}

function versionFor(subscription: Subscription, name: string, view: WorldView): string {
  return (view.resolve(subscription.type.typeUrl, name) ?? subscription.absent(name))?.version ?? GONE;
}

const NO_NAMES: ReadonlySet<string> = new Set();
