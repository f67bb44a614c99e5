import type { Source } from '../../model/provenance.ts';

/** Called only if the answer is needed. */
export type From = () => readonly Source[];

export const fromNothing: From = () => [];

/**
 * Records which objects each encoded part came from. A server has none: transforms are pure, so `translate --explain`
 * computes again with one.
 */
export class Trace {
  readonly #sources = new WeakMap<object, readonly Source[]>();
  readonly #routes = new WeakMap<object, readonly (readonly Source[])[]>();

  note(piece: object, sources: readonly Source[]): void {
    this.#sources.set(piece, sources);
  }

  /** @param sources of each route in the piece, in order. */
  noteRoutes(piece: object, sources: readonly (readonly Source[])[]): void {
    this.#routes.set(piece, sources);
  }

  /** Sources of the piece itself; for a virtual host, of its names. */
  of(piece: object): readonly Source[] {
    return this.#sources.get(piece) ?? [];
  }

  routesOf(piece: object): readonly (readonly Source[])[] {
    return this.#routes.get(piece) ?? [];
  }
}
