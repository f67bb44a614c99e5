import type { Field } from './field.ts';

/** Milliseconds of a duration that must be at least one, and a whole number of them. */
export function positiveDuration(field: Field): number | undefined {
  const ms = field.duration();
  if (ms === undefined || (ms >= 1 && Number.isInteger(ms))) return ms;
  field.invalid('must be a whole number of milliseconds, and at least 1ms.');
  return undefined;
}

/** A number that counts from 0, as far as Envoy counts. */
export function count(field: Field): number | undefined {
  return field.integer(0, 2 ** 31 - 1);
}

export function percent(field: Field): number | undefined {
  return field.integer(0, 100);
}

/** Members that are undefined are left out: what is absent in an object is absent in the model. */
export function present<Members extends object>(members: Members): Present<Members> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Present<Members>;
}

export type Present<Members> = {
  [Name in keyof Members as undefined extends Members[Name] ? never : Name]: Members[Name];
} & {
  [Name in keyof Members as undefined extends Members[Name] ? Name : never]?: Exclude<Members[Name], undefined>;
};
