import { createHash } from 'node:crypto';
import type { MemberChange, World } from '../../src/ads/store/publication.ts';
import type { EncodedResource, Part } from '../../src/ads/store/resource.ts';
import { type AdsServer, startAdsServer } from '../../src/ads/transport/server.ts';
import type { AdsServerOptions } from '../../src/ads/transport/server-options.ts';
import type { AdsEvents, ConnectedProxy, Rejection, ResourceTypes } from '../../src/ads/types.ts';
import { serviceOf } from '../../src/engine/catalog.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { typeUrl } from '../../src/envoy/encode/proto.ts';

export const CDS = typeUrl(types.cluster);
export const EDS = typeUrl(types.endpoint);
export const LDS = typeUrl(types.listener);
export const RDS = typeUrl(types.route);

export const TYPES: ResourceTypes = [
  { typeUrl: CDS, shortName: 'cds', wildcard: true, fullState: true, service: serviceOf('Cluster') },
  {
    typeUrl: EDS,
    shortName: 'eds',
    wildcard: false,
    fullState: false,
    behind: CDS,
    whenAbsent: (name) => resourceOf(EDS, name, `${name}@absent`),
    service: serviceOf('Endpoint'),
  },
  {
    typeUrl: LDS,
    shortName: 'lds',
    wildcard: true,
    fullState: true,
    refersTo: CDS,
    drains: true,
    service: serviceOf('Listener'),
  },
  {
    typeUrl: RDS,
    shortName: 'rds',
    wildcard: false,
    fullState: false,
    refersTo: CDS,
    whenAbsent: (name) => resourceOf(RDS, name, `${name}@absent`),
    service: serviceOf('Route'),
  },
];

/** A resource whose body is the text, or these bytes. */
export function resourceOf(
  typeUrl: string,
  name: string,
  content: string | Uint8Array,
  clusters: readonly string[] = [],
): EncodedResource {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const hash = createHash('sha1').update(bytes).digest('base64url').slice(0, 16);
  const body: Part = { bytes, length: bytes.length, hash, clusters, origins: [] };
  return { typeUrl, name, version: hash, body };
}

/** Of a proxy that describes itself wrongly. */
export interface Refused {
  readonly error: string;
}

/** A server, and publications in few words: each resource is in the list that is named, `mesh` unless said otherwise. */
export class ServedMesh {
  readonly proxies = new Map<string, ConnectedProxy>();
  /** IP addresses of the clients, as they came. */
  readonly peers: string[] = [];
  readonly rejections: Rejection[] = [];
  readonly warnings: string[] = [];
  readonly ended: string[] = [];
  server!: AdsServer;
  world: (proxy: ConnectedProxy) => World | Refused = () => ({ roots: ['mesh'], qualifiers: [] });
  #passed = 0;
  #ready = true;
  readonly #abort = new AbortController();

  static async start(options: Partial<AdsServerOptions> = {}, events: Partial<AdsEvents> = {}): Promise<ServedMesh> {
    const mesh = new ServedMesh();
    mesh.server = await startAdsServer({
      plaintext: { host: '127.0.0.1', port: 0 },
      types: TYPES,
      now: () => performance.now() + mesh.#passed,
      ready: () => mesh.#ready,
      signal: mesh.#abort.signal,
      log: { info: () => {}, warn: (message, fields) => mesh.warnings.push(`${message} ${JSON.stringify(fields)}`) },
      events: {
        connected: (proxy, peer) => {
          mesh.peers.push(peer);
          mesh.proxies.set(proxy.stream, proxy);
          setImmediate(() => mesh.move(proxy.stream, mesh.world(proxy)));
        },
        disconnected: ({ stream }) => {
          mesh.proxies.delete(stream);
          mesh.ended.push(stream);
        },
        rejected: (rejection) => mesh.rejections.push(rejection),
        ...events,
      },
      ...options,
    });
    return mesh;
  }

  set ready(ready: boolean) {
    this.#ready = ready;
  }

  move(stream: string, world: World | Refused): void {
    const change = 'error' in world ? { stream, ...world } : { stream, world };
    this.server.apply({ members: [], lists: [], worlds: [change] });
  }

  /** Names to contents; undefined removes. */
  publish(changes: Readonly<Record<string, Readonly<Record<string, Content | undefined>>>>, list = 'mesh'): void {
    const members: MemberChange[] = [];
    for (const [typeUrl, names] of Object.entries(changes)) {
      for (const [name, content] of Object.entries(names)) {
        members.push({ list, typeUrl, name, qualifier: '', ...resourceMember(typeUrl, name, content) });
      }
    }
    this.server.apply({ members, lists: [], worlds: [] });
  }

  /** Milliseconds pass at once. */
  pass(ms: number): void {
    this.#passed += ms;
  }

  async stop(): Promise<void> {
    await this.server.close();
  }
}

type Content = string | Uint8Array | { readonly content: string | Uint8Array; readonly clusters: readonly string[] };

function resourceMember(typeUrl: string, name: string, content: Content | undefined): Partial<MemberChange> {
  if (content === undefined) return {};
  if (typeof content === 'string') return { resource: resourceOf(typeUrl, name, `${name}@${content}`) };
  if (content instanceof Uint8Array) return { resource: resourceOf(typeUrl, name, content) };
  const { content: body, clusters } = content;
  const text = typeof body === 'string' ? `${name}@${body}` : body;
  return { resource: resourceOf(typeUrl, name, text, clusters) };
}
