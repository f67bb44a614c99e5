/** A member of a record whose names users choose: `constructor` is one only if somebody put it there. */
export function ownValue<V>(record: Readonly<Record<string, V>>, name: string): V | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
