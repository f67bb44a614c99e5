import { type ChannelCredentials, Client, type ClientDuplexStream, Metadata, type ServiceError } from '@grpc/grpc-js';
import { type Clock, sleep } from '../../clock.ts';
import { Backoff } from '../../kube/backoff.ts';
import { type AgentNode, answerRequest, firstRequest, readResponse } from './discovery.ts';
import type { HostChange, Names } from './names.ts';

const METHOD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources';
/** The first response has all hosts: 100 bytes each. */
const MOST_RESPONSE_BYTES = 64 * 1024 * 1024;

export interface NameStreamOptions {
  /** Of the control plane: `istiod.istio-system.svc:15012`. */
  readonly address: string;
  /** Called for each connection, since certificates are renewed. Rejects if there are none yet. */
  readonly credentials: () => Promise<ChannelCredentials>;
  /** Called for each connection: a token, for example. */
  readonly metadata?: () => Promise<Metadata>;
  /** As that of the proxy; it decides what is seen. */
  readonly node: AgentNode;
  readonly names: Pick<Names, 'apply'>;
  /** A name that the server's certificate has, if not that of the address. */
  readonly serverName?: string;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  /** Each change of state, once: connected, or why not. */
  readonly changed: (state: NameStreamState) => void;
  readonly signal: AbortSignal;
}

export type NameStreamState = { readonly isConnected: true } | { readonly isConnected: false; readonly error: string };

/**
 * Keeps the names as the control plane has them, over a stream of its own. While there is no connection, the last table
 * stays. Resolves when the signal fires.
 */
export async function followNames(options: NameStreamOptions): Promise<void> {
  const { clock, random, signal, changed } = options;
  const backoff = new Backoff({ base: 1_000, cap: 30_000, random });
  /** What there is, by name: after a break, only differences come. */
  const versions = new Map<string, string>();
  let last: string | undefined;
  const tell = (error: string): void => {
    if (error === last) return;
    last = error;
    changed(error === '' ? { isConnected: true } : { isConnected: false, error });
  };
  while (!signal.aborted) {
    const error = await follow(options, versions, () => {
      backoff.reset();
      tell('');
    });
    if (signal.aborted) return;
    tell(error);
    await sleep(clock, backoff.next(), { signal });
  }
}

/** One connection; resolves with what ended it. */
async function follow(
  { address, credentials, metadata, node, names, serverName, signal }: NameStreamOptions,
  versions: Map<string, string>,
  received: () => void,
): Promise<string> {
  let client: Client | undefined;
  try {
    const [given, headers] = await Promise.all([credentials(), metadata?.() ?? new Metadata()]);
    if (signal.aborted) return 'stopped';
    client = new Client(address, given, {
      'grpc.max_receive_message_length': MOST_RESPONSE_BYTES,
      'grpc.keepalive_time_ms': 30_000,
      'grpc.keepalive_timeout_ms': 10_000,
      'grpc.enable_channelz': 0,
      // A new connection for new credentials.
      'grpc.use_local_subchannel_pool': 1,
      ...(serverName !== undefined && { 'grpc.ssl_target_name_override': serverName }),
    });
    const call = client.makeBidiStreamRequest(METHOD, identity, identity, headers);
    call.write(Buffer.from(firstRequest(node, versions)));
    return await ended(call, signal, (bytes) => {
      const answer = take(bytes, names, versions);
      received();
      call.write(Buffer.from(answer));
    });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    client?.close();
  }
}

/** Takes a whole response or nothing of it; returns the answer. Throws if it cannot be answered. */
function take(bytes: Uint8Array, names: Pick<Names, 'apply'>, versions: Map<string, string>): Uint8Array {
  const { nonce, hosts, removed, error } = readResponse(bytes);
  if (error !== undefined) return answerRequest(nonce, error);
  for (const { name, version } of hosts) versions.set(name, version);
  for (const name of removed) versions.delete(name);
  names.apply([
    ...removed.map((name): HostChange => [name, undefined]),
    // The one without a name is the table itself.
    ...hosts.flatMap(({ name, addresses }): HostChange[] => (name === '' ? [] : [[name, addresses]])),
  ]);
  return answerRequest(nonce);
}

function ended(
  call: ClientDuplexStream<Buffer, Buffer>,
  signal: AbortSignal,
  message: (bytes: Buffer) => void,
): Promise<string> {
  return new Promise((resolve) => {
    const end = (reason: string): void => {
      signal.removeEventListener('abort', stop);
      call.cancel();
      resolve(reason);
    };
    const stop = (): void => end('stopped');
    call.on('error', ({ message: details }: ServiceError) => end(details));
    call.on('end', () => end('the control plane has ended the stream'));
    call.on('data', (bytes: Buffer) => {
      try {
        message(bytes);
      } catch (error) {
        end(`a response cannot be read: ${String(error)}`);
      }
    });
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop);
  });
}

const identity = (bytes: Buffer): Buffer => bytes;
