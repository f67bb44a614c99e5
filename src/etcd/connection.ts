/**
 * One connection to an etcd, and whether it still leads to the same store. What is done over it: `list-watch.ts` (what a range
 * of keys holds) and `leases.ts` (for writers). `rest.ts` limits what others may take of our time; `codec.ts` and
 * `messages.ts` are the protobuf.
 */
import {
  type CallOptions,
  Client,
  type ClientOptions,
  connectivityState,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import type { Clock } from '../base/clock.ts';
import { type EtcdAccess, type Target, targetsOf } from './access.ts';
import { ConnectionCredentials } from './credentials.ts';
import { EtcdError, errorOf, errorOfCall } from './error.ts';
import { type Procedure, range, type ResponseHeader, type WithHeader } from './messages.ts';
import { Rest } from './rest.ts';

export interface EtcdOptions {
  readonly access: EtcdAccess;
  readonly clock: Clock;
  /** Uniform in [0, 1): members are tried in random order. */
  readonly random: () => number;
  /** Milliseconds without a byte before the server is asked for one, and for which it may take. */
  readonly keepAlive?: { readonly time: number; readonly timeout: number };
  /** Milliseconds in which a member must be connected. */
  readonly patience?: number;
}

/** As Cilium's clients have it. */
const KEEP_ALIVE = { time: 15_000, timeout: 25_000 };
const PATIENCE = 10_000;
/** For all members together. Milliseconds. */
const PATIENCE_IN_ALL = 60_000;

/**
 * Bytes of a message that is read. etcd itself takes requests of up to 1.5 MiB, so this is two values of that size; of
 * smaller ones, an answer has as many as fit (see `list.ts`). gRPC refuses a longer message when it sees its length.
 */
export const LONGEST_MESSAGE = 4 * 1024 * 1024;

/** Milliseconds for one request. */
const DEADLINE = 60_000;

/** Rejects with {@link EtcdError}: why no member could be reached. */
export async function connectEtcd(
  options: EtcdOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<EtcdConnection> {
  let last: EtcdError | undefined;
  const until = options.clock.now() + PATIENCE_IN_ALL;
  for (const target of shuffled(targetsOf(options.access), options.random)) {
    try {
      return await connectTo(target, options, signal);
    } catch (cause) {
      if (signal.aborted) throw closed();
      const { reason, message } = errorOf(cause);
      last = new EtcdError(reason, `${target.endpoint}: ${message}`, cause);
      if (options.clock.now() >= until) break;
    }
  }
  throw last ?? closed();
}

async function connectTo(target: Target, options: EtcdOptions, signal: AbortSignal): Promise<EtcdConnection> {
  const credentials = await ConnectionCredentials.read(target, options.access);
  const client = new Client(target.address, credentials, channelOptions(target, options));
  const end = (): void => {
    client.close();
    credentials.close();
  };
  const { clock, patience = PATIENCE } = options;
  try {
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => reject(closed());
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      const cancel = clock.after(patience, () =>
        reject(new EtcdError('Timeout', `not connected within ${patience / 1_000} s`)),
      );
      whenConnected(client)
        .then(resolve, reject)
        .finally(() => {
          cancel();
          signal.removeEventListener('abort', abort);
        });
    });
  } catch (error) {
    end();
    throw error;
  }
  return new EtcdConnection(target.endpoint, client, clock, end);
}

/** Rejects with gRPC's reason as soon as it would wait before it tries again. */
function whenConnected(client: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const state = channel.getConnectivityState(false);
      if (state === connectivityState.READY) resolve();
      else if (state === connectivityState.SHUTDOWN) reject(closed());
      else if (state !== connectivityState.TRANSIENT_FAILURE) channel.watchConnectivityState(state, Infinity, look);
      // Calls fail at once now, and say why.
      else
        client.makeUnaryRequest(range.path, bytes, bytes, Buffer.alloc(0), (error: ServiceError | null) =>
          reject(error === null ? closed() : errorOfCall(error)),
        );
    };
    const channel = client.getChannel();
    channel.getConnectivityState(true);
    look();
  });
}

function channelOptions({ authority }: Target, { keepAlive = KEEP_ALIVE }: EtcdOptions): ClientOptions {
  return {
    'grpc.default_authority': authority,
    'grpc.keepalive_time_ms': keepAlive.time,
    'grpc.keepalive_timeout_ms': keepAlive.timeout,
    'grpc.max_receive_message_length': LONGEST_MESSAGE,
    'grpc.client_idle_timeout_ms': 0x7fff_ffff,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.service_config_disable_resolution': 1,
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.enable_channelz': 0,
  };
}

/** A stream of messages both ways. */
export interface EtcdStream<Request> {
  send(request: Request): void;
  /** Resolves when etcd ends it without an error; else rejects with {@link EtcdError}. */
  readonly ended: Promise<void>;
}

/**
 * One connection to one member. It ends when that breaks, and does not come back: a connection that is made instead
 * reads the files again, and what answers there may be another etcd.
 */
export class EtcdConnection {
  readonly endpoint: string;
  /** Why nothing works any more. */
  readonly ended: Promise<EtcdError>;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #disconnect: () => void;
  readonly #rest: Rest;
  readonly #onEnd: (error: EtcdError) => void;
  /** Ends a call. */
  readonly #calls = new Set<(error: EtcdError) => void>();
  #failure: EtcdError | undefined;
  #clusterId: bigint | undefined;
  #revision = 0n;

  constructor(endpoint: string, client: Client, clock: Clock, disconnect: () => void) {
    this.endpoint = endpoint;
    this.#client = client;
    this.#clock = clock;
    this.#disconnect = disconnect;
    this.#rest = new Rest(clock);
    const { promise, resolve } = Promise.withResolvers<EtcdError>();
    [this.ended, this.#onEnd] = [promise, resolve];
    client.getChannel().watchConnectivityState(connectivityState.READY, Infinity, () => {
      this.#fail(new EtcdError('Unavailable', 'the connection was lost'));
    });
  }

  /** Undefined while it works. */
  get failure(): EtcdError | undefined {
    return this.#failure;
  }

  /** Of the etcd behind it; undefined before its first answer. */
  get clusterId(): bigint | undefined {
    return this.#clusterId;
  }

  close(): void {
    this.#fail(closed());
  }

  /** Rejects with {@link EtcdError}. */
  async call<Request, Response extends WithHeader>(
    procedure: Procedure<Request, Response>,
    request: Request,
    { signal, deadline = DEADLINE }: { readonly signal: AbortSignal; readonly deadline?: number },
  ): Promise<Response> {
    const why = this.#failure ?? (signal.aborted ? closed() : undefined);
    if (why !== undefined) throw why;
    const floor = this.#revision;
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const done = (error: ServiceError | null, value?: Buffer): void =>
      error === null && value !== undefined ? resolve(value) : reject(this.#failure ?? failureOf(error));
    const { path } = procedure;
    const payload = procedure.request.encode(request);
    const call = this.#client.makeUnaryRequest(path, bytes, bytes, payload, metadataOf(procedure), optionsOfCall, done);
    const stop = this.#bound(signal, (error) => {
      reject(error);
      call.cancel();
    });
    const cancel = this.#clock.after(deadline, () => {
      reject(new EtcdError('Timeout', `no answer within ${deadline / 1_000} s`));
      call.cancel();
    });
    try {
      return this.#read(procedure, await promise, floor);
    } finally {
      cancel();
      stop();
    }
  }

  /** The stream ends with the signal, and if `onMessage` throws. */
  open<Request, Response extends WithHeader>(
    procedure: Procedure<Request, Response>,
    { signal, onMessage }: { readonly signal: AbortSignal; readonly onMessage: (message: Response) => void },
  ): EtcdStream<Request> {
    const why = this.#failure ?? (signal.aborted ? closed() : undefined);
    if (why !== undefined) return { ended: Promise.reject(why), send: () => undefined };
    const floor = this.#revision;
    const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
    let isOpen = true;
    const { path } = procedure;
    const options = { interceptors: [this.#rest.interceptor] };
    const call = this.#client.makeBidiStreamRequest(path, bytes, bytes, metadataOf(procedure), options);
    const end = (settle: () => void): void => {
      isOpen = false;
      stop();
      settle();
    };
    const stop = this.#bound(signal, (error) => {
      end(() => reject(error));
      call.cancel();
    });
    call.on('data', (value: Buffer) => {
      if (!isOpen) return;
      try {
        onMessage(this.#read(procedure, value, floor));
      } catch (cause) {
        end(() => reject(this.#failure ?? errorOf(cause)));
        call.cancel();
      }
    });
    call.on('error', (error: ServiceError) => end(() => reject(this.#failure ?? failureOf(error))));
    call.on('end', () => end(resolve));
    return {
      ended,
      send(request) {
        if (isOpen) call.write(procedure.request.encode(request));
      },
    };
  }

  /** Calls back once when the signal fires or the connection ends, unless the result was called before. */
  #bound(signal: AbortSignal, end: (error: EtcdError) => void): () => void {
    const abort = (): void => end(closed());
    signal.addEventListener('abort', abort, { once: true });
    this.#calls.add(end);
    return () => {
      signal.removeEventListener('abort', abort);
      this.#calls.delete(end);
    };
  }

  #read<Request, Response extends WithHeader>(
    { response }: Procedure<Request, Response>,
    value: Uint8Array,
    floor: bigint,
  ): Response {
    let message: Response;
    try {
      message = response.decode(value);
    } catch (cause) {
      throw new EtcdError('Malformed', 'an answer is not a message of etcd', cause);
    }
    this.#check(message.header, floor);
    return message;
  }

  /**
   * Every answer must be of the same etcd as those before, which the cluster id tells; and of a store that has not gone
   * back, which is how an etcd reveals that it was emptied although its id is the same. Several calls at once may be
   * answered out of order, so a revision counts against what was known when its call began.
   */
  #check(header: ResponseHeader | undefined, floor: bigint): void {
    const clusterId = header?.clusterId ?? 0n;
    const revision = header?.revision ?? 0n;
    if (clusterId === 0n) this.#fail(new EtcdError('OtherCluster', 'an answer has no cluster_id'));
    this.#clusterId ??= clusterId;
    if (clusterId !== this.#clusterId)
      this.#fail(
        new EtcdError('OtherCluster', `another etcd answers: cluster_id ${clusterId} instead of ${this.#clusterId}`),
      );
    // Some messages do not say it: that a watch is behind a compaction, for example.
    if (revision !== 0n && revision < floor)
      this.#fail(
        new EtcdError('WentBack', `the store was replaced by an older one: revision ${revision} after ${floor}`),
      );
    if (this.#failure !== undefined) throw this.#failure;
    if (revision > this.#revision) this.#revision = revision;
  }

  #fail(error: EtcdError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    for (const end of [...this.#calls]) end(error);
    this.#disconnect();
    this.#onEnd(error);
  }
}

const bytes = (value: Buffer): Buffer => value;
const optionsOfCall: CallOptions = {};

function metadataOf({ requiresLeader }: Procedure<never, WithHeader>): Metadata {
  const metadata = new Metadata();
  if (requiresLeader === true) metadata.set('hasleader', 'true');
  return metadata;
}

function failureOf(error: ServiceError | null): EtcdError {
  return error === null ? new EtcdError('Malformed', 'an answer is empty') : errorOfCall(error);
}

function closed(): EtcdError {
  return new EtcdError('Closed', 'closed');
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
