import type { Sent } from '../protocol/sent.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';
import type { AdsStream } from './stream.ts';

/** A response with what other resources belong to. */
interface Followed {
  readonly typeUrl: string;
  readonly sent: Sent;
}

/** Clients with a stream, each on one connection. */
export class Clients {
  /** Type URLs that another type is behind. */
  readonly #followed: ReadonlySet<string>;
  readonly #wake: (stream: AdsStream) => void;
  readonly #only = new Map<string, AdsStream>();
  /** Of streams whose client has, or had, more than one. */
  readonly #siblings = new Map<AdsStream, Siblings>();

  constructor(types: ResourceTypes, wake: (stream: AdsStream) => void) {
    this.#followed = new Set(types.flatMap(({ behind }) => behind ?? []));
    this.#wake = wake;
  }

  opened(stream: AdsStream): void {
    const key = clientOf(stream);
    const other = this.#only.get(key);
    if (other === undefined) this.#only.set(key, stream);
    else {
      const siblings = this.of(other) ?? new Siblings(this.#followed, this.#wake);
      for (const each of [other, stream]) {
        siblings.add(each);
        this.#siblings.set(each, siblings);
      }
    }
  }

  /** The other streams of its client, if there are any. */
  of(stream: AdsStream): Siblings | undefined {
    return this.#siblings.get(stream);
  }

  closed(stream: AdsStream): void {
    const siblings = this.of(stream);
    siblings?.delete(stream);
    this.#siblings.delete(stream);
    const key = clientOf(stream);
    if (this.#only.get(key) !== stream) return;
    const [next] = siblings?.streams ?? [];
    if (next === undefined) this.#only.delete(key);
    else this.#only.set(key, next);
  }
}

/**
 * Streams of one client on one connection, which are as many as the connection may have (100). An Envoy with clusters
 * from their own service and assignments over ADS warms a changed cluster until its assignment comes again, as it does
 * over ADS alone, and asks for it on neither stream. So what is sent on one stream is followed by what belongs to it on
 * the others, once the connection has taken it. Nearly every client has one stream, and no siblings.
 */
export class Siblings {
  readonly #followed: ReadonlySet<string>;
  readonly #wake: (stream: AdsStream) => void;
  /** With what each was sent that the others have not been told of. */
  readonly #streams = new Map<AdsStream, Followed[]>();

  constructor(followed: ReadonlySet<string>, wake: (stream: AdsStream) => void) {
    this.#followed = followed;
    this.#wake = wake;
  }

  get streams(): Iterable<AdsStream> {
    return this.#streams.keys();
  }

  add(stream: AdsStream): void {
    if (!this.#streams.has(stream)) this.#streams.set(stream, []);
  }

  delete(stream: AdsStream): void {
    this.#streams.delete(stream);
  }

  sent(stream: AdsStream, { typeUrl }: ResourceType, sent: Sent): void {
    if (this.#streams.size > 1 && this.#followed.has(typeUrl)) this.#streams.get(stream)?.push({ typeUrl, sent });
  }

  /** The connection has taken all that was sent. */
  written(stream: AdsStream): void {
    const sent = this.#streams.get(stream)?.splice(0) ?? [];
    if (sent.length === 0) return;
    for (const sibling of this.#streams.keys()) if (sibling !== stream) this.#follow(sibling, sent);
  }

  /** A stream asks for a type for the first time: others may have been sent what that type is behind. */
  asked(stream: AdsStream, { behind }: ResourceType): void {
    if (behind === undefined) return;
    for (const sibling of this.#streams.keys()) {
      if (sibling === stream) continue;
      const followed = sibling.delivery?.subscriptions.find((each) => each?.type.typeUrl === behind);
      for (const sent of followed?.inFlight ?? []) this.#follow(stream, [{ typeUrl: behind, sent }]);
    }
  }

  #follow(stream: AdsStream, followed: readonly Followed[]): void {
    const { delivery } = stream;
    if (delivery === undefined) return;
    for (const { typeUrl, sent } of followed) {
      // Who asks for it here as well has it from here: a hundred such streams would follow each other.
      const isAsked = delivery.subscriptions.some((each) => each?.type.typeUrl === typeUrl);
      if (!isAsked) delivery.follow(typeUrl, sent);
    }
    if (delivery.owes) this.#wake(stream);
  }
}

const clientOf = ({ connection, proxy }: AdsStream): string => `${connection} ${proxy?.nodeId ?? ''}`;
