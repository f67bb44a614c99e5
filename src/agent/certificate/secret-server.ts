import type { ServerDuplexStream } from '@grpc/grpc-js';
import { grpcStatus } from '../../base/grpc-status.ts';
import type { AgentLog } from '../log.ts';
import { readDeltaRequest, readRequest, writeDeltaResponse, writeResponse } from '../xds/messages.ts';
import { streamOfBytes } from '../xds/socket.ts';
import { SECRET } from './secrets.ts';

/** Where secrets come from. */
export interface Secrets {
  /** Says when the secret may have changed, until it is closed. Throws for a name that means nothing here. */
  watch(name: string, onChange: () => void): WatchedSecret;
}

/** The workload's own: no limit concerns these, so that the names of other secrets cannot take their place. */
export const isOwnSecret = (name: string): boolean => name === 'default' || name === 'ROOTCA';

export interface WatchedSecret {
  /** Undefined: not there yet. Throws if there cannot be one. */
  readonly current: SecretContent | undefined;
  close(): void;
}

export interface SecretContent {
  /** If they are the same, the secret is. */
  readonly parts: readonly string[];
  encode(): Uint8Array;
}

/** Names in all streams together, and in each. Envoy has one stream for each name. */
const LIMITS = { names: 1_000, namesInStream: 100 };
/** Of why a client rejects a secret, or cannot have one. */
const LONGEST_REASON = 500;
/** Reasons that are remembered, to log each once. */
const REASONS = 100;

const SERVICE = '/envoy.service.secret.v3.SecretDiscoveryService/';

type Call = ServerDuplexStream<Buffer, Buffer>;
type ByMethod<T> = Readonly<Record<'StreamSecrets' | 'DeltaSecrets', T>>;

/** For `addService`. */
export type SecretService = readonly [
  methods: ByMethod<ReturnType<typeof method>>,
  own: ByMethod<(call: Call) => void>,
];

/** Serves secrets to the Envoy beside this process, in state of the world and in differences. */
export function secretService(secrets: Secrets, log: AgentLog): SecretService {
  let watched = 0;
  const rejected = new Warnings('Envoy rejects its certificate', log);
  const missing = new Warnings('Envoy cannot have a secret', log);
  const serve = (call: Call, read: typeof readRequest, write: typeof writeResponse): void => {
    const names = new Map<string, { readonly secret: WatchedSecret; sent: readonly string[] | undefined }>();
    let named = 0;
    let version = 0;
    const answer = (): void => {
      const found = [...names].flatMap(([name, one]) => {
        const content = one.secret.current;
        // An empty answer would be taken for one: Envoy waits until there is something to say.
        return content === undefined ? [] : [{ name, one, content, isNew: !sameParts(one.sent, content.parts) }];
      });
      if (!found.some(({ isNew }) => isNew)) return;
      for (const { one, content } of found) one.sent = content.parts;
      const resources = found.map(({ name, content }) => [name, content.encode()] as const);
      call.write(write({ typeUrl: SECRET, version: `${++version}`, resources }));
    };
    const change = (): void => {
      rejected.forget();
      guarded(call, missing, answer);
    };
    const add = (name: string): void => {
      if (names.has(name)) return;
      const isOwn = isOwnSecret(name);
      if (!isOwn && named >= LIMITS.namesInStream)
        throw new Error(`more than ${LIMITS.namesInStream} names in one stream`);
      if (!isOwn && watched >= LIMITS.names) throw new Error(`more than ${LIMITS.names} names of files`);
      names.set(name, { secret: secrets.watch(name, change), sent: undefined });
      if (isOwn) return;
      named++;
      watched++;
    };
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      watched -= named;
      for (const { secret } of names.values()) secret.close();
      call.end();
    };
    call.on('data', (message: Buffer) =>
      guarded(call, missing, () => {
        if (ended) return;
        const request = read(message);
        if (request.error !== undefined) rejected.say(request.error);
        request.names.forEach(add);
        answer();
      }),
    );
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

function sameParts(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.length === b.length && a.every((part, i) => part === b[i]);
}

/** What goes wrong ends this stream, and says so to the client, which will try again. */
function guarded(call: Call, warnings: Warnings, fn: () => void): void {
  try {
    fn();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    warnings.say(reason);
    call.emit('error', grpcStatus(3, reason));
  }
}

/** Logs each reason once. */
class Warnings {
  readonly #said = new Set<string>();
  readonly #message: string;
  readonly #log: AgentLog;

  constructor(message: string, log: AgentLog) {
    this.#message = message;
    this.#log = log;
  }

  say(text: string): void {
    const reason = text.slice(0, LONGEST_REASON).toWellFormed();
    if (this.#said.has(reason)) return;
    if (this.#said.size >= REASONS) this.forget();
    this.#said.add(reason);
    this.#log.warn(this.#message, { reason });
  }

  /** Says all of them again. */
  forget(): void {
    this.#said.clear();
  }
}
