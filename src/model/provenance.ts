import type { ObjectRef } from '../api/object.ts';

/** A place in an object that something was made from. */
export interface Source {
  readonly object: ObjectRef;
  /** `spec.http[2]`; empty where no single one did it. */
  readonly field: string;
}

export function wholeObjects(objects: readonly ObjectRef[]): readonly Source[] {
  return objects.map((object) => ({ object, field: '' }));
}
