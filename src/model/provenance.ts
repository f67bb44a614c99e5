import type { ObjectRef } from '../api/object.ts';

/** A place in an object that something was generated from. */
export interface Source {
  readonly object: ObjectRef;
  /** `spec.http[2]`; empty if no single field is responsible. */
  readonly field: string;
}

export function wholeObjects(objects: readonly ObjectRef[]): readonly Source[] {
  return objects.map((object) => ({ object, field: '' }));
}
