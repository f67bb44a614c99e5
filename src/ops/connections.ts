import type { Socket } from 'node:net';

/**
 * The open connections of a server. When there is one too many, the address with the most connections loses its oldest.
 * So an address that floods the server closes its own connections, and a probe from another address, or a short one,
 * still gets its response.
 */
export class Connections {
  readonly #most: number;
  /** By address, oldest first. */
  readonly #ofAddress = new Map<string, Set<Socket>>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const ofAddress = this.#ofAddress.get(address) ?? new Set();
    this.#ofAddress.set(address, ofAddress.add(socket));
    this.#all++;
    socket.once('close', () => this.#remove(address, socket));
    if (this.#all > this.#most) this.#makeRoom();
  }

  #makeRoom(): void {
    let address = '';
    let most: ReadonlySet<Socket> = new Set();
    for (const [each, sockets] of this.#ofAddress) if (sockets.size > most.size) [address, most] = [each, sockets];
    const [oldest] = most;
    this.#remove(address, oldest!);
    oldest!.destroy();
  }

  #remove(address: string, socket: Socket): void {
    const ofAddress = this.#ofAddress.get(address);
    if (!ofAddress?.delete(socket)) return;
    this.#all--;
    if (ofAddress.size === 0) this.#ofAddress.delete(address);
  }
}
