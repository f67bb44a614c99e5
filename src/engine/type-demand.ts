/** Which streams have asked for types that are computed on demand. */
export class TypeDemand {
  readonly #write: (stream: string, typeUrls: readonly string[] | undefined) => void;
  /** By stream; a stream asks for few types. */
  readonly #asked = new Map<string, readonly string[]>();

  /** @param write undefined: the stream is gone. */
  constructor(write: (stream: string, typeUrls: readonly string[] | undefined) => void) {
    this.#write = write;
  }

  asked(stream: string, typeUrl: string): void {
    const before = this.#asked.get(stream) ?? [];
    if (before.includes(typeUrl)) return;
    const typeUrls = [...before, typeUrl].sort();
    this.#asked.set(stream, typeUrls);
    this.#write(stream, typeUrls);
  }

  left(stream: string): void {
    if (this.#asked.delete(stream)) this.#write(stream, undefined);
  }
}
