import { bytesOf } from '../ads/wire/bytes-of.ts';
import type { World } from '../ads/store/publication.ts';
import type { EncodedResource } from '../ads/store/resource.ts';
import type { Store } from '../ads/store/store.ts';
import type {
  Cluster,
  DownstreamTlsContext,
  FilterChain,
  HttpConnectionManager,
  Listener,
  Secret,
  TransportSocket,
  UpstreamTlsContext,
} from '../envoy/gen/types.gen.ts';
import { types } from '../envoy/encode/proto-types.ts';
import type { ServedType } from '../envoy/encode/served-types.ts';
import { type Json, type Protos, typeOfUrl, typeUrl } from '../envoy/encode/proto.ts';

/** What a proxy would hold after asking for everything: all clusters and listeners, and what these name. */
export interface Snapshot extends Readonly<Record<ServedType, readonly EncodedResource[]>> {
  /** Names that clusters and listeners refer to but that do not exist. */
  readonly missing: readonly string[];
}

export function snapshotOf(store: Store, world: World, protos: Protos): Snapshot {
  const view = store.enter(world);
  try {
    const all = (type: string): EncodedResource[] =>
      view.all(typeUrl(type)).flatMap((batch) => batch.items.map((served) => served.resource));
    const missing: string[] = [];
    const named = (type: string, names: Iterable<string>): EncodedResource[] =>
      [...new Set(names)].sort().flatMap((name) => {
        const found = view.resolve(typeUrl(type), name)?.resource;
        if (found === undefined) missing.push(name);
        return found === undefined ? [] : [found];
      });
    const cds = byName(all(types.cluster));
    const lds = byName(all(types.listener));
    const eds = named(
      types.endpoint,
      cds.flatMap((resource) => assignmentOf(protos, resource)),
    );
    const rds = named(
      types.route,
      lds.flatMap((resource) => tablesOf(protos, resource)),
    );
    const sds = named(types.secret, [
      ...cds.flatMap((resource) => secretsOfCluster(protos, resource)),
      ...lds.flatMap((resource) => secretsOfListener(protos, resource)),
    ]);
    return { cds, eds, lds, rds, sds, missing };
  } finally {
    store.leave(view);
  }
}

/** The message as protobuf JSON, with its type. Private keys are left out. */
export function jsonOf(protos: Protos, resource: EncodedResource): Json {
  const json = protos.toJson(typeOfUrl(resource.typeUrl), shownBytes(protos, resource));
  return { '@type': resource.typeUrl, ...(json as object) } as Json;
}

/** The message without private keys. */
export function shownBytes(protos: Protos, { typeUrl: url, body }: EncodedResource): Uint8Array {
  return url === typeUrl(types.secret) ? withoutKey(protos, bytesOf(body)) : bytesOf(body);
}

function withoutKey(protos: Protos, bytes: Uint8Array): Uint8Array {
  const secret: Secret = protos.decode(types.secret, bytes);
  if (secret.tlsCertificate?.privateKey?.inlineBytes === undefined) return bytes;
  const tlsCertificate = { ...secret.tlsCertificate, privateKey: { inlineString: '[redacted]' } };
  return protos.encode(types.secret, { ...secret, tlsCertificate });
}

function byName(resources: readonly EncodedResource[]): EncodedResource[] {
  return [...resources].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function assignmentOf(protos: Protos, { body }: EncodedResource): string[] {
  const cluster: Cluster = protos.decode(types.cluster, bytesOf(body));
  if (cluster.type !== 'EDS') return [];
  return [cluster.edsClusterConfig?.serviceName || (cluster.name ?? '')];
}

function secretsOfListener(protos: Protos, listener: EncodedResource): string[] {
  return chainsOf(protos, listener).flatMap(({ transportSocket }) => secretsOf(protos, transportSocket));
}

function secretsOfCluster(protos: Protos, { body }: EncodedResource): string[] {
  const { transportSocket, transportSocketMatches = [] }: Cluster = protos.decode(types.cluster, bytesOf(body));
  const sockets = [transportSocket, ...transportSocketMatches.map((match) => match.transportSocket)];
  return sockets.flatMap((socket) => secretsOf(protos, socket));
}

/** Secrets that come from the control plane, not from an agent. */
function secretsOf(protos: Protos, socket: TransportSocket | undefined): string[] {
  const config = socket?.typedConfig;
  const type = [types.downstreamTls, types.upstreamTls].find((each) => config?.typeUrl === typeUrl(each));
  if (config === undefined || type === undefined) return [];
  const tls: DownstreamTlsContext | UpstreamTlsContext = protos.unpack(type, config);
  const { tlsCertificateSdsSecretConfigs: certificates = [], combinedValidationContext: validation } =
    tls.commonTlsContext ?? {};
  return [...certificates, validation?.validationContextSdsSecretConfig].flatMap((secret) =>
    secret?.sdsConfig?.ads === undefined ? [] : [secret.name ?? ''],
  );
}

function chainsOf(protos: Protos, { body }: EncodedResource): FilterChain[] {
  const listener: Listener = protos.decode(types.listener, bytesOf(body));
  return [...(listener.filterChains ?? []), ...(listener.defaultFilterChain ? [listener.defaultFilterChain] : [])];
}

function tablesOf(protos: Protos, listener: EncodedResource): string[] {
  const { apiListener }: Listener = protos.decode(types.listener, bytesOf(listener.body));
  const filters = chainsOf(protos, listener).flatMap((chain) => chain.filters ?? []);
  return [apiListener?.apiListener, ...filters.map(({ typedConfig }) => typedConfig)].flatMap((config) => {
    if (config === undefined || config.typeUrl !== typeUrl(types.httpConnectionManager)) return [];
    const manager: HttpConnectionManager = protos.unpack(types.httpConnectionManager, config);
    return manager.rds?.routeConfigName === undefined ? [] : [manager.rds.routeConfigName];
  });
}
