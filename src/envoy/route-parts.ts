import type { LeafPart } from '../ads/resource.ts';
import type { ObjectRef } from '../api/object.ts';
import type { VirtualHost } from './gen/types.gen.ts';
import { types } from './proto-types.ts';
import type { Protos } from './proto.ts';
import { leaf } from './resource.ts';
import { routeConfigurationHeader } from './route-configuration.ts';

/**
 * A RouteConfiguration is the concatenation of a header and its virtual hosts: protobuf joins the fields of concatenated
 * messages. So each virtual host is encoded once, as a configuration of its own, for all tables that hold it.
 */
export function virtualHostPart(
  protos: Protos,
  virtualHost: VirtualHost,
  clusters: readonly string[],
  origins: readonly ObjectRef[],
): LeafPart {
  return leaf(protos.encode(types.route, { virtualHosts: [virtualHost] }), clusters, origins);
}

/** The part of a table that is not virtual hosts. */
export function routeHeaderPart(protos: Protos, name: string): LeafPart {
  return leaf(protos.encode(types.route, routeConfigurationHeader(name)), [], []);
}
