import type { AllocatedAddress } from '../model/address-claim.ts';
import type { Verdict } from '../mesh/findings/conditions.ts';

/** Who writes statuses. */
export interface StatusSink {
  set(key: string, status: Verdict & { readonly addresses?: readonly AllocatedAddress[] }): void;
  forget(key: string): void;
}

/** Statuses of objects; those of ServiceEntries also have automatic addresses, which change on their own. */
export class StatusesWithAddresses {
  readonly #sink: StatusSink;
  readonly #addressesOf: (key: string) => readonly AllocatedAddress[];
  /** Of ServiceEntries. */
  readonly #said = new Map<string, Verdict>();

  constructor(sink: StatusSink, addressesOf: (key: string) => readonly AllocatedAddress[]) {
    this.#sink = sink;
    this.#addressesOf = addressesOf;
  }

  set(key: string, status: Verdict): void {
    if (status.kind !== 'ServiceEntry') {
      this.#sink.set(key, status);
      return;
    }
    this.#said.set(key, status);
    this.#sink.set(key, { ...status, addresses: this.#addressesOf(key) });
  }

  /** The addresses of an object may be others now. */
  again(key: string): void {
    const status = this.#said.get(key);
    if (status !== undefined) this.set(key, status);
  }

  forget(key: string): void {
    this.#said.delete(key);
    this.#sink.forget(key);
  }
}
