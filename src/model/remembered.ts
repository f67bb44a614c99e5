/** Computes something once for each object, which must not change: a list may be asked about by each element of another. */
export function remembered<Of extends object, Result>(compute: (of: Of) => Result): (of: Of) => Result {
  const known = new WeakMap<Of, { readonly result: Result }>();
  return (of) => {
    let found = known.get(of);
    if (found === undefined) known.set(of, (found = { result: compute(of) }));
    return found.result;
  };
}

/** Finds the first element of a list with a key. Elements without a key are not found. */
export function firstBy<Element, Key>(
  keyOf: (element: Element) => Key | undefined,
): (list: readonly Element[], key: Key) => Element | undefined {
  const byKey = remembered((list: readonly Element[]) => {
    const found = new Map<Key, Element>();
    for (const element of list) {
      const key = keyOf(element);
      if (key !== undefined && !found.has(key)) found.set(key, element);
    }
    return found;
  });
  return (list, key) => (list.length <= FEW ? list.find((element) => keyOf(element) === key) : byKey(list).get(key));
}

/** Whether a list has the element. */
export function contains(list: readonly string[], element: string): boolean {
  return list.length <= FEW ? list.includes(element) : setOf(list).has(element);
}

const setOf = remembered((list: readonly string[]): ReadonlySet<string> => new Set(list));

/** So few are gone through as fast. */
const FEW = 8;
