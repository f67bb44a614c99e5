import type { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import {
  type ChannelOptions,
  logVerbosity,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  setLogVerbosity,
} from '@grpc/grpc-js';
import { AdsStreams } from './ads-streams.ts';
import { MAX_REQUEST_BYTES } from './receiving.ts';
import { ADS_LIMITS } from './limits.ts';
import { type Listener, listen } from './listener.ts';
import { ListenError } from '../../base/listen-error.ts';
import type { DiscoveryService } from '../types.ts';
import type { Publication } from '../store/publication.ts';
import type { Call } from './frame-writer.ts';
import type { GivenType } from './given.ts';
import type { AdsCounts, AdsMeasure, StreamState } from './stats.ts';
import type { AdsServerOptions, ListenAddress, SecureOptions } from './server-options.ts';
import { SecureCalls } from './secure-calls.ts';
import { type PortCertificate, SecurePort } from './secure-port.ts';
import type { StreamKind } from './stream-kind.ts';

export interface AdsServer {
  /** Of the plaintext port, or undefined if there is none. */
  readonly port: number | undefined;
  /** Of the secure port, or undefined if there is none. */
  readonly securePort: number | undefined;
  /** What the secure port presents to connections from now on. Throws if its parts do not fit each other. */
  present(certificate: PortCertificate): void;
  /** `changedAt`: when the first of its changes came, on the clock of the options; absent: now. */
  apply(publication: Publication, changedAt?: number): void;
  counts(): AdsCounts;
  /** Once. */
  measure(measure: AdsMeasure): void;
  streams(): StreamState[];
  /** What a stream is subscribed to, as it is now in its world; empty if there is no such stream. */
  given(stream: string): readonly GivenType[];
  /**
   * Refuses new streams from now on, and ends the existing ones over this many milliseconds, with their connections.
   * Resolves when all are gone, a second after all were told to end, or when the server ends.
   */
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
}

const TICK_MS = 1_000;

const OPTIONS: ChannelOptions = {
  'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
  // Per connection. An Envoy has one or two ADS streams, a gRPC client one. One that uses the services of single types has
  // one for each of its static clusters and listeners; with more, it learns the limit from HTTP/2.
  'grpc.max_concurrent_streams': 100,
  // A connection without a stream.
  'grpc.max_connection_idle_ms': 300_000,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.enable_channelz': 0,
};

const AGGREGATED: DiscoveryService = {
  name: 'envoy.service.discovery.v3.AggregatedDiscoveryService',
  stream: 'StreamAggregatedResources',
  delta: 'DeltaAggregatedResources',
};

/** Starts listening; rejects if it cannot listen on the address. */
export async function startAdsServer(options: AdsServerOptions): Promise<AdsServer> {
  options.signal.throwIfAborted();
  // What grpc-js would print also arrives as an error. An explicit verbosity is respected.
  if (process.env['GRPC_VERBOSITY'] === undefined) setLogVerbosity(logVerbosity.NONE);
  const ads = new AdsStreams(options);
  const plaintext = options.plaintext && (await startPlaintext(ads, options, options.plaintext));
  const secure =
    options.secure &&
    (await startSecure(ads, options, options.secure).catch((error: unknown) => {
      plaintext?.listener.close();
      throw error;
    }));
  const ticking = setInterval(() => ads.tick(), options.tickMs ?? TICK_MS);
  let closed: Promise<void> | undefined;
  const onAbort = (): void => void close();
  const close = (): Promise<void> => {
    closed ??= new Promise((resolve) => {
      options.signal.removeEventListener('abort', onAbort);
      clearInterval(ticking);
      const ports = [plaintext, secure].filter((port) => port !== undefined);
      for (const { listener } of ports) listener.close();
      ads.close();
      for (const { server } of ports) server.forceShutdown();
      resolve(Promise.all(ports.map(({ server }) => shutDown(server))).then(() => undefined));
    });
    return closed;
  };
  options.signal.addEventListener('abort', onAbort);
  if (options.signal.aborted) onAbort();
  return {
    port: plaintext?.listener.port,
    securePort: secure?.listener.port,
    present: (certificate) => secure?.port.present(certificate),
    apply: (publication, changedAt) => ads.apply(publication, changedAt),
    counts: () => ads.counts(),
    measure: (measure) => ads.measure(measure),
    streams: () => ads.streams(),
    given: (stream) => ads.given(stream),
    drain: (ms) => drain(ads, ms, options),
    close,
  };
}

function shutDown(server: Server): Promise<void> {
  return new Promise((resolve) => server.tryShutdown(() => resolve()));
}

/** The port where clients are believed. */
async function startPlaintext(ads: AdsStreams, options: AdsServerOptions, address: ListenAddress) {
  const server = new Server(OPTIONS);
  serveDiscovery(server, options, (call, kind) => ads.accept(call, kind));
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = await listenAt(address, ads, options, (socket) => injector.injectConnection(socket));
  return { server, listener };
}

/** The port for clients that prove who they are. */
async function startSecure(ads: AdsStreams, options: AdsServerOptions, secure: SecureOptions) {
  const server = new Server(OPTIONS);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const port = new SecurePort({
    connected: (socket) => injector.injectConnection(socket),
    failed: (address) => secure.refused('handshake', address),
  });
  const calls = new SecureCalls(port, secure);
  serveDiscovery(server, options, (call, kind) =>
    calls.stream(
      call,
      (identity) => ads.accept(call, kind, identity),
      (code, message) => ads.refuse(call, code, message),
    ),
  );
  for (const service of secure.services) server.addService(...calls.unary(service));
  const listener = await listenAt(secure, ads, options, (socket) => port.accept(socket));
  return { server, port, listener };
}

/** ADS, and the types that have a service of their own. */
function serveDiscovery(
  server: Server,
  { types }: AdsServerOptions,
  accept: (call: Call, kind: StreamKind) => void,
): void {
  const add = ({ name, stream, delta }: DiscoveryService, only: Pick<StreamKind, 'only'>): void => {
    const kinds: readonly (readonly [string, StreamKind])[] = [
      [stream, { delta: false, ...only }],
      [delta, { delta: true, ...only }],
    ];
    server.addService(
      Object.fromEntries(kinds.map(([each]) => [each, method(`/${name}/${each}`)])),
      Object.fromEntries(kinds.map(([each, kind]) => [each, (call: Call) => accept(call, kind)])),
    );
  };
  add(AGGREGATED, {});
  for (const only of types) if (only.service !== undefined) add(only.service, { only });
}

function listenAt(
  { host, port }: ListenAddress,
  ads: AdsStreams,
  { limits }: AdsServerOptions,
  connected: (socket: Socket) => void,
): Promise<Listener> {
  return listen({
    host,
    port,
    // More connections than streams: a client with a connection can be told why it gets no stream.
    most: 2 * { ...ADS_LIMITS, ...limits }.maxStreams,
    connected,
    refused: () => ads.limited('connections'),
    failed: (error) => ads.acceptFailed(error),
  }).catch((cause: unknown) => {
    throw new ListenError('gRPC', { host, port }, cause);
  });
}

/** Checks ten times a second for streams to end. */
async function drain(ads: AdsStreams, ms: number, { now, signal }: AdsServerOptions): Promise<void> {
  const until = now() + ms + CLOSING_MS;
  ads.drain(ms);
  while (!signal.aborted && !ads.drained() && now() < until) await setTimeout(DRAIN_STEP_MS);
}

const DRAIN_STEP_MS = 100;
/** How long clients have to close streams that were ended. */
const CLOSING_MS = 1_000;

const identity = (bytes: Uint8Array): Buffer => bytes as Buffer;
const method = (path: string): ServiceDefinition[string] => ({
  path,
  requestStream: true,
  responseStream: true,
  requestSerialize: identity,
  requestDeserialize: identity,
  responseSerialize: identity,
  responseDeserialize: identity,
});
