import { createSocket, type Socket } from 'node:dgram';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { MemberChange } from '../../src/ads/store/publication.ts';
import type { EncodedResource } from '../../src/ads/store/resource.ts';
import { type AdsServer, startAdsServer } from '../../src/ads/transport/server.ts';
import type { Rejection, ResourceTypes } from '../../src/ads/types.ts';
import { catalog } from '../../src/engine/catalog.ts';
import { Encoder } from '../../src/envoy/encode/encoder.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { type Protos, typeUrl } from '../../src/envoy/encode/proto.ts';
import { leaf, resource } from '../../src/envoy/encode/resource.ts';
import type { Snapshot } from '../../src/debug/snapshot.ts';
import { type RunningEnvoy, startEnvoy } from '../peers/envoy.ts';
import { type KeyPair, createAuthority } from '../peers/keys.ts';
import { asRoots, loadable, type Surroundings } from './loadable.ts';

const PATIENCE_MS = 10_000;

interface Parts {
  readonly protos: Protos;
  readonly surroundings: Omit<Surroundings, 'secrets'>;
  readonly server: AdsServer;
  /** The stream of Envoy. */
  readonly stream: Promise<string>;
  /** What it has rejected. */
  readonly rejections: Rejection[];
  /** Ends all that was started beside it. */
  readonly close: () => Promise<void>;
}

/** One real Envoy that is given one configuration after the other, by the real ADS server, and asked what it thinks. */
export class LoadingEnvoy {
  #list = '';
  #members: readonly MemberChange[] = [];
  readonly #parts: Parts;
  readonly #envoy: RunningEnvoy;

  private constructor(parts: Parts, envoy: RunningEnvoy) {
    this.#parts = parts;
    this.#envoy = envoy;
  }

  static async start(protos: Protos): Promise<LoadingEnvoy> {
    const parts = await startAround(protos);
    try {
      const envoy = await startEnvoy({
        adsPort: parts.server.port!,
        delta: true,
        node: { id: 'golden' },
        args: ['--drain-time-s', '1', '--drain-strategy', 'immediate'],
        extraBootstrap: { staticResources: { clusters: [{ name: 'sds-grpc', type: 'STATIC', connectTimeout: '1s' }] } },
      });
      return new LoadingEnvoy(parts, envoy);
    } catch (error) {
      await parts.close();
      throw error;
    }
  }

  /** What Envoy rejects of a configuration that takes the place of the former one. */
  async load(name: string, { cds, eds, lds, rds, sds }: Snapshot): Promise<string[]> {
    const { protos, surroundings, server, rejections } = this.#parts;
    const stream = await this.#parts.stream;
    const secrets = new Set(sds.map(({ name: secret }) => secret));
    const members = [...cds, ...eds, ...lds, ...rds, ...sds].map((item): MemberChange => {
      const prepared = loadable(protos, item, { ...surroundings, secrets });
      return { list: name, typeUrl: item.typeUrl, name: item.name, qualifier: '', resource: prepared };
    });
    const gone = this.#members.map(({ resource: _, ...place }) => place);
    rejections.length = 0;
    server.apply({
      members: [...members, ...gone],
      lists: this.#list === '' ? [] : [{ list: this.#list }],
      worlds: [{ stream, world: { roots: [name], qualifiers: [] } }],
    });
    this.#list = name;
    this.#members = members;
    const settled = await this.#settled();
    const found = rejections.map((rejection) => `${rejection.name ?? rejection.typeUrl}: ${rejection.message}`);
    return settled ? found : [...found, `not loaded within ${PATIENCE_MS} ms: ${JSON.stringify(this.#unsynced())}`];
  }

  log(): string {
    return this.#envoy.log();
  }

  async stop(): Promise<void> {
    await this.#envoy.stop();
    await this.#parts.close();
  }

  /** Everything was sent and answered, and nothing in Envoy waits for more. */
  async #settled(): Promise<boolean> {
    const start = performance.now();
    while (performance.now() - start < PATIENCE_MS) {
      if (this.#unsynced().length === 0 && !(await this.#warms()) && this.#unsynced().length === 0) return true;
      await delay(2);
    }
    return false;
  }

  #unsynced(): unknown[] {
    return this.#parts.server.streams().flatMap((stream) => stream.types.filter((type) => !type.synced));
  }

  async #warms(): Promise<boolean> {
    const filter = '^(listener_manager.total_listeners_warming|cluster_manager.warming_clusters)$';
    return Object.values(await this.#envoy.stats(filter)).some((count) => count > 0);
  }
}

/** The ADS server, certificates and a DNS server. */
async function startAround(protos: Protos): Promise<Parts> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-golden-'));
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  const authority = await createAuthority();
  const pair = await authority.server(['localhost']);
  const dns = await startDns();
  const surroundings = {
    certificate: await file('tls.crt', pair.certificate),
    key: await file('tls.key', pair.key),
    authority: await file('ca.crt', authority.certificate),
    dnsPort: dns.address().port,
  };
  const rejections: Rejection[] = [];
  let connected: (stream: string) => void = () => undefined;
  const stream = new Promise<string>((resolve) => (connected = resolve));
  const server = await startAdsServer({
    plaintext: { host: '127.0.0.1', port: 0 },
    types: [
      ...catalog(new Encoder(protos)).filter((type) => type.typeUrl !== typeUrl(types.secret)),
      secrets(protos, pair, authority.certificate),
    ],
    now: () => performance.now(),
    ready: () => true,
    signal: new AbortController().signal,
    tickMs: 5,
    times: { lingerMs: 0 },
    log: { info: () => undefined, warn: () => undefined },
    events: {
      connected: (proxy) => connected(proxy.stream),
      disconnected: () => undefined,
      rejected: (rejection) => rejections.push(rejection),
    },
  });
  const close = async (): Promise<void> => {
    await server.close();
    dns.close();
    await rm(directory, { recursive: true, force: true });
  };
  return { protos, surroundings, server, stream, rejections, close };
}

/** Every secret exists. */
function secrets(protos: Protos, { certificate, key }: KeyPair, authority: string): ResourceTypes[number] {
  const text = (inlineString: string) => ({ inlineString });
  const make = (name: string): EncodedResource => {
    const secret = name.endsWith(asRoots)
      ? { name, validationContext: { trustedCa: text(authority) } }
      : { name, tlsCertificate: { certificateChain: text(certificate), privateKey: text(key) } };
    return resource(typeUrl(types.secret), name, leaf(protos.encode(types.secret, secret), []));
  };
  return { typeUrl: typeUrl(types.secret), shortName: 'sds', wildcard: false, fullState: false, whenAbsent: make };
}

/** Knows no name, and says so at once. */
async function startDns(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const answer = Buffer.from(query);
    answer.writeUInt16BE(0x8183, 2);
    socket.send(answer, from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return socket;
}
