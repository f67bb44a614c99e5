import type { EventEmitter } from 'node:events';

/** A connection, or a response that is being read. */
interface Open extends Pick<EventEmitter, 'once'> {
  destroy(): unknown;
}

/**
 * The open connections of a server, or its responses of one kind. When there is one too many, the address with most of
 * them loses its oldest. So an address that floods the server closes its own connections, and a probe from another
 * address, or a short one, still gets its response.
 */
export class Connections {
  readonly #most: number;
  /** By address, oldest first. */
  readonly #ofAddress = new Map<string, Set<Open>>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** @param address of whoever is at the other end. */
  add(open: Open, address = ''): void {
    const ofAddress = this.#ofAddress.get(address) ?? new Set();
    this.#ofAddress.set(address, ofAddress.add(open));
    this.#all++;
    open.once('close', () => this.#remove(address, open));
    if (this.#all > this.#most) this.#makeRoom();
  }

  #makeRoom(): void {
    let address = '';
    let most: ReadonlySet<Open> = new Set();
    for (const [each, sockets] of this.#ofAddress) if (sockets.size > most.size) [address, most] = [each, sockets];
    const [oldest] = most;
    this.#remove(address, oldest!);
    oldest!.destroy();
  }

  #remove(address: string, open: Open): void {
    const ofAddress = this.#ofAddress.get(address);
    if (!ofAddress?.delete(open)) return;
    this.#all--;
    if (ofAddress.size === 0) this.#ofAddress.delete(address);
  }
}
