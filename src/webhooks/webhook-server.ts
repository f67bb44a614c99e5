import { constants } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { FairSemaphore, Permit } from '../base/fair-semaphore.ts';
import { ListenError } from '../base/listen-error.ts';
import { Connections } from '../ops/connections.ts';
import { type AdmissionRequest, type Verdict, readReview, writeReview } from './admission-review.ts';
import { Unanswerable, readBody } from './body.ts';

/**
 * Decides about one object; `path` is what follows the name of the webhook in the URL, `caller` an address. May throw: the
 * caller gets a 500.
 */
export type Webhook = (request: AdmissionRequest, path: string, caller: string) => Decision;

/**
 * A verdict, or how to find one once something has come that must be waited for. Others have their turn meanwhile, and
 * the request is read again afterwards: the promise must not keep it, nor what was parsed with it.
 */
export type Decision = Verdict | Promise<(request: AdmissionRequest) => Verdict>;

export interface WebhookServerOptions {
  readonly address: { readonly host: string; readonly port: number };
  /** By the first segment of the path. */
  readonly webhooks: ReadonlyMap<string, Webhook>;
  /** Callers are to open their next connection elsewhere. */
  readonly draining: () => boolean;
  readonly log: { error(message: string, fields: object): void };
  readonly signal: AbortSignal;
}

export interface WebhookServer {
  /** The actual port if port 0 was requested. */
  readonly port: number;
  /** For connections from now on; until then there are none. PEM. Throws if the parts do not fit each other. */
  present(certificate: { readonly certificate: string; readonly key: string }): void;
  /** Calls that got no verdict, by reason. */
  readonly unanswered: ReadonlyMap<string, number>;
  /** Resolves once the signal has fired and every connection is closed. */
  readonly closed: Promise<void>;
}

/** An object has at most 1.5 MiB in etcd, and an update brings two. Bytes. */
export const LARGEST_REVIEW = 3 * 1024 * 1024;
/** Of bodies at once, half of it for one caller at most. A parsed one takes many times as much, but only in its turn. */
const BODIES = 32 * 1024 * 1024;
/** What a call takes of that at least: one connection may carry many, whose bodies are nothing. Bytes. */
const LEAST = 16 * 1024;
/** Larger bodies take turns of their own. Few Pods have so much. Bytes. */
const LARGE = 32 * 1024;
/**
 * What holds the process longer is followed by a pause as long as that: proxies have the rest. To check the worst objects
 * takes some 3 ms per KiB. Milliseconds.
 */
const LONG_MS = 5;
/** Calls that wait for room, of all callers. One too many is refused: of the caller that has most, its newest. */
const MOST_WAITING = 400;
/** An API server sends a body at once. One that takes longer makes room, and its caller with it, if others want it. */
const BODY_MS = 2_000;
/** How long such a caller has its turn after all others. Milliseconds. */
const BEHIND_MS = 60_000;
/** One API server has as many connections as it has calls under way. */
const MOST_CONNECTIONS = 512;
/** An API server gives up after the timeout of its configuration, 30 seconds at most; ours says 10. Milliseconds. */
const CALL_MS = 10_000;
/** How often the server looks for calls that are over it. */
const LOOK_MS = 2_000;
/** The API server closes idle connections after 90 s. If this side were first, a call might meet a closing connection. */
const KEPT_IDLE_MS = 120_000;
/** Of a response that nobody reads. */
const STUCK_MS = 30_000;

/** HTTPS for API servers. Rejects with a {@link ListenError} if it cannot listen on the address. */
export async function serveWebhooks(options: WebhookServerOptions): Promise<WebhookServer> {
  const { address, signal } = options;
  signal.throwIfAborted();
  const calls = new Calls(options);
  const server = createServer(
    {
      minVersion: 'TLSv1.2',
      handshakeTimeout: CALL_MS,
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      headersTimeout: CALL_MS / 2,
      requestTimeout: CALL_MS,
      connectionsCheckingInterval: LOOK_MS,
      keepAliveTimeout: KEPT_IDLE_MS,
    },
    (request, response) => void calls.answer(request, response),
  );
  server.setTimeout(STUCK_MS);
  const open = new Connections(MOST_CONNECTIONS);
  // Before TLS, every connection is one of TCP.
  server.on('connection', (socket: Socket) => open.add(socket, socket.remoteAddress));
  server.on('tlsClientError', (_, socket) => {
    calls.count('handshake');
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  }).catch((cause: unknown) => {
    throw new ListenError('webhooks', address, cause);
  });
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();
  return {
    port: (server.address() as AddressInfo).port,
    present({ certificate, key }) {
      server.setSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' });
    },
    unanswered: calls.unanswered,
    closed,
  };
}

/** What is under way. */
class Calls {
  readonly unanswered = new Map<string, number>();
  readonly #options: WebhookServerOptions;
  readonly #room = new FairSemaphore(BODIES, MOST_WAITING);
  /**
   * For calls with small bodies. Callers take turns, because anybody can claim to ask for many
   * namespaces; and so do the namespaces of one caller, so that no tenant keeps others out.
   */
  readonly #small = new FairSemaphore(1);
  readonly #namespaces = new Map<string, FairSemaphore>();
  readonly #large = new FairSemaphore(1);

  constructor(options: WebhookServerOptions) {
    this.#options = options;
    const timer = setInterval(() => this.#room.forgive(), BEHIND_MS).unref();
    options.signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }

  count(reason: string): void {
    this.unanswered.set(reason, (this.unanswered.get(reason) ?? 0) + 1);
  }

  /** Never rejects: what a caller does ends its own call only. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#options.draining()) response.shouldKeepAlive = false;
    const client = request.socket.remoteAddress ?? '';
    const permit = new Permit(this.#room, client);
    response.once('close', () => permit.leave());
    const gone = whenGone(response);
    try {
      const { webhook, path, length } = this.#check(request);
      await held(permit, length, gone);
      const body = await readSoon(request, permit);
      const { uid, said } = await this.#decide(body, { webhook, path, client, gone });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(writeReview(uid, said));
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  /** Whatever it waits for, nothing is kept meanwhile but the body, which is counted. */
  async #decide(body: string, { webhook, path, client, gone }: Call): Promise<Answer<Verdict>> {
    const namespace = body.length > LARGE ? undefined : namespaceIn(body);
    const inTurn = <T>(decide: (request: AdmissionRequest) => T): Promise<Answer<T | Verdict>> =>
      whenHeld(this.#turnsOf(client, namespace), gone, () => decideBy(decide, body));
    const { uid, said } = await inTurn((request) => webhook(request, path, client));
    if (!(said instanceof Promise)) return { uid, said };
    const decide = await Promise.race([gone, said]);
    return inTurn(decide);
  }

  /** @param namespace undefined: the body is large. */
  #turnsOf(client: string, namespace: string | undefined): readonly Permit[] {
    if (namespace === undefined) return [new Permit(this.#large, client)];
    return [new Permit(this.#namespacesOf(client), namespace), new Permit(this.#small, client)];
  }

  #namespacesOf(client: string): FairSemaphore {
    for (const [other, { taken, waiting }] of this.#namespaces)
      if (taken === 0 && waiting === 0) this.#namespaces.delete(other);
    const found = this.#namespaces.get(client) ?? new FairSemaphore(1);
    this.#namespaces.set(client, found);
    return found;
  }

  #check({ method, url = '', headers }: IncomingMessage): { webhook: Webhook; path: string; length: number } {
    const [, name = '', path = ''] = /^\/([^/?]*)([^?]*)/.exec(url) ?? [];
    const webhook = this.#options.webhooks.get(name);
    if (webhook === undefined) throw new Unanswerable('malformed', 404, 'not found');
    if (method !== 'POST') throw new Unanswerable('malformed', 405, 'only POST is allowed');
    if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? ''))
      throw new Unanswerable('malformed', 415, 'the content type must be application/json');
    const { 'content-length': declared } = headers;
    const length = declared === undefined ? LARGEST_REVIEW : Number(declared);
    if (length > LARGEST_REVIEW) throw new Unanswerable('too large', 413, `the body is over ${LARGEST_REVIEW} bytes`);
    return { webhook, path, length: Math.max(LEAST, length) };
  }

  #refuse(response: ServerResponse, error: unknown): void {
    const known = error instanceof Unanswerable ? error : undefined;
    this.count(known?.reason ?? 'error');
    if (known === undefined) this.#options.log.error('A webhook failed', { err: error });
    if (response.destroyed || response.headersSent) return void response.destroy();
    // What is left of the body is not read.
    response.shouldKeepAlive = false;
    const { status, message } = known ?? { status: 500, message: 'internal error' };
    response.writeHead(status, { 'content-type': 'text/plain', ...(status === 503 && { 'retry-after': '1' }) });
    response.end(`${message}\n`);
  }
}

interface Call {
  readonly webhook: Webhook;
  /** Of its URL, after the name of the webhook. */
  readonly path: string;
  readonly client: string;
  /** Rejects with an {@link Unanswerable} when nobody waits for the answer any more. */
  readonly gone: Promise<never>;
}

interface Answer<T> {
  readonly uid: string;
  readonly said: T;
}

function whenGone(response: ServerResponse): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  response.once('close', () => reject(new Unanswerable('ended', 499, 'the caller is gone')));
  promise.catch(() => undefined);
  return promise;
}

/** Empty also if there is none. */
function namespaceIn(body: string): string {
  const review = readReview(body);
  return 'request' in review ? review.request.namespace : '';
}

function decideBy<T>(decide: (request: AdmissionRequest) => T, body: string): Answer<T | Verdict> {
  const review = readReview(body);
  if ('problem' in review) throw new Unanswerable('malformed', 400, review.problem);
  if ('refused' in review) return { uid: review.uid, said: { allowed: false, message: review.refused } };
  return { uid: review.request.uid, said: decide(review.request) };
}

/** Works once it has these turns, one after the other. If that takes long, the next turns begin after a pause. */
async function whenHeld<T>(turns: readonly Permit[], gone: Promise<never>, work: () => T): Promise<T> {
  let busy = 0;
  try {
    for (const turn of turns) await held(turn, 1, gone);
    const began = performance.now();
    try {
      return work();
    } finally {
      busy = performance.now() - began;
    }
  } finally {
    const leave = (): void => turns.forEach((turn) => turn.leave());
    if (busy < LONG_MS) leave();
    else setTimeout(leave, busy).unref();
  }
}

/** Settles when there is room. Throws an {@link Unanswerable} if there is none for so many, or the caller goes first. */
async function held(permit: Permit, size: number, gone: Promise<never>): Promise<void> {
  const { promise: entered, resolve, reject } = Promise.withResolvers<void>();
  permit.take(resolve, size, () => reject(new Unanswerable('busy', 503, 'too many calls at once; try again')));
  try {
    await Promise.race([gone, entered]);
  } catch (error) {
    permit.leave();
    throw error;
  }
}

/** A body that holds room which others wait for has little time. Throws an {@link Unanswerable}. */
async function readSoon(request: IncomingMessage, room: Permit): Promise<string> {
  const timer = setInterval(() => {
    if (!room.wanted) return;
    room.putBehind();
    request.destroy();
  }, BODY_MS);
  try {
    return await readBody(request, LARGEST_REVIEW);
  } finally {
    clearInterval(timer);
  }
}
