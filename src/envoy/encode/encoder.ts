import type { EncodedResource, LeafPart, Part } from '../../ads/store/resource.ts';
import { distinctRefs, type ObjectRef } from '../../api/object.ts';
import type { Source } from '../../model/provenance.ts';
import type { Cluster, FilterChain, Listener, Route, Secret, VirtualHost } from '../gen/types.gen.ts';
import { types } from './proto-types.ts';
import { type MessageOf, type Protos, typeUrl } from './proto.ts';
import type { Patching } from './patching.ts';
import { type LeafMarks, leaf, node, originsOf, resource } from './resource.ts';
import { emptyRouteConfiguration, routeConfigurationHeader } from '../route/configuration.ts';
import { waitsForSecret } from '../tls/secrets.ts';
import { type From, type Trace, fromNothing } from './trace.ts';
import { BackwardWriter } from './wire.ts';

export interface EncoderOptions {
  readonly amend?: Amend;
  /** Records what everything is made from. */
  readonly trace?: Trace | undefined;
}

/** What belongs to a virtual host besides its message. */
export interface VirtualHostContent {
  /** Encoded routes, in place of its own. */
  readonly routes: readonly Uint8Array[];
  /** Names of the clusters that its routes refer to. */
  readonly clusters: readonly string[];
  /** Objects with conditions that the encoded routes were made from. */
  readonly origins?: readonly ObjectRef[];
  /** What its own routes were made from. */
  readonly own?: From;
}

/** The last chance to change a finished message; otherwise returns it unchanged. */
export type Amend = <Name extends string>(type: Name, message: MessageOf<Name>) => MessageOf<Name>;

const asItIs: Amend = (_, message) => message;

const patchedFrom =
  (from: From, patching: Patching): From =>
  () => [...from(), ...patching.sources];

/** RouteConfiguration.virtual_hosts */
const VIRTUAL_HOSTS = 2;
/** Fields of a VirtualHost. */
const [NAME, DOMAINS] = [1, 2];

/** Turns finished messages into bytes. Until then, they can be read and changed. */
export class Encoder {
  readonly #protos: Protos;
  readonly #amend: Amend;
  readonly #trace: Trace | undefined;

  constructor(protos: Protos, { amend = asItIs, trace }: EncoderOptions = {}) {
    this.#protos = protos;
    this.#amend = amend;
    this.#trace = trace;
  }

  cluster(cluster: Cluster, from = fromNothing, patching?: Patching): EncodedResource {
    if (patching !== undefined)
      return this.cluster(this.#patched(types.cluster, cluster, patching), patchedFrom(from, patching));
    const finished = this.#amend(types.cluster, cluster);
    const bytes = this.#protos.encode(types.cluster, finished);
    return this.#resource(types.cluster, cluster, bytes, [], from, { isLate: waitsForSecret(finished) });
  }

  /** @param clusters names that the listener refers to. */
  listener(listener: Listener, clusters: readonly string[], from = fromNothing, patching?: Patching): EncodedResource {
    if (patching !== undefined)
      return this.listener(this.#patched(types.listener, listener, patching), clusters, patchedFrom(from, patching));
    return this.#resource(types.listener, listener, this.#encode(types.listener, listener), clusters, from);
  }

  /** A piece of a listener, encoded once for all listeners that it is added to. */
  filterChains(
    chains: readonly FilterChain[],
    clusters: readonly string[],
    from = fromNothing,
    patching?: Patching,
  ): LeafPart {
    if (patching !== undefined) {
      const patched = chains.map((chain) => this.#patched(types.filterChain, chain, patching));
      return this.filterChains(patched, clusters, patchedFrom(from, patching));
    }
    const finished = chains.map((chain) => this.#amend(types.filterChain, chain));
    const sources = from();
    const part = leaf(this.#protos.encode(types.listener, { filterChains: finished }), clusters, originsOf(sources));
    this.#trace?.note(part, sources);
    return part;
  }

  /**
   * A ClusterLoadAssignment, written without a message because there are very many of them.
   * @param built `ready`: it has a ready endpoint.
   */
  assignment(
    name: string,
    { bytes, ready }: { readonly bytes: Uint8Array; readonly ready: boolean },
    from = fromNothing,
  ): EncodedResource {
    return this.#resource(types.endpoint, { name }, bytes, [], from, { isUnready: !ready });
  }

  secret(secret: Secret, from = fromNothing): EncodedResource {
    return this.#resource(types.secret, secret, this.#encode(types.secret, secret), [], from);
  }

  /**
   * A RouteConfiguration made of encoded virtual hosts: the concatenation of a header and its virtual hosts, because
   * protobuf joins the fields of concatenated messages.
   */
  routeTable(name: string, virtualHosts: readonly Part[], patching?: Patching): EncodedResource {
    const header = this.routeTableHeader(name, false, patching);
    return resource(typeUrl(types.route), name, node([header, ...virtualHosts]));
  }

  /** A RouteConfiguration without its virtual hosts. `forAllPorts`: they tell ports apart. */
  routeTableHeader(name: string, forAllPorts = false, patching?: Patching): LeafPart {
    if (patching !== undefined) {
      const header = this.#patched(types.route, routeConfigurationHeader(name, forAllPorts), patching);
      return leaf(this.#encode(types.route, header), [], originsOf(patching.sources));
    }
    return leaf(this.#encode(types.route, routeConfigurationHeader(name, forAllPorts)), []);
  }

  /** The answer for a table that does not exist. */
  emptyRouteTable(name: string): EncodedResource {
    return resource(typeUrl(types.route), name, leaf(this.#encode(types.route, emptyRouteConfiguration(name)), []));
  }

  /** A piece of a RouteConfiguration, encoded once for all tables that contain it. */
  virtualHost(
    virtualHost: VirtualHost,
    content: VirtualHostContent = { routes: [], clusters: [] },
    from = fromNothing,
    patching?: Patching,
  ): LeafPart {
    if (patching !== undefined)
      return this.virtualHost(
        this.#patched(types.virtualHost, virtualHost, patching),
        content,
        patchedFrom(from, patching),
      );
    const { routes, clusters, origins = [], own: ofOwn = fromNothing } = content;
    const sources = from();
    const own = ofOwn();
    const all = [...originsOf([...sources, ...own]), ...origins];
    const part = leaf(this.#virtualHost(virtualHost, routes), clusters, distinctRefs(all));
    this.#trace?.note(part, sources);
    this.#trace?.noteRoutes(part, [
      ...routes.flatMap((each) => this.#trace!.routesOf(each)),
      ...(virtualHost.routes ?? []).map(() => own),
    ]);
    return part;
  }

  #virtualHost(virtualHost: VirtualHost, routes: readonly Uint8Array[]): Uint8Array {
    const finished = this.#amend(types.virtualHost, virtualHost);
    if (routes.length === 0) return this.#protos.encode(types.route, { virtualHosts: [finished] });
    const { name = '', domains = [], ...others } = finished;
    const writer = new BackwardWriter(routes.reduce((sum, { length }) => sum + length, 1024));
    writer.bytes(this.#protos.encode(types.virtualHost, others));
    for (let i = routes.length - 1; i >= 0; i--) writer.bytes(routes[i]!);
    for (let i = domains.length - 1; i >= 0; i--) writer.text(DOMAINS, domains[i]!);
    writer.text(NAME, name);
    writer.wrap(VIRTUAL_HOSTS, 0);
    return writer.since(0);
  }

  /**
   * Fields of a VirtualHost, for all virtual hosts with these routes.
   * @param from for each route. Who patches them adds the objects of the patches to those of the routes.
   */
  routes(
    routes: readonly Route[],
    from: () => readonly (readonly Source[])[] = () => [],
    patching?: Patching,
  ): Uint8Array {
    if (patching !== undefined) {
      const patched = routes.map((route) => this.#patched(types.routeEntry, route, patching));
      return this.routes(patched, () => from().map((each) => [...each, ...patching.sources]));
    }
    const finished = routes.map((route) => this.#amend(types.routeEntry, route));
    const bytes = this.#protos.encode(types.virtualHost, { routes: finished });
    this.#trace?.noteRoutes(bytes, from());
    return bytes;
  }

  /** The virtual hosts in a piece of a RouteConfiguration. */
  virtualHostsOf({ bytes }: LeafPart): readonly VirtualHost[] {
    return this.#protos.decode(types.route, bytes).virtualHosts ?? [];
  }

  /** The finished virtual host with only some of its domains; undefined if none is left. */
  withDomains(part: LeafPart, keep: (domain: string) => boolean): LeafPart | undefined {
    const [virtualHost] = this.virtualHostsOf(part);
    const domains = (virtualHost?.domains ?? []).filter(keep);
    if (domains.length === 0) return undefined;
    const bytes = this.#protos.encode(types.route, { virtualHosts: [{ ...virtualHost, domains }] });
    const changed = leaf(bytes, part.clusters, part.origins);
    this.#trace?.note(changed, this.#trace.of(part));
    this.#trace?.noteRoutes(changed, this.#trace.routesOf(part));
    return changed;
  }

  #patched<Name extends string>(type: Name, message: MessageOf<Name>, patching: Patching): MessageOf<Name> {
    return patching.apply(type, message, (of, patched) => void this.#protos.encode(of, patched));
  }

  #encode<Name extends string>(type: Name, message: MessageOf<Name>): Uint8Array {
    return this.#protos.encode(type, this.#amend(type, message));
  }

  #resource(
    type: string,
    { name = '' }: { readonly name?: string | undefined },
    bytes: Uint8Array,
    clusters: readonly string[],
    from: From,
    marks: LeafMarks = {},
  ): EncodedResource {
    const sources = from();
    const body = leaf(bytes, clusters, originsOf(sources), marks);
    this.#trace?.note(body, sources);
    return resource(typeUrl(type), name, body);
  }
}
