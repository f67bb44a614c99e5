import type { ClientDuplexStream, ServerDuplexStream } from '@grpc/grpc-js';
import { grpcStatus } from '../../base/grpc-status.ts';
import type { AgentLog } from '../log.ts';
import { type Dialed, bytes } from './dial.ts';

export const STATE_OF_THE_WORLD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

/** Streams at a time: a process that speaks gRPC has one or two. */
const MOST = 100;

export interface PassThroughOptions {
  /** The path of the gRPC method. */
  readonly method: string;
  /** Where to, for messages. */
  readonly to: string;
  /** Connects to it. May throw what is missing. */
  readonly dial: () => Dialed;
  readonly log: AgentLog;
}

/**
 * Passes streams on as they are, each on a connection of its own. Either side waits for the other. When one side ends, the
 * other does; the client connects again, with its own back-off.
 */
export class PassThrough {
  readonly #options: PassThroughOptions;
  #streams = 0;
  /** Why there was no connection: once for each reason, since clients try again. */
  #said = '';

  constructor(options: PassThroughOptions) {
    this.#options = options;
  }

  serve(client: ServerDuplexStream<Buffer, Buffer>): void {
    if (this.#streams >= MOST)
      return void client.emit('error', grpcStatus(8, `more than ${MOST} streams through one agent`));
    let dialed;
    try {
      dialed = this.#options.dial();
    } catch (error) {
      const details = error instanceof Error ? error.message : String(error);
      this.#say(details);
      return void client.emit('error', grpcStatus(14, details));
    }
    this.#streams++;
    this.#connect(client, dialed);
  }

  #connect(client: ServerDuplexStream<Buffer, Buffer>, { client: channel, metadata }: Dialed): void {
    const up = channel.makeBidiStreamRequest(this.#options.method, bytes, bytes, metadata);
    let ended = false;
    const end = (code: number, details: string): void => {
      if (ended) return;
      ended = true;
      this.#streams--;
      up.cancel();
      channel.close();
      client.emit('error', grpcStatus(code, details));
    };
    forward(client, up, () => ended);
    forward(up, client, () => ended);
    let answered = false;
    up.once('data', () => {
      answered = true;
      this.#said = '';
    });
    up.on('error', ({ code = 14, details = '' }: Error & { code?: number; details?: string }) => {
      if (!answered && !ended) this.#say(details);
      end(code, details);
    });
    up.on('end', () => end(14, `${this.#options.to} ended the stream`));
    const gone = (): void => end(1, 'the client is gone');
    client.on('end', gone).on('cancelled', gone);
  }

  #say(details: string): void {
    if (details !== this.#said)
      this.#options.log.warn(`A client is not connected to ${this.#options.to}`, { reason: details });
    this.#said = details;
  }
}

type Side = ServerDuplexStream<Buffer, Buffer> | ClientDuplexStream<Buffer, Buffer>;

function forward(from: Side, to: Side, isOver: () => boolean): void {
  from.on('data', (message: Buffer) => {
    if (!isOver() && !to.write(message)) from.pause();
  });
  to.on('drain', () => from.resume());
}
