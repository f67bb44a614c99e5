import { type Held, versionOf } from '../store/served.ts';

const FIRST_BACKOFF_MS = 60_000;
const LAST_BACKOFF_MS = 3_600_000;
/** Of one name so many refused versions are remembered; of more, the oldest is forgotten, and may be tried again. */
const MAX_VERSIONS = 8;

/** Stands for the version of a name that is told to be gone: a client may refuse to hear that, too. */
export const GONE = '(gone)';
/** Version of a held resource whose content is unknown. */
export const UNKNOWN = '';

/** When something that was refused is tried again, in milliseconds, and how long that is after the refusal. */
export interface BackOff {
  readonly retryAt: number;
  readonly backoff: number;
}

/** Doubles with every refusal. */
export function backOff(former: BackOff | undefined, now: number): BackOff {
  const backoff = former === undefined ? FIRST_BACKOFF_MS : Math.min(former.backoff * 2, LAST_BACKOFF_MS);
  return { retryAt: now + backoff, backoff };
}

/** One version that the client refused. */
interface Refused extends BackOff {
  /** It is being tried again. */
  due: boolean;
  /** The client has not said so: it is taken to be refused because it blocks answers. */
  readonly suspected: boolean;
  /** Nonce of the response that was refused. */
  readonly about: number;
  /** Nonce of the newest response at that time: an older one may have carried the same bytes. */
  readonly after: number;
}

/** What a client refused of one name. */
interface RefusedName {
  readonly versions: Map<string, Refused>;
  /** What it has instead. */
  held: Held;
  /** What it was sent since the last refusal, and has if it takes that; `held: undefined`: it was told that there is none. */
  given: { readonly held: Held } | undefined;
}

/** What is known of a refusal. */
export interface NewRefusal extends Readonly<Pick<Refused, 'about' | 'after' | 'suspected'>> {
  readonly version: string;
  /** What the client has instead. */
  readonly held: Held;
  readonly now: number;
}

/**
 * Versions that one proxy refused: not repeated to it before a back-off, which doubles with every refusal. Each refusal
 * forbids one more thing that could be sent of a name, so that a client which refuses all comes to rest.
 */
export class Refusals {
  readonly #names = new Map<string, RefusedName>();
  /** Nothing is due before. */
  #dueAt = Infinity;

  get size(): number {
    return this.#names.size;
  }

  names(): Iterable<string> {
    return this.#names.keys();
  }

  refuse(name: string, { version, held, now, about, after, suspected }: NewRefusal): void {
    let refused = this.#names.get(name);
    if (refused === undefined)
      this.#names.set(name, (refused = { versions: new Map<string, Refused>(), held, given: undefined }));
    const former = refused.versions.get(version);
    const next = backOff(former?.due === true ? former : undefined, now);
    refused.versions.delete(version);
    for (const oldest of refused.versions.keys()) {
      if (refused.versions.size < MAX_VERSIONS) break;
      refused.versions.delete(oldest);
    }
    refused.versions.set(version, { ...next, due: false, suspected, about, after });
    this.#dueAt = Math.min(this.#dueAt, next.retryAt);
    // It was thought to have the very bytes that it refuses: whatever it has, it is something else.
    refused.held = versionOf(held) === version ? UNKNOWN : held;
    refused.given = undefined;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** The client was sent this, or was told that the name is gone. */
  gave(name: string, held: Held): void {
    const refused = this.#names.get(name);
    if (refused !== undefined) refused.given = { held };
  }

  /** This version was refused, and not accepted since. */
  refused(name: string, version: string): boolean {
    return this.#names.get(name)?.versions.has(version) === true;
  }

  /** This version must not be sent now. */
  forbids(name: string, version: string): boolean {
    return this.#names.get(name)?.versions.get(version)?.due === false;
  }

  /** It must not be sent, although the client has not said anything against it. */
  suspects(name: string, version: string): boolean {
    const refused = this.#names.get(name)?.versions.get(version);
    return refused?.due === false && refused.suspected;
  }

  held(name: string): Held {
    return this.#names.get(name)?.held;
  }

  /**
   * A response with this was accepted. Of a version that was refused before it counts only when that was tried again:
   * clients skip bytes that they know, and acknowledge them. `present`: it is what the client is to have.
   */
  accepted(name: string, item: Exclude<Held, undefined>, nonce: number, present: boolean): void {
    const known = this.#names.get(name);
    if (known === undefined) return;
    const version = versionOf(item)!;
    const refused = known.versions.get(version);
    if (refused !== undefined) {
      if (!refused.due || nonce <= refused.after) return;
      known.versions.delete(version);
    } else {
      for (const { about } of known.versions.values()) if (nonce < about) return;
    }
    known.held = item;
    if (present || known.versions.size === 0) this.#names.delete(name);
  }

  forget(name: string): void {
    this.#names.delete(name);
  }

  /** The client has what it is to have: refused versions that would be tried again no longer matter. */
  settled(name: string): void {
    const known = this.#names.get(name);
    if (known === undefined) return;
    for (const [version, { due }] of known.versions) if (due) known.versions.delete(version);
    if (known.versions.size === 0) this.#names.delete(name);
  }

  /** The client asks for the name again, and there is nothing better to give: what it refused is tried again. */
  pardon(name: string): void {
    for (const refused of this.#names.get(name)?.versions.values() ?? []) refused.due = true;
  }

  /** Names of which a refused version's time has come, with what the client holds. From now on it may be sent. */
  *due(now: number): Generator<[string, Held]> {
    if (now < this.#dueAt) return;
    this.#dueAt = Infinity;
    for (const [name, { versions, held, given }] of this.#names) {
      let any = false;
      for (const refused of versions.values()) {
        if (refused.due) continue;
        if (refused.retryAt > now) this.#dueAt = Math.min(this.#dueAt, refused.retryAt);
        else refused.due = any = true;
      }
      if (any) yield [name, given === undefined ? held : given.held];
    }
  }
}

/**
 * The names that a refusal mentions. Envoy names each bad cluster and listener (`Error adding/updating cluster(s) a:
 * ..., b: ...`), but no assignment and no route table; gRPC clients put the name into free text.
 */
export function namesIn(message: string, names: ReadonlySet<string>): string[] {
  const mentioned = new Set<string>();
  for (const [run] of message.slice(0, MAX_SEARCHED).matchAll(RUN_OF_NAME_CHARACTERS)) {
    const name = names.has(run) || !run.endsWith(':') ? run : run.slice(0, -1);
    if (names.has(name)) mentioned.add(name);
  }
  return [...mentioned];
}

/** What a client writes beyond this is not read. Characters. */
const MAX_SEARCHED = 16_384;

/**
 * A name is looked up, not searched for: one with other characters counts as not mentioned. Brackets are around a list
 * of errors, but belong to a name that begins with an IPv6 address.
 */
const RUN_OF_NAME_CHARACTERS = /(?:\[[\da-f]{0,4}:[\da-f:.]{0,45}\])?[\w.:|/~*^-]+/gi;

/** Long messages hold a copy of the config in an unstable format: what follows the last constraint is the message. */
export function shortMessage(message: string): string {
  const at = message.lastIndexOf('Proto constraint validation failed');
  return (at < 0 ? message : message.slice(at)).slice(0, MAX_MESSAGE);
}

const MAX_MESSAGE = 1024;
