import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { ListenError } from '../base/listen-error.ts';
import { Connections } from './connections.ts';

export interface Answer {
  readonly status?: number;
  /** Content type. */
  readonly type: string;
  /** Pieces are generated while sending, so that a large response does not block the event loop. */
  readonly body: string | Iterable<string> | AsyncIterable<string>;
}

export interface Request {
  readonly query: URLSearchParams;
  /** From the socket. */
  readonly remoteAddress: string;
  /** The Host header; empty if absent. */
  readonly host: string;
  /** The Origin header: the request comes from a page in a browser. */
  readonly origin?: string | undefined;
}

/** Answers a GET, or a POST. May throw: the client gets a 500, and the error is logged. */
export type Route = (request: Request) => Answer | Promise<Answer>;

export interface HttpServerOptions {
  readonly address: { readonly host: string; readonly port: number };
  /** For messages: what this server is for. */
  readonly name: string;
  /** By path. */
  readonly routes: ReadonlyMap<string, Route>;
  /** By path: what a POST does. It has no body. */
  readonly actions?: ReadonlyMap<string, Route>;
  readonly log: { error(message: string, fields: object): void };
  /** Milliseconds without traffic after which a connection is closed. */
  readonly idle?: number;
  /** Maximum number of open connections. */
  readonly connections?: number;
  readonly signal: AbortSignal;
}

export interface HttpServer {
  /** The actual port if port 0 was requested. */
  readonly port: number;
  /** Resolves once the signal has fired and every connection is closed. */
  readonly closed: Promise<void>;
}

/** Scrapers time out after ten seconds. Milliseconds. */
const IDLE = 30_000;
/** Many times more than probes, scrapers and people need. */
const CONNECTIONS = 256;

/** Rejects with a {@link ListenError} if it cannot listen on the address. */
export async function serveHttp(options: HttpServerOptions): Promise<HttpServer> {
  const { address, name, routes, actions = new Map(), log, idle = IDLE, connections = CONNECTIONS, signal } = options;
  signal.throwIfAborted();
  const slices = new Slices();
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 10_000 }, (request, response) => {
    // A client's mistake ends only its own connection.
    answer(request, response, { routes, actions }, slices).catch((err: unknown) => {
      if (response.destroyed) return;
      log.error('An HTTP request failed', { server: name, path: request.url, err });
      if (response.headersSent) response.destroy();
      else
        send(response, { status: 500, type: 'text/plain', body: 'internal error\n' }, slices).catch(() =>
          response.destroy(),
        );
    });
  });
  // This also closes connections whose clients do not read the response.
  server.setTimeout(idle);
  const open = new Connections(connections);
  server.on('connection', (socket) => open.add(socket, socket.remoteAddress));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  }).catch((cause: unknown) => {
    throw new ListenError(name, address, cause);
  });
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();
  return { port: (server.address() as AddressInfo).port, closed };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { routes, actions }: Required<Pick<HttpServerOptions, 'routes' | 'actions'>>,
  slices: Slices,
): Promise<void> {
  // Bodies are ignored; without this, a client that sends one would hang.
  request.resume();
  // Not parsed as a URL: a path may be anything, and the parser would take `//x` for an absolute URL.
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  // istioctl asks for `//version`, which Go's servers take for `/version`.
  const name = path.replace(/^\/+/, '/').replace(/(.)\/$/, '$1');
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (!isRead && !(request.method === 'POST' && actions.has(name)))
    return send(response, { status: 405, type: 'text/plain', body: 'only GET and HEAD are allowed\n' }, slices);
  const route = (isRead ? routes : actions).get(name);
  if (route === undefined) return send(response, { status: 404, type: 'text/plain', body: 'not found\n' }, slices);
  const found = await route({
    query: new URLSearchParams(query),
    remoteAddress: request.socket.remoteAddress ?? '',
    host: request.headers.host ?? '',
    origin: request.headers.origin,
  });
  return send(response, request.method === 'HEAD' ? { ...found, body: '' } : found, slices);
}

async function send(response: ServerResponse, { status = 200, type, body }: Answer, slices: Slices): Promise<void> {
  response.statusCode = status;
  response.setHeader('content-type', type);
  response.setHeader('x-content-type-options', 'nosniff');
  if (typeof body === 'string') response.end(body);
  else await pipeline(Readable.from(Symbol.asyncIterator in body ? body : slices.of(body)), response);
}

/** How long pieces are generated before other work has its turn. Milliseconds. */
const SLICE_MS = 5;

/** At most one response generates pieces in a round of the event loop, if they take long. */
class Slices {
  #last: Promise<unknown> = Promise.resolve();

  /** A client that reads fast must not keep this thread busy until all is generated. */
  async *of(pieces: Iterable<string>): AsyncGenerator<string> {
    let ends = performance.now() + SLICE_MS;
    for (const piece of pieces) {
      yield piece;
      if (performance.now() < ends) continue;
      await (this.#last = this.#last.then(() => setImmediate()));
      ends = performance.now() + SLICE_MS;
    }
  }
}
