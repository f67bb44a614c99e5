import type { Client, ClientDuplexStream, ServerDuplexStream } from '@grpc/grpc-js';
import { type Clock, sleep } from '../../base/clock.ts';
import { Backoff } from '../../base/backoff.ts';
import { grpcStatus } from '../../base/grpc-status.ts';
import type { AgentLog } from '../log.ts';
import { type Dialed, bytes } from './dial.ts';
import type { LastConfig } from './last-config.ts';
import { savedAnswers } from './saved-stream.ts';
import { readEnvelope, writeDeltaRequest, writeRawResponse } from './messages.ts';

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
  readonly last: LastConfig;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: AgentLog;
  readonly signal: AbortSignal;
}

type Down = ServerDuplexStream<Buffer, Buffer>;
type Up = ClientDuplexStream<Buffer, Buffer>;

/**
 * Passes the bytes of one ADS stream between Envoy and the control plane. It reads no more of them than the type of each
 * response: what the agent itself has asked for does not go on to Envoy. Either side waits for the other, so nothing
 * piles up here. When one side ends, the other does; Envoy reconnects, with its own back-off. An Envoy that has just
 * started while the control plane is away gets what was saved, until the control plane is back.
 */
export class Relay {
  readonly #options: RelayOptions;
  #current: (() => void) | undefined;
  #said = '';
  #connected = false;
  /** Since when what Envoy has is known to be in force, if that is not now. */
  #servesSaved: Date | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Whether a stream to the control plane has answered, and has not ended. */
  get connected(): boolean {
    return this.#connected;
  }

  /** When the configuration was saved that Envoy has, if it is not the control plane's of now. */
  get servesSaved(): Date | undefined {
    return this.#servesSaved;
  }

  serve(envoy: Down): void {
    // Envoy has one stream at a time: an older one is what is left of a connection that broke.
    this.#current?.();
    this.#options.last.restart();
    try {
      const { client, metadata } = this.#options.dial();
      this.#connect(envoy, client.makeBidiStreamRequest(ADS, bytes, bytes, metadata), client);
    } catch (error) {
      this.#fail(envoy, 14, error instanceof Error ? error.message : String(error));
    }
  }

  #connect(envoy: Down, up: Up, client: Client): void {
    const { last, own: ownTypes, clock } = this.#options;
    let [ended, asked] = [false, false];
    /** Requests of an Envoy that nobody has answered. */
    let unanswered: Buffer[] | undefined = [];
    let waiting = 0;
    const end = (code = 14, details = 'the control plane ended the stream'): void => {
      if (ended) return;
      ended = true;
      cancelLimit();
      if (this.#current === finish) [this.#current, this.#connected] = [undefined, false];
      up.cancel();
      client.close();
      if (unanswered === undefined) envoy.emit('error', grpcStatus(code, details));
      else this.#fail(envoy, code, details, unanswered);
    };
    const finish = (): void => {
      unanswered = undefined;
      end(14, 'another stream has taken its place');
    };
    this.#current = finish;
    // A control plane that accepts streams and does not answer is as good as away, for an Envoy that has nothing.
    const cancelLimit = clock.after(ANSWERED_WITHIN, () => {
      if (unanswered !== undefined && !last.isKnown && last.load() !== undefined)
        end(4, 'the control plane does not answer');
    });
    envoy.on('data', (message: Buffer) => {
      if (ended) return;
      try {
        last.received(message);
      } catch {
        unanswered = undefined;
        return end(3, 'Envoy sent what is not xDS');
      }
      unanswered?.push(message);
      waiting += message.length;
      // It starts with a few kilobytes. Whoever sends so much has a configuration.
      if (waiting > MOST_UNANSWERED) unanswered = undefined;
      if (!up.write(message)) envoy.pause();
      if (asked) return;
      asked = true;
      // The first request has the node, which those of the agent need.
      for (const { typeUrl, versions } of ownTypes.map((own) => ({ typeUrl: own.typeUrl, versions: own.versions() })))
        up.write(writeDeltaRequest({ typeUrl, versions }));
    });
    up.on('drain', () => envoy.resume());
    up.on('data', (message: Buffer) => {
      if (ended) return;
      let own: OwnType | undefined;
      let nonce: string;
      try {
        const envelope = readEnvelope(message);
        ({ nonce } = envelope);
        own = ownTypes.find((type) => type.typeUrl === envelope.typeUrl);
        if (own === undefined) last.sent(envelope.typeUrl, nonce, message);
      } catch {
        return end(13, 'the control plane sent what is not xDS');
      }
      unanswered = undefined;
      this.#answered();
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
    // Envoy itself is gone.
    const gone = (): void => {
      unanswered = undefined;
      end(1);
    };
    envoy.on('end', gone).on('cancelled', gone);
  }

  /** Nobody has answered this Envoy: it gets what was saved, if it has nothing. */
  #fail(envoy: Down, code: number, details: string, requests: readonly Buffer[] = []): void {
    this.#say(details);
    const { last, log, own: ownTypes } = this.#options;
    const found = last.isKnown ? undefined : last.load();
    if (found === undefined) return void envoy.emit('error', grpcStatus(code, details));
    if (this.#servesSaved === undefined)
      log.warn('The control plane is away: Envoy starts with the configuration that was saved', { saved: found.saved });
    this.#servesSaved = found.saved;
    const stop = new AbortController();
    this.#current = () => stop.abort();
    const end = (): void => stop.abort();
    envoy.on('end', end).on('cancelled', end);
    for (const own of ownTypes) {
      const { typeUrl } = own;
      const resources = found.resources.get(typeUrl);
      // What cannot be read is as if it were not there.
      if (resources !== undefined)
        own.receive(writeRawResponse({ typeUrl, nonce: '', resources: [...resources], removed: [] })).catch(() => {});
    }
    const answer = savedAnswers(found.resources);
    const take = (message: Buffer): void => {
      try {
        answer(message).forEach((response) => envoy.write(response));
      } catch {
        // What is not xDS has no answer.
      }
    };
    requests.forEach(take);
    envoy.on('data', take);
    envoy.resume();
    void this.#untilBack(AbortSignal.any([stop.signal, this.#options.signal])).then(() =>
      envoy.emit('error', grpcStatus(14, 'the control plane may be back')),
    );
  }

  /** Settles when the control plane accepts connections, or the signal fires. */
  async #untilBack(signal: AbortSignal): Promise<void> {
    const { clock, random, dial } = this.#options;
    const backoff = new Backoff({ base: 1_000, cap: 20_000, random });
    while (!signal.aborted) {
      await sleep(clock, backoff.next(), { signal });
      if (signal.aborted || (await accepts(dial))) return;
    }
  }

  async #take(own: OwnType, message: Buffer, nonce: string, up: Up): Promise<void> {
    const { typeUrl } = own;
    try {
      await own.receive(message);
      this.#options.last.accepted(typeUrl, message);
      up.write(writeDeltaRequest({ typeUrl, nonce }));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn('The agent rejects what the control plane sent', { type: typeUrl, reason });
      up.write(writeDeltaRequest({ typeUrl, nonce, error: reason }));
    }
  }

  #answered(): void {
    if (this.#said !== '') this.#options.log.info('Connected to the control plane again');
    [this.#connected, this.#said, this.#servesSaved] = [true, '', undefined];
  }

  /** Once for each reason: Envoy tries again for as long as it takes. */
  #say(reason: string): void {
    if (reason !== this.#said)
      this.#options.log.warn('Not connected to the control plane; Envoy keeps its configuration', { reason });
    this.#said = reason;
  }
}

/** Bytes of requests that are kept until the control plane answers the first of them. */
const MOST_UNANSWERED = 1024 * 1024;

/** Milliseconds for the first answer, if there is something saved. */
const ANSWERED_WITHIN = 15_000;
/** Milliseconds for a connection. */
const ACCEPTED_WITHIN = 5_000;

async function accepts(dial: RelayOptions['dial']): Promise<boolean> {
  try {
    const { client } = dial();
    return await new Promise<boolean>((resolve) =>
      client.waitForReady(Date.now() + ACCEPTED_WITHIN, (error) => {
        client.close();
        resolve(error === undefined || error === null);
      }),
    );
  } catch {
    return false;
  }
}
