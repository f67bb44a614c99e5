/** Whether something holds; or, if that depends on something that was not said, on what. */
export type Truth = boolean | Unknown;

export interface Unknown {
  /** `the address of the client` */
  readonly unknown: string;
}

export function isUnknown(truth: Truth): truth is Unknown {
  return typeof truth === 'object';
}

/** Unknown only if none is false. */
export function all<T>(items: readonly T[], holds: (item: T) => Truth): Truth {
  let result: Truth = true;
  for (const item of items) {
    const truth = holds(item);
    if (truth === false) return false;
    if (isUnknown(truth)) result = truth;
  }
  return result;
}

/** Unknown only if none is true. */
export function some<T>(items: readonly T[], holds: (item: T) => Truth): Truth {
  return not(all(items, (item) => not(holds(item))));
}

export function not(truth: Truth): Truth {
  return isUnknown(truth) ? truth : !truth;
}
