import type { World } from './publication.ts';
import type { Viewpoint } from './world.ts';

/** The viewpoints of worlds, one object for each: what follows from one is shared by all who have it. */
export class Viewpoints {
  readonly #known = new Map<string, { readonly viewpoint: Viewpoint; worlds: number }>();

  /** To be given back with {@link release}. */
  of({ qualifiers, excluded = [] }: World): Viewpoint {
    const viewpoint = { qualifiers, excluded: new Set(excluded) };
    const key = keyOf(viewpoint);
    let known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, (known = { viewpoint, worlds: 0 }));
    known.worlds++;
    return known.viewpoint;
  }

  release(viewpoint: Viewpoint): void {
    const key = keyOf(viewpoint);
    const known = this.#known.get(key);
    if (known !== undefined && --known.worlds === 0) this.#known.delete(key);
  }
}

function keyOf({ qualifiers, excluded }: Viewpoint): string {
  return JSON.stringify([qualifiers, [...excluded]]);
}
