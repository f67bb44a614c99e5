import { type MeshCluster, reservationProblem } from './names.ts';

/** Which remote cluster has which id: shared by the readers of all of them. */
export class ClusterIds {
  readonly #own: MeshCluster;
  readonly #names = new Map<number, string>();
  /** A cluster that is being reached in another way is read twice. */
  readonly #counts = new Map<number, number>();

  constructor(own: MeshCluster) {
    this.#own = own;
  }

  /** Returns how to give the id back, or why the cluster cannot have it. */
  reserve(remote: MeshCluster): { readonly release: () => void } | { readonly problem: string } {
    const problem = reservationProblem(remote, this.#own, this.#names);
    if (problem !== undefined) return { problem };
    const { id, name } = remote;
    this.#names.set(id, name);
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
    let isHeld = true;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        const left = (this.#counts.get(id) ?? 0) - 1;
        this.#counts.set(id, left);
        if (left > 0) return;
        this.#counts.delete(id);
        this.#names.delete(id);
      },
    };
  }
}
