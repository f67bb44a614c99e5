import type { Delivery } from '../protocol/delivery.ts';
import type { Sent } from '../protocol/sent.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';

/** A response with what other resources belong to. */
interface Followed {
  readonly typeUrl: string;
  readonly sent: Sent;
}

/** A stream, as its siblings see it. */
interface Sibling {
  readonly connection: string;
  readonly proxy: { readonly nodeId: string } | undefined;
  readonly delivery: Delivery | undefined;
  siblings: Siblings | undefined;
  /** Something is owed. */
  wake(): void;
}

/** Clients with a stream, each on one connection. */
export class Clients {
  /** Type URLs that another type is behind. */
  readonly #followed: ReadonlySet<string>;
  readonly #only = new Map<string, Sibling>();

  constructor(types: ResourceTypes) {
    this.#followed = new Set(types.flatMap(({ behind }) => behind ?? []));
  }

  opened(stream: Sibling): void {
    const key = clientOf(stream);
    const other = this.#only.get(key);
    if (other === undefined) this.#only.set(key, stream);
    else (other.siblings ?? new Siblings(this.#followed).add(other)).add(stream);
  }

  closed(stream: Sibling): void {
    stream.siblings?.delete(stream);
    const key = clientOf(stream);
    if (this.#only.get(key) !== stream) return;
    const [next] = stream.siblings?.streams ?? [];
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
  /** With what each was sent that the others have not been told of. */
  readonly #streams = new Map<Sibling, Followed[]>();

  constructor(followed: ReadonlySet<string>) {
    this.#followed = followed;
  }

  get streams(): Iterable<Sibling> {
    return this.#streams.keys();
  }

  add(stream: Sibling): this {
    stream.siblings = this;
    this.#streams.set(stream, []);
    return this;
  }

  delete(stream: Sibling): void {
    this.#streams.delete(stream);
  }

  sent(stream: Sibling, { typeUrl }: ResourceType, sent: Sent): void {
    if (this.#streams.size > 1 && this.#followed.has(typeUrl)) this.#streams.get(stream)?.push({ typeUrl, sent });
  }

  /** The connection has taken all that was sent. */
  written(stream: Sibling): void {
    const sent = this.#streams.get(stream)?.splice(0) ?? [];
    if (sent.length === 0) return;
    for (const sibling of this.#streams.keys()) if (sibling !== stream) this.#follow(sibling, sent);
  }

  /** A stream asks for a type for the first time: others may have been sent what that type is behind. */
  asked(stream: Sibling, { behind }: ResourceType): void {
    if (behind === undefined) return;
    for (const sibling of this.#streams.keys()) {
      if (sibling === stream) continue;
      const followed = sibling.delivery?.subscriptions.find((each) => each?.type.typeUrl === behind);
      for (const sent of followed?.inFlight ?? []) this.#follow(stream, [{ typeUrl: behind, sent }]);
    }
  }

  #follow(stream: Sibling, followed: readonly Followed[]): void {
    const { delivery } = stream;
    if (delivery === undefined) return;
    for (const { typeUrl, sent } of followed) {
      // Who asks for it here as well has it from here: a hundred such streams would follow each other.
      const isAsked = delivery.subscriptions.some((each) => each?.type.typeUrl === typeUrl);
      if (!isAsked) delivery.follow(typeUrl, sent);
    }
    if (delivery.owes) stream.wake();
  }
}

const clientOf = ({ connection, proxy }: Sibling): string => `${connection} ${proxy?.nodeId ?? ''}`;
