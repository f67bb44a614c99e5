import { types } from './proto-types.ts';

/** The resource types that are served, by the names that operators know, in the order of a push. */
export const servedTypes = {
  cds: types.cluster,
  eds: types.endpoint,
  lds: types.listener,
  rds: types.route,
  sds: types.secret,
} as const;

export type ServedType = keyof typeof servedTypes;

export const servedTypeNames = Object.keys(servedTypes) as readonly ServedType[];
