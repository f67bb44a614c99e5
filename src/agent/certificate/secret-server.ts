import type { Server, ServerDuplexStream } from '@grpc/grpc-js';
import { grpcStatus } from '../../grpc-status.ts';
import type { AgentLog } from '../log.ts';
import { readDeltaRequest, readRequest, writeDeltaResponse, writeResponse } from '../xds/messages.ts';
import { streamOfBytes } from '../xds/socket.ts';
import { SECRET } from './secrets.ts';

/** Where secrets come from. */
export interface Secrets {
  /** Encoded; undefined: not there yet. Throws for a name that means nothing here. */
  get(name: string): Uint8Array | undefined;
  /** Calls it whenever one may have changed. */
  onChange(listener: () => void): () => void;
}

/** Streams, and names in each. Envoy has one stream for each name. */
const LIMITS = { streams: 1_000, names: 100 };
/** Of why a client rejects a secret. It is logged once, until it is another one or secrets have changed. */
const LONGEST_REASON = 500;

const SERVICE = '/envoy.service.secret.v3.SecretDiscoveryService/';

type Call = ServerDuplexStream<Buffer, Buffer>;

/** Serves secrets to the Envoy beside this process, in state of the world and in differences. */
export function secretService(secrets: Secrets, log: AgentLog): Parameters<Server['addService']> {
  let streams = 0;
  let said = '';
  secrets.onChange(() => (said = ''));
  const reject = (error: string): void => {
    const reason = error.slice(0, LONGEST_REASON).toWellFormed();
    if (reason !== said) log.warn('Envoy rejects its certificate', { reason });
    said = reason;
  };
  const serve = (call: Call, read: typeof readRequest, write: typeof writeResponse): void => {
    if (streams >= LIMITS.streams) return void call.emit('error', grpcStatus(8, 'too many streams'));
    streams++;
    const names = new Set<string>();
    const sent = new Map<string, Uint8Array>();
    let version = 0;
    const answer = (): void => {
      const resources: (readonly [string, Uint8Array])[] = [];
      for (const name of names) {
        const value = secrets.get(name);
        // An empty answer would be taken for one: Envoy waits until there is something to say.
        if (value !== undefined) resources.push([name, value]);
      }
      if (resources.every(([name, value]) => equal(sent.get(name), value))) return;
      for (const [name, value] of resources) sent.set(name, value);
      call.write(write({ typeUrl: SECRET, version: `${++version}`, resources }));
    };
    const change = (): void => guarded(call, answer);
    const stop = secrets.onChange(change);
    call.on('data', (message: Buffer) =>
      guarded(call, () => {
        const request = read(message);
        if (request.error !== undefined) reject(request.error);
        for (const name of request.names) names.add(name);
        if (names.size > LIMITS.names) throw new Error(`more than ${LIMITS.names} names in one stream`);
        answer();
      }),
    );
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      streams--;
      stop();
      call.end();
    };
    call.on('end', end).on('cancelled', end).on('error', end);
  };
  return [
    { StreamSecrets: method('StreamSecrets'), DeltaSecrets: method('DeltaSecrets') },
    {
      StreamSecrets: (call: Call) => serve(call, readRequest, writeResponse),
      DeltaSecrets: (call: Call) => serve(call, readDeltaRequest, writeDeltaResponse),
    },
  ];
}

const method = (name: string) => ({ ...streamOfBytes, path: `${SERVICE}${name}` });

const equal = (a: Uint8Array | undefined, b: Uint8Array): boolean => a !== undefined && Buffer.compare(a, b) === 0;

/** What goes wrong ends this stream, and says so to the client. */
function guarded(call: Call, fn: () => void): void {
  try {
    fn();
  } catch (error) {
    call.emit('error', grpcStatus(3, error instanceof Error ? error.message : String(error)));
  }
}
