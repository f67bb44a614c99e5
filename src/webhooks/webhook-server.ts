import { constants } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { FairSemaphore, Permit } from '../fair-semaphore.ts';
import { ListenError } from '../listen-error.ts';
import { Connections } from '../ops/connections.ts';
import { type AdmissionRequest, type ReadReview, type Verdict, readReview, writeReview } from './admission-review.ts';
import { Unanswerable, readBody } from './body.ts';

/**
 * Decides about one object; `path` is what follows the name of the webhook in the URL, `caller` an address. May throw: the
 * caller gets a 500.
 */
export type Webhook = (request: AdmissionRequest, path: string, caller: string) => Verdict | Promise<Verdict>;

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
/** Of bodies at once; a parsed one takes several times as much. Half of it is for one caller at most. */
const BODIES = 32 * 1024 * 1024;
/** What a call takes of that at least: one connection may carry many, whose bodies are nothing. Bytes. */
const LEAST = 16 * 1024;
/** Of larger bodies, one is parsed, and its call answered, at a time. Few Pods have so much. Bytes. */
const LARGE = 32 * 1024;
/**
 * What holds the process longer is followed by a pause as long as that: proxies have the rest. To check the worst objects
 * takes some 3 ms per KiB. Milliseconds.
 */
const LONG_MS = 5;
/** Calls that wait for room; of one caller, its share of them. */
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
  readonly #room = new FairSemaphore(BODIES);
  /**
   * Of calls with small bodies, one is decided at a time. Callers take turns, because anybody can claim to ask for many
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
    try {
      const { webhook, path, length } = this.#check(request);
      if (this.#room.isCrowded(client, MOST_WAITING))
        throw new Unanswerable('busy', 503, 'too many calls at once; try again');
      await held(permit, length, response);
      const body = await readSoon(request, permit);
      const { uid, verdict } = await this.#decide(body, { webhook, path, client, response });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(writeReview(uid, verdict));
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  async #decide(body: string, call: Call): Promise<Answer> {
    if (body.length > LARGE) {
      const turn = new Permit(this.#large, call.client);
      return inTurn([turn], call.response, () => decide(readReview(body), call), { untilDone: true });
    }
    const review = readReview(body);
    const namespace = 'request' in review ? review.request.namespace : '';
    const turns = [new Permit(this.#namespacesOf(call.client), namespace), new Permit(this.#small, call.client)];
    return inTurn(turns, call.response, () => decide(review, call), { untilDone: false });
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
  readonly response: ServerResponse;
}

interface Answer {
  readonly uid: string;
  readonly verdict: Verdict;
}

async function decide(review: ReadReview, { webhook, path, client }: Call): Promise<Answer> {
  if ('problem' in review) throw new Unanswerable('malformed', 400, review.problem);
  if ('refused' in review) return { uid: review.uid, verdict: { allowed: false, message: review.refused } };
  return { uid: review.request.uid, verdict: await webhook(review.request, path, client) };
}

/** Works once it has these turns, one after the other, and keeps them until it waits for others, or until it is done. */
async function inTurn<T>(
  turns: readonly Permit[],
  response: ServerResponse,
  work: () => Promise<T>,
  { untilDone }: { readonly untilDone: boolean },
): Promise<T> {
  const leaveAll = (): void => turns.forEach((turn) => turn.leave());
  try {
    for (const turn of turns) await held(turn, 1, response);
  } catch (error) {
    leaveAll();
    throw error;
  }
  const began = performance.now();
  const working = work();
  const busy = performance.now() - began;
  const leave = (): void => (busy < LONG_MS ? leaveAll() : void setTimeout(leaveAll, busy).unref());
  if (untilDone) void working.then(leave, leave);
  else leave();
  return working;
}

/** Settles when there is room. Throws an {@link Unanswerable} if the caller does not wait so long. */
async function held(permit: Permit, size: number, response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once('close', resolve);
    permit.take(resolve, size);
  });
  if (permit.held && !response.destroyed) return;
  permit.leave();
  throw new Unanswerable('ended', 499, 'the caller is gone');
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
