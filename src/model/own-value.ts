/** A member of a record with user-chosen names: `constructor` is a member only if someone put it there. */
export function ownValue<V>(record: Readonly<Record<string, V>>, name: string): V | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
