import { mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import protobuf from 'protobufjs/minimal.js';
import type { Clock } from '../../base/clock.ts';
import { HOST } from '../../model/named-host.ts';
import type { AgentLog } from '../log.ts';
import { removeFile } from '../machine.ts';
import { type RawResponse, eachField, readDeltaRequest, readRawResponse, writeRawResponse } from './messages.ts';

/** What a start needs. Not secrets: keys are not written down. */
const TYPES: ReadonlySet<string> = new Set([
  ...[
    'cluster.v3.Cluster',
    'endpoint.v3.ClusterLoadAssignment',
    'listener.v3.Listener',
    'route.v3.RouteConfiguration',
  ].map((type) => `type.googleapis.com/envoy.config.${type}`),
  // Names for the agent itself.
  HOST,
]);

const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';

/** Bytes of resources. A larger configuration is not kept: each Pod would pay for it with its memory. */
const LIMIT = 8 * 1024 * 1024;
/** Responses without an answer, and their bytes; a well-behaved control plane waits with the next of a type. */
const MOST_PENDING = { responses: 1_000, bytes: 2 * LIMIT };
/** Milliseconds from a change until it is on disk: for the first, and between any two. */
const [SOON, SELDOM] = [2_000, 30_000];

type Resources = Map<string, Uint8Array>;

export interface LastConfigOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly log: AgentLog;
  readonly signal: AbortSignal;
}

/**
 * The configuration that Envoy has acknowledged, by type. It is also in a file, from which an Envoy that starts while the
 * control plane is away gets what the one before it had.
 */
export class LastConfig {
  readonly #options: LastConfigOptions;
  readonly #held = new Map<string, Resources>();
  /** Responses that Envoy has yet to answer, by nonce. */
  readonly #pending = new Map<string, { readonly response: RawResponse; readonly bytes: number }>();
  #pendingBytes = 0;
  #bytes = 0;
  #tooLarge = false;
  #cancelSave: (() => void) | undefined;
  #saved = false;
  #said = '';

  constructor(options: LastConfigOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => this.#cancelSave?.(), { once: true });
  }

  /** Whether an Envoy of this process has acknowledged anything. */
  get isKnown(): boolean {
    return this.#held.has(CLUSTER);
  }

  get isTooLarge(): boolean {
    return this.#tooLarge;
  }

  /** A response on its way to Envoy. */
  sent(typeUrl: string, nonce: string, message: Uint8Array): void {
    if (this.#tooLarge || !TYPES.has(typeUrl)) return;
    if (message.length > LIMIT) return this.#giveUp();
    this.#takePending(nonce);
    this.#pending.set(nonce, { response: readRawResponse(message), bytes: message.length });
    this.#pendingBytes += message.length;
    // An Envoy that answers nothing, or a control plane that does not wait for it.
    if (this.#pending.size > MOST_PENDING.responses || this.#pendingBytes > MOST_PENDING.bytes) this.#giveUp();
  }

  /** A request of Envoy. */
  received(message: Uint8Array): void {
    if (this.#pending.size === 0) return;
    const { nonce, error } = readDeltaRequest(message);
    const response = this.#takePending(nonce);
    if (response !== undefined && error === undefined) this.#apply(response);
  }

  #takePending(nonce: string): RawResponse | undefined {
    const found = this.#pending.get(nonce);
    this.#pending.delete(nonce);
    this.#pendingBytes -= found?.bytes ?? 0;
    return found?.response;
  }

  /** A response that the agent itself has accepted. */
  accepted(typeUrl: string, message: Uint8Array): void {
    if (!this.#tooLarge && TYPES.has(typeUrl)) this.#apply(readRawResponse(message));
  }

  /** Another stream: what the last one owed an answer will not be answered. */
  restart(): void {
    this.#pending.clear();
    this.#pendingBytes = 0;
  }

  /** What was saved, and when, or undefined if there is nothing that can be read. */
  load():
    { readonly saved: Date; readonly resources: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>> } | undefined {
    try {
      const { file } = this.#options;
      const found = statSync(file);
      // Containers of the application may write into the directory, too. What is around the resources is less than they.
      if (!found.isFile() || found.size === 0 || found.size > 2 * LIMIT) return undefined;
      const [bytes, saved] = [readFileSync(file), found.mtime];
      const resources = new Map<string, ReadonlyMap<string, Uint8Array>>();
      eachField(bytes, (field, reader) => {
        if (field !== 1) return false;
        const { typeUrl, resources: of } = readRawResponse(reader.bytes());
        resources.set(typeUrl, new Map(of));
        return true;
      });
      return resources.size === 0 ? undefined : { saved, resources };
    } catch {
      return undefined;
    }
  }

  #apply({ typeUrl, resources, removed }: RawResponse): void {
    const of = this.#held.get(typeUrl) ?? new Map<string, Uint8Array>();
    this.#held.set(typeUrl, of);
    for (const name of removed) this.#put(of, name, undefined);
    // A copy: it would keep all of the message that it came in.
    for (const [name, resource] of resources) this.#put(of, name, Uint8Array.from(resource));
    if (this.#bytes > LIMIT) return this.#giveUp();
    this.#cancelSave ??= this.#options.clock.after(this.#saved ? SELDOM : SOON, () => void this.#save());
  }

  #put(of: Resources, name: string, resource: Uint8Array | undefined): void {
    this.#bytes += (resource?.length ?? 0) - (of.get(name)?.length ?? 0);
    if (resource === undefined) of.delete(name);
    else of.set(name, resource);
  }

  #giveUp(): void {
    this.#tooLarge = true;
    this.restart();
    for (const of of this.#held.values()) of.clear();
    const { file, log } = this.#options;
    // What a former one has left would be older with each change.
    removeFile(file);
    log.warn('The configuration is too large to be kept for a restart without the control plane', { limit: LIMIT });
  }

  async #save(): Promise<void> {
    this.#cancelSave = undefined;
    if (this.#tooLarge) return;
    const writer = protobuf.Writer.create();
    for (const [typeUrl, of] of this.#held)
      writer.uint32(10).bytes(writeRawResponse({ typeUrl, nonce: '', resources: [...of], removed: [] }));
    const { file, log } = this.#options;
    try {
      mkdirSync(dirname(file), { recursive: true });
      await writeFile(`${file}.new`, writer.finish(), { mode: 0o600, flush: true });
      renameSync(`${file}.new`, file);
      [this.#saved, this.#said] = [true, ''];
    } catch (error) {
      removeFile(`${file}.new`);
      const reason = String(error);
      if (reason !== this.#said) log.warn('The configuration is not saved for a restart', { file, reason });
      this.#said = reason;
    }
  }
}
