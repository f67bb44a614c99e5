import { setMaxListeners } from 'node:events';
import type { Clock } from '../clock.ts';
import type { GlobalService } from '../model/global-service.ts';
import { encodeClusterConfig } from './cluster-config.ts';
import { KeyWriter, type KeyWriterOptions, type WantedKeys, type WriterStatus } from './key-writer.ts';
import { canaryKey, canaryPrefix, clusterConfigKey, HEARTBEAT, prefixOf, type StoredKind } from './keys.ts';
import type { MeshCluster } from './names.ts';
import { encodeService } from './service-value.ts';

export interface ExporterOptions extends Pick<KeyWriterOptions, 'open' | 'clock' | 'random' | 'onState'> {
  readonly own: MeshCluster;
  /** What the other clusters are to know, by `namespace/name`. */
  readonly services: {
    entries(): Iterable<readonly [key: string, service: GlobalService]>;
    get(key: string): GlobalService | undefined;
  };
  /** Resolves once these are known: before that, what is written would say that there are none. */
  readonly known: Promise<void>;
}

/** Milliseconds. Readers count a cluster as lost after two minutes of silence. */
const HEARTBEAT_EVERY = 60_000;

/**
 * Tells the other clusters of a ClusterMesh about the global services of this one, by an etcd that they read: the cluster
 * config, a key for each service, and canaries once all of these are there. All keys are leased and outlive this process
 * for a while, so that another replica can go on with them.
 */
export class Exporter {
  readonly #options: ExporterOptions;
  #term: { readonly writer: KeyWriter; readonly keys: ExportedKeys } | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  /** Services have come, gone or changed. */
  changed(services: readonly string[]): void {
    this.#term?.writer.changed(services.map((service) => this.#term!.keys.keyOf(service)));
  }

  /** Undefined: another replica writes. */
  status(): WriterStatus | undefined {
    return this.#term?.writer.status();
  }

  /** Writes until the signal fires; never rejects. */
  async lead(signal: AbortSignal): Promise<void> {
    setMaxListeners(0, signal);
    await Promise.race([
      this.#options.known,
      new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true })),
    ]);
    if (signal.aborted) return;
    const { clock } = this.#options;
    const keys = new ExportedKeys(this.#options);
    const writer = new KeyWriter({ ...this.#options, wanted: keys });
    const term = (this.#term = { writer, keys });
    let cancel = (): void => undefined;
    const beat = (): void => {
      keys.beat();
      writer.changed([HEARTBEAT]);
      cancel = clock.after(HEARTBEAT_EVERY, beat);
    };
    beat();
    await writer.run({ signal });
    cancel();
    if (this.#term === term) this.#term = undefined;
  }
}

/** What readers wait for, whether or not there is anything of the kind. Of other kinds the cluster config would speak. */
const awaited: readonly StoredKind[] = ['nodes', 'services', 'identities', 'ip'];

class ExportedKeys implements WantedKeys {
  readonly prefixes: readonly string[];
  readonly #own: MeshCluster;
  readonly #services: ExporterOptions['services'];
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #canaries: ReadonlySet<string>;
  readonly #since: string;
  #heartbeat = '';

  constructor({ own, services, clock }: ExporterOptions) {
    this.#own = own;
    this.#services = services;
    this.#clock = clock;
    this.#prefix = prefixOf('services', 'state', own.name);
    this.prefixes = [this.#prefix, canaryPrefix(own.name)];
    this.#canaries = new Set(awaited.map((kind) => canaryKey(kind, 'state', own.name)));
    this.#since = clock.date().toISOString();
  }

  beat(): void {
    this.#heartbeat = this.#clock.date().toISOString();
  }

  keyOf(service: string): string {
    return this.#prefix + service;
  }

  *keys(): Iterable<string> {
    yield HEARTBEAT;
    yield clusterConfigKey(this.#own.name);
    for (const [service] of this.#services.entries()) yield this.keyOf(service);
    yield* this.#canaries;
  }

  valueOf(key: string): string | undefined {
    if (key === HEARTBEAT) return this.#heartbeat;
    if (key === clusterConfigKey(this.#own.name)) return encodeClusterConfig(this.#own);
    if (this.#canaries.has(key)) return this.#since;
    const service = this.#services.get(key.slice(this.#prefix.length));
    return service && encodeService(service, this.#own);
  }

  isLast(key: string): boolean {
    return this.#canaries.has(key);
  }
}
