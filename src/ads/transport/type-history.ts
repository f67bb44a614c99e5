/** When a client was last sent something of each type, and what it last said against it. */
export class TypeHistory {
  readonly #sentAt = new Map<string, number>();
  readonly #errors = new Map<string, { readonly nonce: number; readonly message: string }>();

  sent(typeUrl: string, now: number): void {
    this.#sentAt.set(typeUrl, now);
  }

  /** @param nonce of the newest response by then. */
  refused(typeUrl: string, message: string, nonce: number): void {
    this.#errors.set(typeUrl, { nonce, message });
  }

  sentAt(typeUrl: string): number | undefined {
    return this.#sentAt.get(typeUrl);
  }

  /** Undefined once the client has accepted a later response, unless it still rejects something. */
  errorOf(typeUrl: string, acknowledged: number, rejects: boolean): string | undefined {
    const error = this.#errors.get(typeUrl);
    return error !== undefined && (rejects || acknowledged < error.nonce) ? error.message : undefined;
  }
}
