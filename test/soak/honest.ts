import { nodeMessage } from '../harness/raw-ads.ts';
import { AdsStream, CDS, EDS, LDS, RDS, type Response } from './ads-stream.ts';

/** The types in the order in which Envoy asks for them. */
const TYPES = [CDS, EDS, LDS, RDS];

/**
 * A proxy that asks for what Envoy asks for, accepts all of it, and reconnects a moment after it was disconnected; over
 * delta with the versions of what it has.
 */
export class Honest {
  readonly #port: number;
  readonly #from: string;
  readonly #delta: boolean;
  readonly #node: Uint8Array;
  /** The clusters whose endpoints it asks for. */
  #clusters: readonly string[] = [];
  /** Over delta, what it has, by type: name -> version. */
  readonly #held = new Map(TYPES.map((typeUrl) => [typeUrl, new Map<string, string>()]));
  /** The last response of each type on this stream. */
  readonly #answered = new Map<string, { readonly nonce: string; readonly version: string }>();
  #stream: AdsStream | undefined;
  #resumes = false;
  #stopped = false;
  /** A text to wait for in any resource. */
  #mark = '';
  #hasMark = false;
  reconnects = -1;

  constructor(port: number, index: number, delta: boolean) {
    this.#port = port;
    this.#delta = delta;
    this.#from = `127.0.1.${1 + (index % 10)}`;
    const id = `sidecar~10.7.${index >> 8}.${index & 255}~client-${index}.shop~shop.svc.cluster.local`;
    this.#node = nodeMessage(id);
    this.#connect();
  }

  get hasMark(): boolean {
    return this.#hasMark;
  }

  /** Who it is, and the last responses that it received. */
  describe(): string {
    const protocol = this.#delta ? 'delta' : 'state of the world';
    const told = [...this.#answered].map(
      ([typeUrl, { nonce }]) => `${typeUrl.slice(typeUrl.lastIndexOf('.') + 1)} ${nonce}`,
    );
    return `${this.#from} (${protocol}, came back ${this.reconnects} times, ${told.join(' ') || 'was told nothing'})`;
  }

  /** Call before making the change that contains the mark. */
  expect(mark: string): void {
    this.#mark = mark;
    this.#hasMark = false;
  }

  /** Breaks its connection. */
  cut(): void {
    this.#stream?.close();
    this.#stream = undefined;
    setTimeout(() => this.#connect(), 200);
  }

  stop(): void {
    this.#stopped = true;
    this.#stream?.close();
  }

  #connect(): void {
    if (this.#stopped) return;
    this.reconnects++;
    this.#answered.clear();
    const stream = new AdsStream(
      { port: this.#port, from: this.#from, delta: this.#delta },
      (response) => {
        if (stream === this.#stream) this.#take(stream, response);
      },
      () => {
        if (stream === this.#stream) setTimeout(() => this.#connect(), 200);
      },
    );
    this.#stream = stream;
    // Over delta it says what it has, and asks for everything at once. Otherwise it starts from scratch.
    this.#resumes = this.#delta && this.#heldOf(CDS).size > 0;
    for (const typeUrl of this.#resumes ? TYPES : [CDS]) this.#ask(stream, typeUrl);
  }

  #ask(stream: AdsStream, typeUrl: string): void {
    stream.send({
      typeUrl,
      names: this.#namesOf(typeUrl),
      ...(typeUrl === CDS && { node: this.#node }),
      ...(this.#resumes && { initial: this.#heldOf(typeUrl) }),
    });
  }

  #take(stream: AdsStream, { typeUrl, nonce, version, resources, removed, message }: Response): void {
    const held = this.#heldOf(typeUrl);
    const before = this.#clusters;
    if (this.#delta) for (const [name, known] of resources) held.set(name, known);
    if (this.#mark !== '' && !this.#hasMark) this.#hasMark = message.includes(this.#mark);
    for (const name of removed) held.delete(name);
    if (typeUrl === CDS) this.#clusters = this.#delta ? outboundOf(held) : sharedOutboundOf(resources);
    const isFirst = this.#answered.size === 0 && !this.#resumes;
    this.#answered.set(typeUrl, { nonce, version });
    this.#send(stream, typeUrl, this.#delta ? [] : this.#namesOf(typeUrl));
    if (isFirst) {
      for (const other of TYPES) if (other !== CDS) this.#ask(stream, other);
    } else if (typeUrl === CDS) {
      const fresh = newOf(before, this.#clusters);
      if (fresh.length > 0) this.#send(stream, EDS, this.#delta ? fresh : this.#clusters);
    }
  }

  /** Also acknowledges the last response of the type. */
  #send(stream: AdsStream, typeUrl: string, names: readonly string[]): void {
    const { nonce = '', version = '' } = this.#answered.get(typeUrl) ?? {};
    stream.send({ typeUrl, names, nonce, ...(!this.#delta && { version }) });
  }

  #namesOf(typeUrl: string): readonly string[] {
    if (typeUrl === RDS) return ['80'];
    return typeUrl === EDS ? this.#clusters : [];
  }

  #heldOf(typeUrl: string): Map<string, string> {
    return this.#held.get(typeUrl)!;
  }
}

const outboundOf = (clusters: ReadonlyMap<string, string>): readonly string[] =>
  [...clusters.keys()].filter((name) => name.startsWith('outbound'));

/** The same for a state of the world, which many clients share. */
function sharedOutboundOf(clusters: ReadonlyMap<string, string>): readonly string[] {
  let names = outboundNames.get(clusters);
  if (names === undefined) outboundNames.set(clusters, (names = outboundOf(clusters)));
  return names;
}

const outboundNames = new WeakMap<ReadonlyMap<string, string>, readonly string[]>();

function newOf(before: readonly string[], after: readonly string[]): readonly string[] {
  if (before === after) return [];
  const known = new Set(before);
  return after.filter((name) => !known.has(name));
}
