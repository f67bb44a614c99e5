import type { Buffer } from 'node:buffer';
import {
  type Metadata,
  type ServerReadableStream,
  type ServiceDefinition,
  status as Status,
  type UntypedServiceImplementation,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { addressOfPeer } from './address.ts';
import type { Unauthenticated } from './authentication.ts';
import type { Call } from './frame-writer.ts';
import type { SecurePort } from './secure-port.ts';
import type { SecureOptions, UnaryResult, UnaryService } from './server-options.ts';
import { FairSemaphore, Permit } from '../../base/fair-semaphore.ts';
import { grpcStatus } from '../../base/grpc-status.ts';
import { Headcount } from './headcount.ts';
import type { PeerIdentity } from '../types.ts';

/** Longer ones are not tokens of Kubernetes. */
const LONGEST_TOKEN = 16 * 1024;

/** A request must be complete this long after its turn has come. */
const REQUEST_MS = 2_000;
/** Each may hold a message of the maximum size; a tenant may have half of them. Others wait for their turn. */
const AT_ONCE = 16;
/** With those that wait; a tenant may have half of them. */
const MOST_UNARY = 4_096;

type UnaryCall = ServerReadableStream<Buffer, Uint8Array>;

/** Calls on the secure port: they begin when it is known who is calling. */
export class SecureCalls {
  readonly #port: SecurePort;
  readonly #options: SecureOptions;
  readonly #unary = new Headcount(MOST_UNARY);
  readonly #turns = new FairSemaphore(AT_ONCE);

  constructor(port: SecurePort, options: SecureOptions) {
    this.#port = port;
    this.#options = options;
  }

  stream(call: Call, begin: (identity: PeerIdentity) => void, refuse: (code: number, message: string) => void): void {
    let isOver = false;
    for (const end of ['cancelled', 'close', 'error']) call.once(end, () => (isOver = true));
    void this.#identify(call).then((found) => {
      if (isOver) return;
      if ('code' in found) refuse(Status[found.code], found.message);
      else begin(found);
    });
  }

  /**
   * One request, one response. Defined as a stream of requests, which is the same on the wire: then nothing is read
   * before it is known who is calling.
   */
  unary({ path, call: answer }: UnaryService): [ServiceDefinition, UntypedServiceImplementation] {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const definition: ServiceDefinition = {
      [name]: {
        path,
        requestStream: true,
        responseStream: false,
        requestSerialize: asBuffer,
        requestDeserialize: asBuffer,
        responseSerialize: asBuffer,
        responseDeserialize: asBuffer,
      },
    };
    const handle = (call: UnaryCall, done: sendUnaryData<Uint8Array>): void => {
      const end = new AbortController();
      for (const event of ['cancelled', 'close', 'error']) call.once(event, () => end.abort());
      void this.#answer(call, answer, end.signal).then((result) => {
        if (end.signal.aborted) return;
        if ('response' in result) done(null, result.response);
        else done(grpcStatus(Status[result.code], result.message));
      });
    };
    return [definition, { [name]: handle }];
  }

  async #answer(
    call: UnaryCall,
    answer: UnaryService['call'],
    signal: AbortSignal,
  ): Promise<UnaryResult | Unauthenticated> {
    const found = await this.#identify(call);
    if ('code' in found) return found;
    const { tenant } = found;
    if (this.#unary.enter(tenant) !== undefined) return { code: 'UNAVAILABLE', message: 'too many calls; try again' };
    const turn = new Permit(this.#turns, tenant);
    try {
      await taken(turn, signal);
      const request = await firstMessage(call, signal);
      if (request === undefined) return { code: 'INVALID_ARGUMENT', message: `no request within ${REQUEST_MS} ms` };
      const result = await answer(request, found, signal);
      if ('code' in result && (result.code === 'INVALID_ARGUMENT' || result.code === 'PERMISSION_DENIED'))
        this.#options.refused('request', addressOfPeer(call.getPeer()));
      return result;
    } finally {
      turn.leave();
      this.#unary.leave(tenant);
    }
  }

  async #identify(call: { readonly metadata: Metadata; getPeer(): string }): Promise<PeerIdentity | Unauthenticated> {
    const peer = call.getPeer();
    const address = addressOfPeer(peer);
    const found = await this.#options.authenticate({
      address,
      certificate: this.#port.clientOf(peer),
      token: bearerOf(call.metadata),
      cluster: textOf(call.metadata, 'clusterid'),
    });
    if ('code' in found) this.#options.refused(found.reason, address);
    return found;
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => bytes as Buffer;

function bearerOf(metadata: Metadata): string | undefined {
  const header = textOf(metadata, 'authorization');
  const token = /^bearer (\S+)$/i.exec(header.slice(0, LONGEST_TOKEN + 'bearer '.length))?.[1];
  return header.length > LONGEST_TOKEN ? undefined : token;
}

function textOf(metadata: Metadata, name: string): string {
  const [value = ''] = metadata.get(name);
  return String(value);
}

/** Resolves when the permit is held, or nobody needs it any more. */
function taken(permit: Permit, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    else permit.take(resolve);
  });
}

/** Undefined if it does not come in time. */
function firstMessage(call: UnaryCall, signal: AbortSignal): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const give = (message: Buffer | undefined): void => {
      clearTimeout(timer);
      resolve(message);
    };
    const timer = setTimeout(() => give(undefined), REQUEST_MS);
    if (signal.aborted) give(undefined);
    signal.addEventListener('abort', () => give(undefined), { once: true });
    call.once('data', give);
    call.once('end', () => give(undefined));
  });
}
