import type { ConnectedProxy, DisconnectedProxy } from '../ads/types.ts';
import type { Write } from '../cache/graph.ts';
import type { Clock } from '../base/clock.ts';
import type { Inputs } from '../mesh/inputs.ts';

/** A proxy that is gone for longer will not be back soon: Envoy retries within 30 s. Milliseconds. */
export const LINGER_MS = 60_000;
/** Limit for all departed nodes together: beyond it, the oldest are forgotten. Characters of JSON. */
const MOST = 64 * 1024 * 1024;

export interface DepartureOptions {
  readonly signal: AbortSignal;
  /** Called when nothing needs to be computed any more for the proxy of this stream. */
  readonly forgotten: (stream: string) => void;
  /** The address that the proxy of a stream came from, while something is computed for it. */
  readonly peerOf: (stream: string) => string | undefined;
}

interface Departure {
  readonly stream: string;
  readonly peer: string | undefined;
  readonly at: number;
  readonly size: number;
}

/**
 * Decides which proxies the mesh computes for. Streams break all at once and come back within seconds (a replica goes
 * away, the network blinks), so what was made for a proxy is kept until the same node is back or {@link LINGER_MS} have
 * passed, instead of being discarded and computed again. This does not apply to a stream that never acknowledged
 * anything, nor came back with anything that is current: it may not be a proxy.
 */
export class Departures {
  readonly #proxies: Inputs['proxies'];
  readonly #write: (write: Write) => void;
  readonly #forgotten: (stream: string) => void;
  readonly #peerOf: (stream: string) => string | undefined;
  readonly #clock: Pick<Clock, 'now' | 'after'>;
  /** By node id, in order of departure. */
  readonly #gone = new Map<string, Departure>();
  /** Their node ids by address, so that a rejection for one address looks at no other's. */
  readonly #goneOf = new Map<string, Set<string>>();
  #size = 0;
  #cancel: (() => void) | undefined;
  readonly #signal: AbortSignal;

  constructor(
    proxies: Inputs['proxies'],
    write: (write: Write) => void,
    clock: Pick<Clock, 'now' | 'after'>,
    { signal, forgotten, peerOf }: DepartureOptions,
  ) {
    this.#proxies = proxies;
    this.#write = write;
    this.#forgotten = forgotten;
    this.#peerOf = peerOf;
    this.#clock = clock;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#cancel?.(), { once: true });
  }

  connected(proxy: ConnectedProxy): void {
    this.#forget(proxy.nodeId);
    this.#write(this.#proxies.write(proxy.stream, proxy));
  }

  disconnected({ stream, nodeId, acknowledged }: DisconnectedProxy): void {
    // No proxy returns to a process that is ending, and a timer would keep it alive.
    if (this.#signal.aborted) return;
    this.#forget(nodeId);
    const proxy = this.#proxies.get(stream);
    if (proxy === undefined || !acknowledged) {
      this.#forgotten(stream);
      return;
    }
    const size = JSON.stringify(proxy).length;
    const peer = this.#peerOf(stream);
    this.#gone.set(nodeId, { stream, peer, at: this.#clock.now(), size });
    if (peer !== undefined) this.#nodesOf(peer).add(nodeId);
    this.#size += size;
    for (const oldest of this.#gone.keys()) {
      if (this.#size <= MOST) break;
      this.#forget(oldest);
    }
    this.#cancel ??= this.#clock.after(LINGER_MS, () => this.#sweep());
  }

  /** Stops waiting for the departed proxies of an address; undefined: of all addresses. */
  giveUp(peer: string | undefined): void {
    const nodeIds = peer === undefined ? this.#gone : this.#goneOf.get(peer);
    for (const nodeId of nodeIds?.keys() ?? []) this.#forget(nodeId);
  }

  #nodesOf(peer: string): Set<string> {
    let nodeIds = this.#goneOf.get(peer);
    if (nodeIds === undefined) this.#goneOf.set(peer, (nodeIds = new Set()));
    return nodeIds;
  }

  #forget(nodeId: string): void {
    const departure = this.#gone.get(nodeId);
    if (departure === undefined) return;
    const { stream, peer, size } = departure;
    this.#gone.delete(nodeId);
    this.#size -= size;
    const ofPeer = peer === undefined ? undefined : this.#goneOf.get(peer);
    if (ofPeer?.delete(nodeId) && ofPeer.size === 0) this.#goneOf.delete(peer!);
    this.#forgotten(stream);
  }

  #sweep(): void {
    this.#cancel = undefined;
    const now = this.#clock.now();
    for (const [nodeId, { at }] of this.#gone) {
      if (at + LINGER_MS > now) {
        this.#cancel = this.#clock.after(at + LINGER_MS - now, () => this.#sweep());
        return;
      }
      this.#forget(nodeId);
    }
  }
}
