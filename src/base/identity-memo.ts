/**
 * Results that were computed once and hold wherever the same objects are involved: looked up by identity, so that
 * finding one costs the same whatever the size of the objects. Forgotten with the objects.
 */
export class IdentityMemo<T> {
  readonly #most: number;
  #known = new Known<T>();
  #count = 0;

  /** @param most how many results are kept; beyond that, all are forgotten. */
  constructor(most = Infinity) {
    this.#most = most;
  }

  /** @param from the objects that the result follows from, in order. None of them may change. */
  of(from: readonly object[], work: () => T): T {
    if (this.#count >= this.#most) {
      this.#known = new Known<T>();
      this.#count = 0;
    }
    let known = this.#known;
    for (const object of from) known = known.with(object);
    if (known.result === undefined) {
      known.result = { is: work() };
      this.#count++;
    }
    return known.result.is;
  }
}

/** What follows from some objects, and from these together with others. */
class Known<T> {
  result: { readonly is: T } | undefined;
  readonly #further = new WeakMap<object, Known<T>>();

  with(object: object): Known<T> {
    let known = this.#further.get(object);
    if (known === undefined) this.#further.set(object, (known = new Known<T>()));
    return known;
  }
}
