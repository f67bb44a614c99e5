import { type Held, versionOf } from './served.ts';

const FIRST_BACKOFF_MS = 60_000;
const LAST_BACKOFF_MS = 3_600_000;

interface Refused {
  version: string;
  held: Held;
  retryAt: number;
  backoff: number;
  /** The version is being tried again. */
  due: boolean;
  /** The client has not said so: it is taken to be refused because it blocks answers. */
  doubted: boolean;
  /** Nonce of the newest response at that time: an answer to an older one says nothing of what came after. */
  after: number;
}

/** What is known of a refusal. */
export interface NewRefusal extends Readonly<Pick<Refused, 'version' | 'after' | 'doubted'>> {
  /** What the client has instead. */
  readonly held: Held;
  /** Nonce of the refused response; a refusal that was found after that was sent is newer. */
  readonly about: number;
  readonly now: number;
}

/** Versions that one proxy refused: not repeated to it before a back-off, which doubles with every refusal. */
export class Refusals {
  readonly #names = new Map<string, Refused>();

  get size(): number {
    return this.#names.size;
  }

  names(): Iterable<string> {
    return this.#names.keys();
  }

  refuse(name: string, { version, held, now, about, after, doubted }: NewRefusal): void {
    const former = this.#names.get(name);
    if (former !== undefined && former.version !== version && former.after >= about) return;
    const again = former?.version === version && former.due;
    const backoff = again ? Math.min(former.backoff * 2, LAST_BACKOFF_MS) : FIRST_BACKOFF_MS;
    const instead = versionOf(held) === version ? undefined : held;
    this.#names.set(name, { version, held: instead, retryAt: now + backoff, backoff, due: false, doubted, after });
  }

  doubts(name: string): boolean {
    return this.#names.get(name)?.doubted === true;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** The client was sent this: what it has instead, unless it is the refused version once more. */
  gave(name: string, item: Held): void {
    const refused = this.#names.get(name);
    if (refused !== undefined && versionOf(item) !== refused.version) refused.held = item;
  }

  /** This version must not be sent now. */
  forbids(name: string, version: string): boolean {
    const refused = this.#names.get(name);
    return refused !== undefined && !refused.due && refused.version === version;
  }

  held(name: string): Held {
    return this.#names.get(name)?.held;
  }

  /** A response with this version was accepted: that of the refused one counts only when it was tried again. */
  accepted(name: string, version: string, nonce: number): void {
    const refused = this.#names.get(name);
    if (refused === undefined || nonce <= refused.after) return;
    if (refused.version === version ? refused.due : versionOf(refused.held) !== version) this.#names.delete(name);
  }

  forget(name: string): void {
    this.#names.delete(name);
  }

  /** The refused versions whose time has come, with what the client holds instead. From now on they may be sent. */
  *due(now: number): Generator<[string, Held]> {
    for (const [name, refused] of this.#names) {
      if (refused.due || refused.retryAt > now) continue;
      refused.due = true;
      yield [name, refused.held];
    }
  }
}

/**
 * The names that a refusal mentions. Envoy names each bad cluster and listener (`Error adding/updating cluster(s) a:
 * ..., b: ...`), but no assignment and no route table; gRPC clients put the name into free text.
 */
export function namesIn(message: string, names: Iterable<string>): string[] {
  const mentioned: string[] = [];
  for (const name of names) if (mentions(message, name)) mentioned.push(name);
  return mentioned;
}

function mentions(message: string, name: string): boolean {
  if (name === '') return false;
  for (let at = message.indexOf(name); at >= 0; at = message.indexOf(name, at + 1)) {
    const before = message[at - 1];
    const after = message[at + name.length];
    const ends =
      after === undefined || !NAME_CHARACTER.test(after) || (after === ':' && isEnd(message[at + name.length + 1]));
    if (ends && (before === undefined || !(before === ']' || NAME_CHARACTER.test(before)))) return true;
  }
  return false;
}

/** A colon ends a name only where no further character of a name follows. */
function isEnd(character: string | undefined): boolean {
  return character === undefined || !NAME_CHARACTER.test(character);
}

const NAME_CHARACTER = /[\w.:|/~*^-]/;

/** Long messages hold a copy of the config in an unstable format: what follows the last constraint is the message. */
export function shortMessage(message: string): string {
  const at = message.lastIndexOf('Proto constraint validation failed');
  return (at < 0 ? message : message.slice(at)).slice(0, MAX_MESSAGE);
}

const MAX_MESSAGE = 1024;
