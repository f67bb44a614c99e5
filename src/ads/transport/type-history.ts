/** What a client last said against what it was sent, by type. */
export class TypeHistory {
  readonly #errors = new Map<string, { readonly nonce: number; readonly message: string }>();

  /** @param nonce of the newest response by then. */
  refused(typeUrl: string, message: string, nonce: number): void {
    this.#errors.set(typeUrl, { nonce, message });
  }

  /** Undefined once the client has accepted a later response, unless it still rejects something. */
  errorOf(typeUrl: string, acknowledged: number, rejects: boolean): string | undefined {
    const error = this.#errors.get(typeUrl);
    return error !== undefined && (rejects || acknowledged < error.nonce) ? error.message : undefined;
  }
}
