/** Which names somebody changed. Thousands may have the same changers, and each changer may have changed thousands. */
export class NamesByChanger<T> {
  readonly #groups = new Map<T, ReadonlySet<string>[]>();

  /** @param changers by name; the same array for names that were changed alike. */
  constructor(changers: ReadonlyMap<string, readonly T[]>) {
    const alike = Map.groupBy(changers.keys(), (name) => changers.get(name)!);
    for (const [all, names] of alike) {
      const group = new Set(names);
      for (const changer of all) {
        const known = this.#groups.get(changer);
        if (known === undefined) this.#groups.set(changer, [group]);
        else known.push(group);
      }
    }
  }

  /** In groups. */
  of(changer: T): readonly ReadonlySet<string>[] {
    return this.#groups.get(changer) ?? [];
  }
}
