import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import protobuf from 'protobufjs';
import type { MemberChange, World } from '../src/ads/store/publication.ts';
import type { EncodedResource, Part } from '../src/ads/store/resource.ts';
import type { Rollouts } from '../src/ads/rollouts/rollouts.ts';
import { type AdsServer, startAdsServer } from '../src/ads/transport/server.ts';
import type { ResourceTypes } from '../src/ads/types.ts';
import { types } from '../src/envoy/encode/proto-types.ts';
import { typeUrl } from '../src/envoy/encode/proto.ts';
import type { Secure } from './ads-clients.ts';

/** Shared by the benchmarks of the ADS server: resources, requests, and clients in a separate process. */

export const CDS = typeUrl(types.cluster);
export const EDS = typeUrl(types.endpoint);
export const LDS = typeUrl(types.listener);
export const RDS = typeUrl(types.route);

export function leaf(content: string, size: number, clusters: readonly string[] = []): Part {
  const bytes = Buffer.allocUnsafeSlow(size);
  bytes.fill(content);
  const hash = createHash('sha1').update(bytes).digest('base64url').slice(0, 22);
  return { bytes, length: size, hash, clusters, origins: [] };
}

export function resource(typeUrl: string, name: string, body: Part): EncodedResource {
  return { typeUrl, name, version: body.hash, body };
}

export function member(list: string, item: EncodedResource): MemberChange {
  return { list, typeUrl: item.typeUrl, name: item.name, qualifier: '', resource: item };
}

const absent =
  (typeUrl: string) =>
  (name: string): EncodedResource =>
    resource(typeUrl, name, leaf('absent', 10));
const TYPES: ResourceTypes = [
  { typeUrl: CDS, shortName: 'cds', wildcard: true, fullState: true },
  { typeUrl: EDS, shortName: 'eds', wildcard: false, fullState: false, behind: CDS, whenAbsent: absent(EDS) },
  { typeUrl: LDS, shortName: 'lds', wildcard: true, fullState: true, refersTo: CDS },
  { typeUrl: RDS, shortName: 'rds', wildcard: false, fullState: false, refersTo: CDS, whenAbsent: absent(RDS) },
];

/** A server that assigns each stream its world; streams that connect within 10 ms get theirs together. */
export async function startServer(worldOf: (stream: string) => World, rollouts?: Rollouts): Promise<AdsServer> {
  const newcomers: string[] = [];
  const server = await startAdsServer({
    plaintext: { host: '127.0.0.1', port: 0 },
    types: TYPES,
    ...(rollouts && { rollouts }),
    now: () => performance.now(),
    ready: () => true,
    signal: new AbortController().signal,
    log: { info: () => {}, warn: (message, fields) => console.warn(message, fields) },
    events: {
      connected: ({ stream }) => {
        if (newcomers.push(stream) > 1) return;
        setTimeout(() => {
          const worlds = newcomers.splice(0).map((each) => ({ stream: each, world: worldOf(each) }));
          server.apply({ members: [], lists: [], worlds });
        }, 10);
      },
      disconnected: () => {},
      rejected: (rejection) => console.warn('rejected', rejection),
    },
  });
  return server;
}

/** A request in base64. */
export function request(fields: {
  typeUrl: string;
  /** State of the world, not delta. */
  sotw?: boolean;
  node?: string;
  names?: readonly string[];
  versions?: ReadonlyMap<string, string>;
}): string {
  const writer = protobuf.Writer.create();
  if (fields.node !== undefined)
    writer
      .uint32(fields.sotw === true ? 18 : 10)
      .fork()
      .uint32(10)
      .string(fields.node)
      .ldelim();
  writer.uint32(fields.sotw === true ? 34 : 18).string(fields.typeUrl);
  for (const name of fields.names ?? []) writer.uint32(26).string(name);
  for (const [name, version] of fields.versions ?? []) {
    writer.uint32(42).fork().uint32(10).string(name).uint32(18).string(version).ldelim();
  }
  return Buffer.from(writer.finish()).toString('base64');
}

/** What an Envoy asks for when it connects: everything, with the assignments and tables of these names. */
export function firstRequests({
  names,
  tables,
  node,
  ...how
}: {
  readonly names: readonly string[];
  readonly tables: readonly string[];
  readonly sotw?: boolean;
  readonly node?: string;
}): readonly string[] {
  return [
    request({ ...how, typeUrl: CDS, ...(node !== undefined && { node }) }),
    request({ ...how, typeUrl: EDS, names }),
    request({ ...how, typeUrl: LDS }),
    request({ ...how, typeUrl: RDS, names: tables }),
  ];
}

interface Report {
  readonly ms: number;
  readonly bytes: number;
}

/** The client process. */
export class Peers {
  readonly #child = fork(new URL('./ads-clients.ts', import.meta.url), { execArgv: [] });

  connect(command: {
    port: number;
    sotw?: boolean;
    secure?: Secure;
    first?: readonly string[];
    clients: number;
    requests: readonly string[];
    atOnce: boolean;
    responses: number;
  }): void {
    this.#child.send({ do: 'connect', ...command });
  }

  /** From now on, clients are done once each has received this many responses. */
  async expect(responses: number): Promise<void> {
    this.#child.send({ do: 'expect', responses });
    await this.#answer();
  }

  done(): Promise<Report> {
    return this.#answer();
  }

  /** Whether clients acknowledge from now on. */
  async mute(muted: boolean): Promise<void> {
    this.#child.send({ do: 'mute', muted });
    await this.#answer();
  }

  async disconnect(): Promise<void> {
    this.#child.send({ do: 'disconnect' });
    await this.#answer();
  }

  end(): void {
    this.#child.kill();
  }

  #answer<T>(): Promise<T> {
    return new Promise((resolve) => this.#child.once('message', (message) => resolve(message as T)));
  }
}
