import type { LeafPart } from '../ads/resource.ts';
import type { ObjectRef } from '../api/object.ts';
import type { VirtualHost } from './gen/types.gen.ts';
import { types } from './proto-types.ts';
import type { Protos } from './proto.ts';
import { leaf } from './resource.ts';
import { routeConfigurationHeader } from './route-configuration.ts';
import { BackwardWriter } from './wire.ts';

/** RouteConfiguration.virtual_hosts */
const VIRTUAL_HOSTS = 2;
/** Fields of a VirtualHost. */
const [NAME, DOMAINS] = [1, 2];

/**
 * A RouteConfiguration is the concatenation of a header and its virtual hosts: protobuf joins the fields of concatenated
 * messages. So each virtual host is encoded once, as a configuration of its own, for all tables that hold it.
 *
 * @param routes encoded as fields of a VirtualHost, in place of its own: between its names and all else that it has.
 */
export function virtualHostPart(
  protos: Protos,
  virtualHost: VirtualHost,
  clusters: readonly string[],
  origins: readonly ObjectRef[],
  routes: readonly Uint8Array[] = [],
): LeafPart {
  if (routes.length === 0) return leaf(protos.encode(types.route, { virtualHosts: [virtualHost] }), clusters, origins);
  const { name = '', domains = [], ...others } = virtualHost;
  const writer = new BackwardWriter(routes.reduce((sum, { length }) => sum + length, 1024));
  writer.bytes(protos.encode(types.virtualHost, others));
  for (let i = routes.length - 1; i >= 0; i--) writer.bytes(routes[i]!);
  for (let i = domains.length - 1; i >= 0; i--) writer.text(DOMAINS, domains[i]!);
  writer.text(NAME, name);
  writer.wrap(VIRTUAL_HOSTS, 0);
  return leaf(writer.since(0), clusters, origins);
}

/** The part of a table that is not virtual hosts. */
export function routeHeaderPart(protos: Protos, name: string): LeafPart {
  return leaf(protos.encode(types.route, routeConfigurationHeader(name)), [], []);
}
