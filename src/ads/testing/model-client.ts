import type { Delivery } from '../protocol/delivery.ts';
import { type Asked, CDS, decodeFrame, encodeRequest, LDS, type Response, type TestServer } from './world.ts';

/** What a client wants of a type. */
interface Wish {
  readonly wildcard: boolean;
  readonly names: ReadonlySet<string>;
}

const NOTHING: Wish = { wildcard: false, names: new Set() };

/** A request, and what else the model knows about it. */
interface Request {
  readonly asked: Asked;
  /** What the client wanted when it wrote this. */
  readonly wish: Wish;
  /** Resources that it accepts. */
  readonly accepted: readonly (readonly [string, string])[];
}

/** What a client that obeys the protocol, and nothing more, knows about one type. */
class ModelType {
  requested = false;
  wildcard = false;
  /** It has named names on this stream, even just `*` or none: from then on an empty list means nothing. */
  explicit = false;
  readonly names = new Set<string>();
  /** What it uses: name to content. */
  readonly held = new Map<string, string>();
  /** Names for which it has reported that it accepted what it holds. Anything else it took may be taken away. */
  readonly accepted = new Set<string>();
  /** Names that it gave up at some time: responses and requests cross, so it is uncertain what it holds. */
  readonly givenUp = new Set<string>();
  /** Names that may be sent although it holds the same content, and how often: once for each reason that it gave. */
  readonly #repeats = new Map<string, number>();
  /** What the server knows about what it wants. */
  heard = NOTHING;
  /** Delta: names that the server was asked for, and has not sent since. */
  readonly unanswered = new Set<string>();
  /** Names requested after the last rejection: what the server knows is answered at once, rejected or not. */
  readonly pressing = new Set<string>();
  /** Nonces of responses whose answer the server has not heard. */
  #sent: string[] = [];
  /** Nonce of the newest response; empty before the first one. */
  #newest = '';
  nonce = '';
  version = '';
  /** It gave up everything and wants it again: whatever is on its way may come twice. */
  wavered = false;

  wants(name: string): boolean {
    return this.wildcard || this.names.has(name);
  }

  /** A response was written to it. */
  sent({ nonce, resources, removed }: Response): void {
    // The first answer to a wildcard contains everything.
    if (this.#newest === '' && this.heard.wildcard) this.#answered(this.unanswered);
    this.#sent.push(nonce);
    this.#newest = nonce;
    this.#answered([...resources.keys(), ...removed]);
  }

  /** A request reached the server. */
  hears({ asked, wish }: Request, delta: boolean): void {
    const { nonce = '', names = [], unsubscribe = [], initial, error } = asked;
    const at = this.#sent.indexOf(nonce);
    // In state of the world, a request that answers an old response is ignored.
    if (!delta && nonce !== '' && nonce !== this.#newest && at < 0) return;
    this.heard = wish;
    this.#sent = this.#sent.slice(at + 1);
    if (error !== undefined) this.pressing.clear();
    if (!delta) return;
    for (const name of [...unsubscribe, ...names])
      if (initial?.has(name) !== true) for (const open of [this.unanswered, this.pressing]) open.add(name);
    this.#answered([...this.unanswered].filter((name) => name === '*' || !hasName(wish, name)));
  }

  #answered(names: Iterable<string>): void {
    for (const name of names) for (const open of [this.unanswered, this.pressing]) open.delete(name);
  }

  /** The connection is lost. */
  lost(): void {
    this.nonce = '';
    this.heard = NOTHING;
    this.#sent = [];
    this.#newest = '';
    this.#answered(this.unanswered);
  }

  mayRepeat(names: Iterable<string>): void {
    for (const name of names) this.#repeats.set(name, (this.#repeats.get(name) ?? 0) + 1);
  }

  /** Uses up one of the reasons to send it; false: there was none. */
  repeats(name: string): boolean {
    const left = this.#repeats.get(name) ?? 0;
    this.#repeats.set(name, Math.max(0, left - 1));
    return left > 0;
  }
}

/** How a client answers a response with something bad in it. */
export interface Answer {
  /** How many of a rejected response's tables and assignments are applied, by name; clusters and listeners all are. */
  readonly applied: number;
  /** Whether the rejection names the bad clusters or listeners; `always`: whatever is bad. */
  readonly names: boolean | 'always';
}

/**
 * A client with a connection on which nothing happens by itself: requests leave and responses arrive one by one, when
 * the test says so. Content that starts with `bad` is rejected; if the client is moody, everything is.
 */
export class ModelClient {
  readonly types: ReadonlyMap<string, ModelType>;
  readonly #delta: boolean;
  readonly #server: TestServer;
  #delivery: Delivery;
  #requests: Request[] = [];
  #responses: Response[] = [];
  moody = false;
  /** Resent without a reason. */
  readonly repeated: string[] = [];
  /** Accepted, in the world, and taken away all the same. */
  readonly deprived: string[] = [];
  /** Sent, or reported as gone, although the server had not been asked for it, or no longer. */
  readonly unasked: string[] = [];
  /** What happened, for anyone who has to understand a failed history. */
  readonly log: string[] = [];

  readonly #isPresent: (typeUrl: string, name: string) => boolean;

  /** @param isPresent whether the world has a name now. */
  constructor(
    server: TestServer,
    delivery: Delivery,
    delta: boolean,
    typeUrls: readonly string[],
    isPresent: (typeUrl: string, name: string) => boolean = () => false,
  ) {
    this.#server = server;
    this.#isPresent = isPresent;
    this.#delivery = delivery;
    this.#delta = delta;
    this.types = new Map(typeUrls.map((typeUrl) => [typeUrl, new ModelType()]));
  }

  get delivery(): Delivery {
    return this.#delivery;
  }

  /** What {@link send} sends next. */
  get leaving(): Asked | undefined {
    return this.#requests[0]?.asked;
  }

  subscribe(typeUrl: string, names: readonly string[], star: boolean): void {
    const type = this.#type(typeUrl);
    const all = isWild(typeUrl) && (star || (!type.requested && names.length === 0));
    if (names.length === 0 && !all) return;
    if (!type.requested) type.explicit = names.length > 0 || star;
    else if (this.#delta || type.explicit || !type.wildcard || names.length > 0 || star) type.explicit = true;
    const first = !type.requested;
    type.requested = true;
    if (all) type.wildcard = true;
    for (const name of names) type.names.add(name);
    type.mayRepeat(names);
    if (all && !first) type.wavered = true;
    if (this.#delta) {
      const asked = all && type.explicit ? ['*', ...names] : names;
      this.#ask({ typeUrl, names: asked });
    } else {
      // In state of the world, `*` stays with clients that named it, and with those that began with no names until they
      // name some.
      if (!first && type.wildcard && !star && names.length === 0) return;
      this.#ask({ typeUrl, names: this.#list(type), nonce: type.nonce, version: type.version });
    }
  }

  unsubscribe(typeUrl: string, names: readonly string[], star: boolean): void {
    const type = this.#type(typeUrl);
    if (!type.requested) return;
    const gone = names.filter((name) => type.names.has(name));
    // In state of the world, an empty list does not end a wildcard that began with one.
    const all = star && type.wildcard && (this.#delta || type.explicit || type.names.size > 0);
    if (gone.length === 0 && !all) return;
    for (const name of gone) type.names.delete(name);
    if (all) type.wildcard = false;
    for (const name of all ? type.held.keys() : gone) type.givenUp.add(name);
    for (const name of [...type.held.keys()]) if (!type.wants(name)) type.held.delete(name);
    type.mayRepeat(gone);
    type.explicit = true;
    if (this.#delta) this.#ask({ typeUrl, unsubscribe: [...gone, ...(all ? ['*'] : [])] });
    else this.#ask({ typeUrl, names: this.#list(type), nonce: type.nonce, version: type.version });
  }

  /** One request reaches the server. */
  send(now: number): boolean {
    const request = this.#requests.shift();
    if (request === undefined) return false;
    const { asked, accepted } = request;
    this.log.push(`> ${JSON.stringify(asked, (_, value: unknown) => (value instanceof Map ? [...value] : value))}`);
    this.#delivery.request(encodeRequest(asked, this.#delta, this.#server.hasher), now);
    const type = this.#type(asked.typeUrl);
    type.hears(request, this.#delta);
    for (const [name, content] of accepted) {
      if (type.held.get(name) === content) type.accepted.add(name);
    }
    return true;
  }

  /** The server writes one response. */
  write(now: number): boolean {
    const frame = this.#delivery.next(now);
    if (frame === undefined) return false;
    const response = decodeFrame(frame.slices, this.#delta);
    const resources = [...response.resources].map(([name, content]) => `${name}=${content}`).join(' ');
    this.log.push(`< ${response.typeUrl} ${response.nonce}: ${resources} -${response.removed.join(' ')}`);
    this.#responses.push(response);
    this.#noteUnasked(response);
    this.#noteDeprived(response);
    this.#type(response.typeUrl).sent(response);
    return true;
  }

  /** One response arrives, and is answered. */
  receive({ applied, names }: Answer): boolean {
    const response = this.#responses.shift();
    if (response === undefined) return false;
    const { typeUrl, resources, removed, nonce, version } = response;
    const type = this.#type(typeUrl);
    type.nonce = nonce;
    const wanted = [...resources].filter(([name]) => type.wants(name)).sort();
    const isBad = ([, content]: readonly [string, string]): boolean => this.moody || content.startsWith('bad');
    const bad = wanted.filter(isBad);
    const good = wanted.filter((item) => !isBad(item));
    const rejects = bad.length > 0 || (this.moody && removed.length > 0);
    this.#noteRepeated(type, response);
    for (const [name, content] of rejects && !isWild(typeUrl) ? good.slice(0, applied) : good) {
      if (type.held.get(name) !== content) type.accepted.delete(name);
      type.held.set(name, content);
    }
    // A client that names what it rejects has taken everything else, and what is gone is gone.
    const saysWhat = ((isWild(typeUrl) && names) || names === 'always') && bad.length > 0;
    if (!this.moody || !rejects || saysWhat) {
      for (const name of removed) type.held.delete(name);
      if (!this.#delta && isWild(typeUrl)) {
        for (const name of [...type.held.keys()]) if (!resources.has(name)) type.held.delete(name);
      }
    }
    if (rejects) type.mayRepeat([...resources.keys(), ...removed]);
    else type.version = version;
    const who = saysWhat ? messageAbout(bad.map(([name]) => name)) : 'wrong';
    const answer: Asked = {
      typeUrl,
      nonce,
      error: rejects ? who : undefined,
      names: this.#delta ? [] : this.#list(type),
      version: type.version,
    };
    this.#ask(answer, rejects ? [] : good);
    return true;
  }

  /** The connection is lost with everything that was on its way; what the client uses stays. */
  reconnect(delivery: Delivery): void {
    this.log.push('reconnects');
    this.#delivery = delivery;
    this.#requests = [];
    this.#responses = [];
    for (const [typeUrl, type] of this.types) {
      if (!type.requested) continue;
      type.lost();
      type.mayRepeat(new Set([...type.held.keys(), ...type.names]));
      const names = this.#delta ? [...(type.wildcard && type.explicit ? ['*'] : []), ...type.names] : this.#list(type);
      if (!type.wildcard && type.names.size === 0) {
        type.requested = type.explicit = false;
        continue;
      }
      this.#ask(
        this.#delta ? { typeUrl, names, initial: new Map(type.held) } : { typeUrl, names, version: type.version },
      );
    }
  }

  #type(typeUrl: string): ModelType {
    return this.types.get(typeUrl)!;
  }

  #ask(asked: Asked, accepted: Request['accepted'] = []): void {
    const { wildcard, names } = this.#type(asked.typeUrl);
    this.#requests.push({ asked, wish: { wildcard, names: new Set(names) }, accepted });
  }

  /** State of the world: everything wanted, in one list. */
  #list(type: ModelType): string[] {
    if (!type.explicit) return [];
    return [...(type.wildcard ? ['*'] : []), ...type.names];
  }

  #noteUnasked({ typeUrl, nonce, resources, removed }: Response): void {
    const { heard } = this.#type(typeUrl);
    for (const name of [...resources.keys(), ...removed]) {
      if (!hasName(heard, name)) this.unasked.push(`${typeUrl} ${nonce}: ${name}`);
    }
  }

  #noteDeprived({ typeUrl, nonce, resources, removed }: Response): void {
    const type = this.#type(typeUrl);
    if (type.wavered) return;
    for (const [name, content] of type.held) {
      if (!type.accepted.has(name) || type.givenUp.has(name)) continue;
      const answer = resources.get(name);
      const isLeftOut = answer === undefined && !this.#delta && isWild(typeUrl);
      const isTaken = removed.includes(name) || answer === 'absent' || isLeftOut;
      if (isTaken && content !== 'absent' && type.wants(name) && this.#isPresent(typeUrl, name)) {
        this.deprived.push(`${typeUrl} ${nonce}: ${name} ${content}`);
      }
    }
  }

  #noteRepeated(type: ModelType, { typeUrl, resources }: Response): void {
    for (const [name, content] of resources) {
      const wholeState = !this.#delta && isWild(typeUrl);
      if (type.held.get(name) === content && !type.repeats(name) && !wholeState && !type.wavered) {
        this.repeated.push(`${typeUrl} ${name} ${content}`);
      }
      // When a cluster is sent, its assignment follows, changed or not.
      if (typeUrl === CDS) for (const other of this.types.values()) if (other !== type) other.mayRepeat([name]);
    }
  }
}

function hasName({ wildcard, names }: Wish, name: string): boolean {
  return wildcard || names.has(name);
}

function messageAbout(names: readonly string[]): string {
  return `Error: ${names.join(': no, ')}: no`;
}

function isWild(typeUrl: string): boolean {
  return typeUrl === CDS || typeUrl === LDS;
}
