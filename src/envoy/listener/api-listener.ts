import type { Listener } from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { httpFilters } from './filters.ts';
import { routeSource } from './http-connection-manager.ts';

/** What gRPC's own clients ask for when they dial a name: no listener, but a table and the filters of its requests. */
export function apiListener(name: string, table: string): Listener {
  return {
    name,
    apiListener: {
      apiListener: any(types.httpConnectionManager, {
        statPrefix: table,
        rds: routeSource(table),
        httpFilters: [httpFilters.fault, httpFilters.router],
      }),
    },
  };
}
