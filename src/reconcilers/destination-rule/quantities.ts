import type { Field } from '../field.ts';

/** Milliseconds of a duration that must be a whole number of at least one. */
export function positiveDuration(field: Field): number | undefined {
  const ms = field.duration();
  if (ms === undefined || (ms >= 1 && Number.isInteger(ms))) return ms;
  field.invalid('must be a whole number of milliseconds, and at least 1ms.');
  return undefined;
}

/** A count from 0; an int32 in the API. */
export function count(field: Field): number | undefined {
  return field.integer(0, 2 ** 31 - 1);
}

/** A count from 0; a uint32 in the API. */
export function wideCount(field: Field): number | undefined {
  return field.integer(0, 2 ** 32 - 1);
}

/** A whole percentage. */
export function percent(field: Field): number | undefined {
  return field.integer(0, 100);
}

/** A percentage, possibly with a fraction. */
export function share(field: Field): number | undefined {
  const value = field.number();
  if (value === undefined || (value >= 0 && value <= 100)) return value;
  field.invalid(`must be from 0 to 100, not ${value}.`);
  return undefined;
}

/** Leaves out undefined members: what is absent in an object is absent in the model. */
export function present<Members extends object>(members: Members): Present<Members> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Present<Members>;
}

export type Present<Members> = {
  [Name in keyof Members as undefined extends Members[Name] ? never : Name]: Members[Name];
} & {
  [Name in keyof Members as undefined extends Members[Name] ? Name : never]?: Exclude<Members[Name], undefined>;
};
