import type { Delivery } from '../delivery.ts';
import { type Asked, CDS, decodeFrame, EDS, encodeRequest, LDS, type Response, type TestServer } from './world.ts';

/** What a client that obeys the protocol, and nothing more, knows of one type. */
export class ModelType {
  wildcard = false;
  names = new Set<string>();
  requested = false;
  /** What it uses: name to version. */
  readonly held = new Map<string, string>();
  /** Responses that arrived and are not answered. */
  readonly unanswered: Response[] = [];
  /** Names that may be sent although the client was sent the same version before. */
  readonly mayRepeat = new Set<string>();
  /** The version that each name was sent in last. */
  readonly lastSent = new Map<string, string>();
  acceptedVersion = '';
  lastNonce = '';
}

/**
 * A client that takes responses when it is told to. A version that starts with `bad` is refused: clusters and listeners
 * beside it are applied and it is named, as Envoy does; of assignments and tables some are applied and nobody is named.
 */
export class ModelClient {
  readonly types = new Map<string, ModelType>();
  readonly delivery: Delivery;
  readonly #delta: boolean;
  readonly #server: TestServer;
  /** Repetitions without a reason. */
  readonly repeated: string[] = [];

  constructor(server: TestServer, delivery: Delivery, delta: boolean) {
    this.#server = server;
    this.delivery = delivery;
    this.#delta = delta;
  }

  type(typeUrl: string): ModelType {
    let type = this.types.get(typeUrl);
    if (type === undefined) this.types.set(typeUrl, (type = new ModelType()));
    return type;
  }

  /** Names that it wants besides those that it wants already; none at first: everything. */
  subscribe(typeUrl: string, names: readonly string[], now: number): void {
    const type = this.type(typeUrl);
    const first = !type.requested;
    type.requested = true;
    if (first) type.wildcard = names.length === 0 && (typeUrl === CDS || typeUrl === LDS);
    for (const name of names) {
      type.names.add(name);
      type.mayRepeat.add(name);
    }
    if (type.wildcard && !this.#delta) return first ? this.#send({ typeUrl, names: [] }, now) : undefined;
    this.#send(
      { typeUrl, names: this.#delta ? names : [...type.names], nonce: this.#delta ? '' : type.lastNonce },
      now,
    );
  }

  unsubscribe(typeUrl: string, name: string, now: number): void {
    const type = this.type(typeUrl);
    // In state of the world a request that answers an old response is not heard: two of them would cancel each other.
    if (!this.#delta && type.unanswered.length > 0) return;
    if (!type.names.delete(name) || type.wildcard) return;
    type.held.delete(name);
    type.lastSent.delete(name);
    if (this.#delta) this.#send({ typeUrl, unsubscribe: [name] }, now);
    else this.#send({ typeUrl, names: [...type.names], nonce: type.lastNonce }, now);
  }

  /** Takes over all responses that the server is ready to send. */
  receive(now: number): boolean {
    let received = false;
    for (let frame = this.delivery.next(now); frame !== undefined; frame = this.delivery.next(now)) {
      received = true;
      const response = decodeFrame(frame.slices, this.#delta);
      const type = this.type(response.typeUrl);
      type.unanswered.push(response);
      this.#check(type, response);
    }
    return received;
  }

  /** Answers the oldest response; `some`: which of a refused response's tables and assignments are applied. */
  answer(typeUrl: string, some: number, now: number): boolean {
    const type = this.type(typeUrl);
    const response = type.unanswered.shift();
    if (response === undefined) return false;
    type.lastNonce = response.nonce;
    const wanted = [...response.resources].filter(([name]) => type.wildcard || type.names.has(name));
    const bad = wanted.filter(([, version]) => version.startsWith('bad')).map(([name]) => name);
    const namesThem = typeUrl === CDS || typeUrl === LDS;
    let applied = wanted.filter(([name]) => !bad.includes(name));
    if (bad.length > 0 && !namesThem) applied = applied.slice(0, some);
    for (const [name, version] of applied) type.held.set(name, version);
    for (const name of response.removed) type.held.delete(name);
    if (!this.#delta && namesThem) {
      for (const name of [...type.held.keys()]) if (!response.resources.has(name)) type.held.delete(name);
    }
    const error = bad.length === 0 ? undefined : namesThem ? `Error: ${bad.join(': no, ')}: no` : 'something is wrong';
    if (error !== undefined) for (const name of response.resources.keys()) type.mayRepeat.add(name);
    if (error === undefined) type.acceptedVersion = response.version;
    const names = this.#delta || type.wildcard ? [] : [...type.names];
    this.#send({ typeUrl, nonce: response.nonce, error, names, version: type.acceptedVersion }, now);
    return true;
  }

  /** A cluster that is sent is followed by its assignment, changed or not. */
  #check(type: ModelType, { typeUrl, resources, removed }: Response): void {
    const first = type.lastSent.size === 0;
    for (const [name, version] of resources) {
      const fullState = !this.#delta && (typeUrl === CDS || typeUrl === LDS);
      if (type.lastSent.get(name) === version && !type.mayRepeat.has(name) && !fullState) {
        this.repeated.push(`${typeUrl} ${name} ${version}`);
      }
      if (typeUrl === CDS && (!fullState || type.lastSent.get(name) !== version || first))
        this.type(EDS).mayRepeat.add(name);
      type.lastSent.set(name, version);
      type.mayRepeat.delete(name);
    }
    for (const name of removed) type.lastSent.delete(name);
    if (!this.#delta && (typeUrl === CDS || typeUrl === LDS)) {
      for (const name of [...type.lastSent.keys()]) if (!resources.has(name)) type.lastSent.delete(name);
    }
  }

  #send(asked: Asked, now: number): void {
    this.delivery.request(encodeRequest(asked, this.#delta, this.#server.hasher), now);
  }
}
