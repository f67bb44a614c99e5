/** What a client last said against what it was sent, by type. */
export class TypeHistory {
  /** Nearly every client says nothing. */
  #errors: Map<string, { readonly nonce: number; readonly message: string }> | undefined;

  /** @param nonce of the newest response by then. */
  rejected(typeUrl: string, message: string, nonce: number): void {
    (this.#errors ??= new Map()).set(typeUrl, { nonce, message });
  }

  /** Undefined once the client has accepted a later response, unless it still rejects something. */
  errorOf(typeUrl: string, acknowledged: number, rejects: boolean): string | undefined {
    const error = this.#errors?.get(typeUrl);
    return error !== undefined && (rejects || acknowledged < error.nonce) ? error.message : undefined;
  }
}
