import type { HeaderOperations } from '../../model/route.ts';
import type { HeaderValueOption, Route } from '../gen/types.gen.ts';

/** The four lists that routes and weighted clusters have in common. */
export type HeaderLists = Pick<
  Route,
  'requestHeadersToAdd' | 'requestHeadersToRemove' | 'responseHeadersToAdd' | 'responseHeadersToRemove'
>;

/** The lists for these operations, in order. */
export function headersOf(...operations: readonly (HeaderOperations | undefined)[]): HeaderLists {
  const given = operations.filter((one) => one !== undefined);
  if (given.length === 0) return {};
  return {
    requestHeadersToAdd: given.flatMap((one) => [...one.requestSet.map(overwrite), ...one.requestAdd.map(append)]),
    requestHeadersToRemove: given.flatMap((one) => one.requestRemove),
    responseHeadersToAdd: given.flatMap((one) => [...one.responseSet.map(overwrite), ...one.responseAdd.map(append)]),
    responseHeadersToRemove: given.flatMap((one) => one.responseRemove),
  };
}

function overwrite({ name, value }: { name: string; value: string }): HeaderValueOption {
  return { header: { key: name, value }, appendAction: 'OVERWRITE_IF_EXISTS_OR_ADD' };
}

function append({ name, value }: { name: string; value: string }): HeaderValueOption {
  return { header: { key: name, value } };
}
