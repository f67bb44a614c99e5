import type { Client, ClientDuplexStream, ServerDuplexStream } from '@grpc/grpc-js';
import type { AgentLog } from '../log.ts';
import { type Dialed, bytes } from './control-plane.ts';
import { readEnvelope, writeDeltaRequest } from './messages.ts';

export const ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources';

/** A resource type that is for the agent, not for Envoy. */
export interface OwnType {
  readonly typeUrl: string;
  /** What the agent has, at the beginning of a stream: name -> version. */
  versions(): ReadonlyMap<string, string>;
  /** Takes a `DeltaDiscoveryResponse`. Rejects with why it is not acceptable. */
  receive(response: Uint8Array): Promise<void>;
}

export interface RelayOptions {
  /** Connects to the control plane. May throw what is missing. */
  readonly dial: () => Dialed;
  readonly own: readonly OwnType[];
  readonly log: AgentLog;
}

type Down = ServerDuplexStream<Buffer, Buffer>;
type Up = ClientDuplexStream<Buffer, Buffer>;

/**
 * Passes the bytes of one ADS stream between Envoy and the control plane. It reads no more of them than the type of each
 * response: what the agent itself has asked for does not go on to Envoy. Either side waits for the other, so nothing
 * piles up here. When one side ends, the other does; Envoy reconnects, with its own back-off.
 */
export class Relay {
  readonly #options: RelayOptions;
  #current: (() => void) | undefined;
  #said = '';

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Whether a stream to the control plane has answered, and has not ended. */
  connected = false;

  serve(envoy: Down): void {
    // Envoy has one stream at a time: an older one is what is left of a connection that broke.
    this.#current?.();
    let dialed: { readonly client: Client; readonly up: Up };
    try {
      const { client, metadata } = this.#options.dial();
      dialed = { client, up: client.makeBidiStreamRequest(ADS, bytes, bytes, metadata) };
    } catch (error) {
      const details = error instanceof Error ? error.message : String(error);
      this.#say(details);
      return void envoy.emit('error', { code: 14, details });
    }
    this.#connect(envoy, dialed.up, dialed.client);
  }

  #connect(envoy: Down, up: Up, client: Client): void {
    let ended = false;
    const end = (code = 14, details = 'the control plane ended the stream'): void => {
      if (ended) return;
      ended = true;
      if (this.#current === finish) [this.#current, this.connected] = [undefined, false];
      up.cancel();
      client.close();
      envoy.emit('error', { code, details });
    };
    const finish = (): void => end(14, 'another stream has taken its place');
    this.#current = finish;
    this.connected = false;
    let asked = false;
    envoy.on('data', (message: Buffer) => {
      if (!up.write(message)) envoy.pause();
      if (asked) return;
      asked = true;
      // The first request has the node, which those of the agent need.
      for (const { typeUrl, versions } of this.#options.own.map((own) => ({
        typeUrl: own.typeUrl,
        versions: own.versions(),
      })))
        up.write(writeDeltaRequest({ typeUrl, versions }));
    });
    up.on('drain', () => envoy.resume());
    up.on('data', (message: Buffer) => {
      if (ended) return;
      this.connected = true;
      this.#said = '';
      const { typeUrl, nonce } = readEnvelope(message);
      const own = this.#options.own.find((type) => type.typeUrl === typeUrl);
      if (own !== undefined) return void this.#take(own, message, nonce, up);
      if (!envoy.write(message)) up.pause();
    });
    envoy.on('drain', () => up.resume());
    up.on('error', (error: Error & { code?: number; details?: string }) => {
      if (ended) return;
      const details = error.details ?? error.message;
      this.#say(details);
      end(error.code, details);
    });
    up.on('end', () => end());
    // An error on this side is one that `end` has emitted.
    envoy.on('end', () => end(0)).on('cancelled', () => end(1));
  }

  async #take(own: OwnType, message: Buffer, nonce: string, up: Up): Promise<void> {
    const { typeUrl } = own;
    try {
      await own.receive(message);
      up.write(writeDeltaRequest({ typeUrl, nonce }));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn('The agent rejects what the control plane sent', { type: typeUrl, reason });
      up.write(writeDeltaRequest({ typeUrl, nonce, error: reason }));
    }
  }

  /** Once for each reason: Envoy tries again for as long as it takes. */
  #say(reason: string): void {
    if (reason !== this.#said)
      this.#options.log.warn('Not connected to the control plane; Envoy keeps its configuration', { reason });
    this.#said = reason;
  }
}
