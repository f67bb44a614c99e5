import type { Source } from '../../model/provenance.ts';

/** Asked only where somebody wants to know. */
export type From = () => readonly Source[];

export const fromNothing: From = () => [];

/**
 * Records which objects each encoded part came from. A server has none: transforms are pure, so whoever asks
 * (`translate --explain`) computes again with one.
 */
export class Trace {
  readonly #sources = new WeakMap<object, readonly Source[]>();
  readonly #routes = new WeakMap<object, readonly (readonly Source[])[]>();

  note(piece: object, sources: readonly Source[]): void {
    this.#sources.set(piece, sources);
  }

  /** @param sources of each of the routes that a piece holds, in their order. */
  noteRoutes(piece: object, sources: readonly (readonly Source[])[]): void {
    this.#routes.set(piece, sources);
  }

  /** Of the piece as such; for a virtual host, of its names. */
  of(piece: object): readonly Source[] {
    return this.#sources.get(piece) ?? [];
  }

  routesOf(piece: object): readonly (readonly Source[])[] {
    return this.#routes.get(piece) ?? [];
  }
}
