import type { Sent } from '../protocol/sent.ts';
import type { ResourceType, ResourceTypes } from '../types.ts';
import type { AdsStream } from './stream.ts';

/** A response with what other resources belong to. */
interface Followed {
  readonly typeUrl: string;
  readonly sent: Sent;
}

/**
 * Streams of one client on one connection, which are as many as the connection may have (100). An Envoy with clusters
 * from their own service and assignments over ADS warms a changed cluster until its assignment comes again, as it does
 * over ADS alone, and asks for it on neither stream. So what is sent on one stream is followed by what belongs to it on
 * the others, once the connection has taken it.
 */
export class Siblings {
  /** Type URLs that another type is behind. */
  readonly #followed: ReadonlySet<string>;
  readonly #wake: (stream: AdsStream) => void;
  /** By client: its streams, and what each was sent that the others have not been told of. */
  readonly #clients = new Map<string, Map<AdsStream, Followed[]>>();

  constructor(types: ResourceTypes, wake: (stream: AdsStream) => void) {
    this.#followed = new Set(types.flatMap(({ behind }) => behind ?? []));
    this.#wake = wake;
  }

  opened(stream: AdsStream): void {
    const key = clientOf(stream);
    const streams = this.#clients.get(key) ?? new Map<AdsStream, Followed[]>();
    this.#clients.set(key, streams.set(stream, []));
  }

  closed(stream: AdsStream): void {
    const key = clientOf(stream);
    const streams = this.#clients.get(key);
    if (streams?.delete(stream) === true && streams.size === 0) this.#clients.delete(key);
  }

  sent(stream: AdsStream, { typeUrl }: ResourceType, sent: Sent): void {
    const streams = this.#clients.get(clientOf(stream));
    if (streams !== undefined && streams.size > 1 && this.#followed.has(typeUrl))
      streams.get(stream)?.push({ typeUrl, sent });
  }

  /** The connection has taken all that was sent. */
  written(stream: AdsStream): void {
    const streams = this.#clients.get(clientOf(stream));
    const sent = streams?.get(stream)?.splice(0) ?? [];
    if (streams === undefined || sent.length === 0) return;
    for (const sibling of streams.keys()) if (sibling !== stream) this.#follow(sibling, sent);
  }

  /** A stream asks for a type for the first time: others may have been sent what that type is behind. */
  asked(stream: AdsStream, { behind }: ResourceType): void {
    if (behind === undefined) return;
    for (const sibling of this.#clients.get(clientOf(stream))?.keys() ?? []) {
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
