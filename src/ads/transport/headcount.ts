/** Counts clients in total and per address; one address may take half. */
export class Headcount {
  readonly #most: number;
  readonly #mostOfAddress: number;
  readonly #ofAddress = new Map<string, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
    this.#mostOfAddress = Math.ceil(most / 2);
  }

  /** Why there is no room for one more; undefined if there is room. */
  enter(address: string): 'full' | 'address full' | undefined {
    const count = this.#ofAddress.get(address) ?? 0;
    if (this.#all >= this.#most) return 'full';
    if (count >= this.#mostOfAddress) return 'address full';
    this.#all++;
    this.#ofAddress.set(address, count + 1);
    return undefined;
  }

  /** The address with the most clients, if these are more than so many. */
  largest(moreThan: number): string | undefined {
    let found: string | undefined;
    let most = moreThan;
    for (const [address, count] of this.#ofAddress) if (count > most) [found, most] = [address, count];
    return found;
  }

  leave(address: string): void {
    const count = this.#ofAddress.get(address) ?? 0;
    this.#all--;
    if (count > 1) this.#ofAddress.set(address, count - 1);
    else this.#ofAddress.delete(address);
  }
}
