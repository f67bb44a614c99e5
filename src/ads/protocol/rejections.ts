import { Buffer } from 'node:buffer';
import { type Held, type Names, versionOf } from '../store/served.ts';

const FIRST_BACKOFF_MS = 60_000;
const LAST_BACKOFF_MS = 3_600_000;
/** How many rejected versions of a name are remembered. Beyond that, the oldest is forgotten and may be retried. */
const MAX_VERSIONS = 8;

/** Stands for the version of a name that a client is told is gone: it may reject that, too. */
export const GONE = '(gone)';
/** Version of a held resource whose content is unknown. */
export const UNKNOWN = '';

/** When something rejected is tried again, in milliseconds, and how long that is after the rejection. */
export interface BackOff {
  readonly retryAt: number;
  readonly backoff: number;
}

/** Doubles with every rejection. */
export function backOff(former: BackOff | undefined, now: number): BackOff {
  const backoff = former === undefined ? FIRST_BACKOFF_MS : Math.min(former.backoff * 2, LAST_BACKOFF_MS);
  return { retryAt: now + backoff, backoff };
}

/** One version that the client rejected. */
interface Rejected extends BackOff {
  /** It is being tried again. */
  due: boolean;
  /** The client has not said so: the version is assumed to be rejected because it blocks answers. */
  readonly suspected: boolean;
  /** Nonce of the rejected response. */
  readonly about: number;
  /** Nonce of the newest response at that time: an older one may have carried the same bytes. */
  readonly after: number;
  /** The client's own words, cut to a bounded length. */
  readonly message: string;
}

/** What a client rejected of one name. */
interface RejectedName {
  readonly versions: Map<string, Rejected>;
  /** What it has instead. */
  held: Held;
  /**
   * What it was sent since the last rejection, and has if it accepts that; `held: undefined`: told that there is none.
   */
  given: { readonly held: Held } | undefined;
}

/** What is known about a rejection. */
export interface NewRejection extends Readonly<Pick<Rejected, 'about' | 'after' | 'suspected' | 'message'>> {
  readonly version: string;
  /** What the client has instead. */
  readonly held: Held;
  readonly now: number;
}

/**
 * Versions that one proxy rejected: not sent to it again before a back-off, which doubles with every rejection. Each
 * rejection forbids one more thing that could be sent for a name, so a client that rejects everything comes to rest.
 */
export class Rejections {
  readonly #names = new Map<string, RejectedName>();
  /** See {@link takeNews}. */
  #news = new Set<string>();
  /** Nothing is due before this time. */
  #dueAt = Infinity;

  get size(): number {
    return this.#names.size;
  }

  get names(): Names {
    return this.#names;
  }

  /** Names of which something else has been rejected, or no longer is, since the last call. */
  takeNews(): Names {
    const news = this.#news;
    if (news.size > 0) this.#news = new Set();
    return news;
  }

  reject(name: string, { version, held, now, about, after, suspected, message }: NewRejection): void {
    let rejected = this.#names.get(name);
    if (rejected === undefined)
      this.#names.set(name, (rejected = { versions: new Map<string, Rejected>(), held, given: undefined }));
    const former = rejected.versions.get(version);
    const next = backOff(former?.due === true ? former : undefined, now);
    rejected.versions.delete(version);
    for (const oldest of rejected.versions.keys()) {
      if (rejected.versions.size < MAX_VERSIONS) break;
      rejected.versions.delete(oldest);
    }
    const words = this.#names.size > MANY ? cut(message, 0, MAX_MESSAGE_OF_MANY) : message;
    rejected.versions.set(version, { ...next, due: false, suspected, about, after, message: words });
    this.#dueAt = Math.min(this.#dueAt, next.retryAt);
    // It was assumed to have the very bytes that it rejects: whatever it has, it is something else.
    rejected.held = versionOf(held) === version ? UNKNOWN : held;
    rejected.given = undefined;
    this.#news.add(name);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** The client was sent this, or was told that the name is gone. */
  gave(name: string, held: Held): void {
    const rejected = this.#names.get(name);
    if (rejected !== undefined) rejected.given = { held };
  }

  /** This version was rejected, and has not been accepted since. */
  rejected(name: string, version: string): boolean {
    return this.#names.get(name)?.versions.has(version) === true;
  }

  /** Why this version was rejected; undefined: it was not, or the client has not said so. */
  messageOf(name: string, version: string): string | undefined {
    const rejected = this.#names.get(name)?.versions.get(version);
    return rejected?.suspected === false ? rejected.message : undefined;
  }

  /** This version must not be sent now. */
  forbids(name: string, version: string): boolean {
    return this.#names.get(name)?.versions.get(version)?.due === false;
  }

  /** It must not be sent, although the client has not said anything against it. */
  suspects(name: string, version: string): boolean {
    const rejected = this.#names.get(name)?.versions.get(version);
    return rejected?.due === false && rejected.suspected;
  }

  held(name: string): Held {
    return this.#names.get(name)?.held;
  }

  /**
   * A response with this was accepted. For a version that was rejected before, this counts only after that was tried
   * again: clients skip bytes that they know, and acknowledge them. `present`: it is what the client should have.
   */
  accepted(name: string, item: Exclude<Held, undefined>, nonce: number, present: boolean): void {
    const known = this.#names.get(name);
    if (known === undefined) return;
    const version = versionOf(item)!;
    const rejected = known.versions.get(version);
    if (rejected !== undefined) {
      if (!rejected.due || nonce <= rejected.after) return;
      known.versions.delete(version);
      this.#news.add(name);
    } else {
      for (const { about } of known.versions.values()) if (nonce < about) return;
    }
    known.held = item;
    if (present || known.versions.size === 0) this.forget(name);
  }

  forget(name: string): void {
    if (this.#names.delete(name)) this.#news.add(name);
  }

  /** The client has what it should have: rejected versions that are due for another try no longer matter. */
  settled(name: string): void {
    const known = this.#names.get(name);
    if (known === undefined) return;
    for (const [version, { due }] of known.versions) if (due) known.versions.delete(version);
    this.#news.add(name);
    if (known.versions.size === 0) this.forget(name);
  }

  /** The client asks for the name again, and there is nothing better to give: what it rejected is tried again. */
  pardon(name: string): void {
    for (const rejected of this.#names.get(name)?.versions.values() ?? []) rejected.due = true;
  }

  /**
   * Names with a rejected version that is due, and what the client holds. From now on that version may be sent.
   * @param owed with what the client was sent last: what it rejected is due only once it was given back what it had.
   */
  *due(now: number, owed: ReadonlyMap<string, Held> | undefined): Generator<[string, Held]> {
    if (now < this.#dueAt) return;
    this.#dueAt = Infinity;
    for (const [name, { versions, held, given }] of this.#names) {
      let any = false;
      for (const [version, rejected] of versions) {
        if (rejected.due) continue;
        const isDue = now >= rejected.retryAt && versionOf(owed?.get(name)) !== version;
        if (!isDue) this.#dueAt = Math.min(this.#dueAt, rejected.retryAt);
        else rejected.due = any = true;
      }
      if (any) yield [name, given === undefined ? held : given.held];
    }
  }
}

/**
 * The names that a rejection mentions. Envoy names each bad cluster and listener (`Error adding/updating cluster(s) a:
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

/** How much of a client's message is read, in characters. */
const MAX_SEARCHED = 16_384;

/**
 * Names are looked up, not searched for: a name with other characters counts as not mentioned. Brackets enclose a list
 * of errors, but also belong to names that begin with an IPv6 address.
 */
const RUN_OF_NAME_CHARACTERS = /(?:\[[\da-f]{0,4}:[\da-f:.]{0,45}\])?[\w.:|/~*^-]+/gi;

/** Long messages contain a copy of the config in an unstable format: the message begins at the last constraint. */
export function shortMessage(message: string): string {
  const at = message.lastIndexOf('Proto constraint validation failed');
  if (at < 0 && message.startsWith(CONFIG)) return 'invalid, but the message ends before it says why';
  return cut(message, Math.max(0, at), MAX_MESSAGE);
}

function cut(message: string, from: number, most: number): string {
  const short = message.slice(from, from + most).trimEnd();
  // A slice keeps all of the message in memory.
  return short.length === message.length ? message : Buffer.from(short, 'utf16le').toString('utf16le');
}

const MAX_MESSAGE = 1024;
/** A client that rejects more names than this may have different words for each of them: these are cut shorter. */
const MANY = 1_024;
const MAX_MESSAGE_OF_MANY = 100;
/** How a copy of the config begins: of large tables, Envoy's message contains nothing else. */
const CONFIG = 'goo.gle/debug';
