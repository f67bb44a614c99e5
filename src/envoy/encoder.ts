import type { EncodedResource, LeafPart, Part } from '../ads/resource.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Cluster, Listener, Route, Secret, VirtualHost } from './gen/types.gen.ts';
import { types } from './proto-types.ts';
import { type MessageOf, type Protos, typeUrl } from './proto.ts';
import { leaf, node, resource } from './resource.ts';
import { emptyRouteConfiguration, routeConfigurationHeader } from './route-configuration.ts';
import { BackwardWriter } from './wire.ts';

/** What a virtual host has beside its message. */
export interface VirtualHostContent {
  /** Encoded, in place of routes of its own. */
  readonly routes: readonly Uint8Array[];
  /** Names of the clusters that its routes name. */
  readonly clusters: readonly string[];
  readonly origins: readonly ObjectRef[];
}

/** The last change to a finished message. What it does not change it returns as it is. */
export type Amend = <Name extends string>(type: Name, message: MessageOf<Name>) => MessageOf<Name>;

const asItIs: Amend = (_, message) => message;

/** RouteConfiguration.virtual_hosts */
const VIRTUAL_HOSTS = 2;
/** Fields of a VirtualHost. */
const [NAME, DOMAINS] = [1, 2];
const NOTHING = new Uint8Array();

/** Where finished messages become bytes: until then they can be read, and changed. */
export class Encoder {
  readonly #protos: Protos;
  readonly #amend: Amend;

  constructor(protos: Protos, amend = asItIs) {
    this.#protos = protos;
    this.#amend = amend;
  }

  cluster(cluster: Cluster, origins: readonly ObjectRef[]): EncodedResource {
    return this.#resource(types.cluster, cluster, leaf(this.#encode(types.cluster, cluster), [], origins));
  }

  /** @param clusters names that it refers to. */
  listener(listener: Listener, clusters: readonly string[], origins: readonly ObjectRef[]): EncodedResource {
    return this.#resource(types.listener, listener, leaf(this.#encode(types.listener, listener), clusters, origins));
  }

  secret(secret: Secret): EncodedResource {
    return this.#resource(types.secret, secret, leaf(this.#encode(types.secret, secret), [], []));
  }

  /**
   * A RouteConfiguration of virtual hosts that are encoded. It is the concatenation of a header and its virtual hosts:
   * protobuf joins the fields of concatenated messages.
   */
  routeTable(name: string, virtualHosts: readonly Part[]): EncodedResource {
    return resource(typeUrl(types.route), name, node([this.routeTableHeader(name), ...virtualHosts]));
  }

  /** What of a RouteConfiguration is not virtual hosts. */
  routeTableHeader(name: string): LeafPart {
    return leaf(this.#encode(types.route, routeConfigurationHeader(name)), [], []);
  }

  /** The answer for a table that does not exist. */
  emptyRouteTable(name: string): EncodedResource {
    return resource(typeUrl(types.route), name, leaf(this.#encode(types.route, emptyRouteConfiguration(name)), [], []));
  }

  /** A piece of a RouteConfiguration, encoded once for all tables that hold it. */
  virtualHost(
    virtualHost: VirtualHost,
    { routes, clusters, origins }: VirtualHostContent = { routes: [], clusters: [], origins: [] },
  ): LeafPart {
    const finished = this.#amend(types.virtualHost, virtualHost);
    if (routes.length === 0)
      return leaf(this.#protos.encode(types.route, { virtualHosts: [finished] }), clusters, origins);
    const { name = '', domains = [], ...others } = finished;
    const writer = new BackwardWriter(routes.reduce((sum, { length }) => sum + length, 1024));
    writer.bytes(this.#protos.encode(types.virtualHost, others));
    for (let i = routes.length - 1; i >= 0; i--) writer.bytes(routes[i]!);
    for (let i = domains.length - 1; i >= 0; i--) writer.text(DOMAINS, domains[i]!);
    writer.text(NAME, name);
    writer.wrap(VIRTUAL_HOSTS, 0);
    return leaf(writer.since(0), clusters, origins);
  }

  /** Fields of a VirtualHost, for all virtual hosts that have these routes. */
  routes(routes: readonly Route[]): Uint8Array {
    if (routes.length === 0) return NOTHING;
    const finished = routes.map((route) => this.#amend(types.routeEntry, route));
    return this.#protos.encode(types.virtualHost, { routes: finished });
  }

  /** The virtual hosts of a piece of a RouteConfiguration. */
  virtualHostsOf({ bytes }: LeafPart): readonly VirtualHost[] {
    return this.#protos.decode(types.route, bytes).virtualHosts ?? [];
  }

  #encode<Name extends string>(type: Name, message: MessageOf<Name>): Uint8Array {
    return this.#protos.encode(type, this.#amend(type, message));
  }

  #resource(type: string, { name = '' }: { readonly name?: string | undefined }, body: Part): EncodedResource {
    return resource(typeUrl(type), name, body);
  }
}
