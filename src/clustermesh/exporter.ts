import { setMaxListeners } from 'node:events';
import type { Clock } from '../base/clock.ts';
import type { EndpointSlice } from '../api/core.ts';
import type { GlobalService } from '../model/global-service.ts';
import { encodeClusterConfig } from './cluster-config.ts';
import { KeyWriter, type KeyWriterOptions, type WantedKeys, type WriterStatus } from './key-writer.ts';
import { canaryKey, canaryPrefix, clusterConfigKey, HEARTBEAT, prefixOf, type StoredKind } from './keys.ts';
import type { MeshCluster } from './names.ts';
import { encodeService } from './service-value.ts';
import { encodeSlice, type WrittenSlice } from './slice-encoding.ts';

export interface ExporterOptions extends Pick<KeyWriterOptions, 'open' | 'clock' | 'random' | 'onState'> {
  readonly own: MeshCluster;
  /** What the other clusters are to know, by `namespace/name`. */
  readonly services: Exported<GlobalService>;
  /** Of these services. */
  readonly slices: Exported<EndpointSlice>;
  /** Resolves once these are known: before that, what is written would say that there are none. */
  readonly known: Promise<void>;
}

interface Exported<T> {
  entries(): Iterable<readonly [key: string, value: T]>;
  get(key: string): T | undefined;
}

/** The kinds that say the same, for readers that prefer either. */
export type ExportedKind = 'services' | 'endpointslices';

/** Milliseconds. Readers count a cluster as lost after two minutes of silence. */
const HEARTBEAT_EVERY = 60_000;

/**
 * Tells the other clusters of a ClusterMesh about the global services of this one, by an etcd that they read: the cluster
 * config, a key for each service and each of its slices, and canaries once all of these are there. All keys are leased and outlive this process
 * for a while, so that another replica can go on with them.
 */
export class Exporter {
  readonly #options: ExporterOptions;
  #term: { readonly writer: KeyWriter; readonly keys: ExportedKeys } | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  /** Some of a kind have come, gone or changed. */
  changed(kind: ExportedKind, names: readonly string[]): void {
    this.#term?.writer.changed(names.map((name) => this.#term!.keys.keyOf(kind, name)));
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
const awaited: readonly StoredKind[] = ['nodes', 'services', 'endpointslices', 'identities', 'ip'];

class ExportedKeys implements WantedKeys {
  readonly prefixes: readonly string[];
  readonly #own: MeshCluster;
  readonly #services: ExporterOptions['services'];
  readonly #slices: ExporterOptions['slices'];
  readonly #clock: Clock;
  readonly #prefixes: Readonly<Record<ExportedKind, string>>;
  readonly #canaries: ReadonlySet<string>;
  readonly #since: string;
  #heartbeat = '';

  constructor({ own, services, slices, clock }: ExporterOptions) {
    this.#own = own;
    [this.#services, this.#slices] = [services, slices];
    this.#clock = clock;
    this.#prefixes = {
      services: prefixOf('services', 'state', own.name),
      endpointslices: prefixOf('endpointslices', 'state', own.name),
    };
    this.prefixes = [...Object.values(this.#prefixes), canaryPrefix(own.name)];
    this.#canaries = new Set(awaited.map((kind) => canaryKey(kind, 'state', own.name)));
    this.#since = clock.date().toISOString();
  }

  beat(): void {
    this.#heartbeat = this.#clock.date().toISOString();
  }

  keyOf(kind: ExportedKind, name: string): string {
    return this.#prefixes[kind] + name;
  }

  *keys(): Iterable<string> {
    yield HEARTBEAT;
    yield clusterConfigKey(this.#own.name);
    for (const [service] of this.#services.entries()) yield this.keyOf('services', service);
    for (const [slice] of this.#slices.entries()) yield this.keyOf('endpointslices', slice);
    yield* this.#canaries;
  }

  valueOf(key: string): string | Uint8Array | undefined {
    if (key === HEARTBEAT) return this.#heartbeat;
    if (key === clusterConfigKey(this.#own.name)) return encodeClusterConfig(this.#own);
    if (this.#canaries.has(key)) return this.#since;
    const { services, endpointslices } = this.#prefixes;
    if (key.startsWith(endpointslices)) {
      const slice = this.#slices.get(key.slice(endpointslices.length));
      return slice && encodeSlice(writtenSlice(slice), this.#own);
    }
    const service = this.#services.get(key.slice(services.length));
    return service && encodeService(service, this.#own);
  }

  isLast(key: string): boolean {
    return this.#canaries.has(key);
  }
}

function writtenSlice({ metadata, addressType, endpoints, ports }: EndpointSlice): WrittenSlice {
  const { namespace = '', name, labels = {} } = metadata;
  return { namespace, name, labels, addressType, endpoints: endpoints ?? [], ports: ports ?? [] };
}
