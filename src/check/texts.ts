/** A text in an object, and where it is. */
export interface Text {
  /** As kubectl prints it. */
  readonly field: string;
  readonly text: string;
}

/**
 * The texts at a place of an object, in order; what has another shape is passed over.
 *
 * @param at `spec.rules[].to[]`: of every element. `when[source.namespace]`: of the elements with this `key`.
 */
export function textsAt(object: unknown, at: string): readonly Text[] {
  let found: { readonly field: string; readonly value: unknown }[] = [{ field: '', value: object }];
  for (const [, name, selected] of at.matchAll(/([a-zA-Z]+)|\[([^\]]*)\]/g))
    found = found.flatMap(({ field, value }) => {
      if (name !== undefined)
        return isRecord(value) ? [{ field: field === '' ? name : `${field}.${name}`, value: value[name] }] : [];
      if (!Array.isArray(value)) return [];
      return value.flatMap((element: unknown, i) =>
        selected === '' || (isRecord(element) && element['key'] === selected)
          ? [{ field: `${field}[${i}]`, value: element }]
          : [],
      );
    });
  return found.flatMap(({ field, value }) => (typeof value === 'string' ? [{ field, text: value }] : []));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
