import type { ClientDuplexStream, ServerDuplexStream } from '@grpc/grpc-js';
import { grpcStatus } from '../../grpc-status.ts';
import type { AgentLog } from '../log.ts';
import { type Dialed, bytes } from './dial.ts';

export const STATE_OF_THE_WORLD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

/** Streams at a time: a process that speaks gRPC has one or two. */
const MOST = 100;

export interface PassThroughOptions {
  /** Connects to the control plane. May throw what is missing. */
  readonly dial: () => Dialed;
  readonly log: AgentLog;
}

/**
 * Passes ADS streams of gRPC's own clients on to the control plane as they are, each on a connection of its own. Either
 * side waits for the other. When one side ends, the other does; the library connects again, with its own back-off.
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
      if (details !== this.#said)
        this.#options.log.warn('A gRPC client is not connected to the control plane', { reason: details });
      this.#said = details;
      return void client.emit('error', grpcStatus(14, details));
    }
    this.#said = '';
    this.#streams++;
    this.#connect(client, dialed);
  }

  #connect(client: ServerDuplexStream<Buffer, Buffer>, { client: channel, metadata }: Dialed): void {
    const up = channel.makeBidiStreamRequest(STATE_OF_THE_WORLD, bytes, bytes, metadata);
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
    up.on('error', ({ code = 14, details }: Error & { code?: number; details?: string }) => end(code, details ?? ''));
    up.on('end', () => end(14, 'the control plane ended the stream'));
    const gone = (): void => end(1, 'the client is gone');
    client.on('end', gone).on('cancelled', gone);
  }
}

type Side = ServerDuplexStream<Buffer, Buffer> | ClientDuplexStream<Buffer, Buffer>;

function forward(from: Side, to: Side, isOver: () => boolean): void {
  from.on('data', (message: Buffer) => {
    if (!isOver() && !to.write(message)) from.pause();
  });
  to.on('drain', () => from.resume());
}
