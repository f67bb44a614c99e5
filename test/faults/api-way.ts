import { setTimeout as delay } from 'node:timers/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Agent, request as requestTls } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { RunningApiServer } from '../peers/api-server.ts';

/** What can go wrong between a replica and its API server. */
export const FAULTS = [
  /** Connections end in the middle of a line of a watch, or of another response. */
  'cut',
  /** Lists end in the middle of an object, in responses that look complete. */
  'broken lists',
  /** Lists lack objects. */
  'short lists',
  'slow',
  /** Watches are told that what they resume from is gone. */
  'gone',
  'throttled',
  'failing',
  'unauthorized',
  /** Connections are accepted, and nothing is ever said. */
  'silent',
  /** No connection is accepted, and all end. */
  'unreachable',
] as const;

export type FaultName = (typeof FAULTS)[number];

export interface Fault {
  readonly name: FaultName;
  /** Plurals of the resources that it hits; absent: every request. */
  readonly of?: ReadonlySet<string>;
}

/** Conditions that a replica wrote, in the words of the API server. */
export interface StatusWrite {
  readonly object: string;
  readonly resourceVersion: bigint;
}

interface Call {
  readonly resource: string;
  readonly isWatch: boolean;
  readonly isList: boolean;
  readonly isStatus: boolean;
  /** Ends both halves of a connection, whatever state it is in. */
  destroy(): void;
  /** Of a watch under way: ends it with this event. */
  expire(): void;
  /** Of a response under way: the end of its next piece is lost. */
  isCut: boolean;
}

/** A response under `slow` takes up to this long. Milliseconds. */
const SLOWEST = 700;
/** What one list under `short lists` lacks, at most. */
const MOST_LACKING = 0.9;
const RETRY_AFTER_S = 1;

/**
 * Stands between one replica and a real API server: plain HTTP towards the replica, TLS towards the server. Does harm as
 * told, at random.
 */
export class ApiWay {
  /** How often each fault has hit a request or response. */
  readonly hits = new Map<FaultName, number>();
  readonly statusWrites: StatusWrite[] = [];
  /** Connections of the replica at one time. */
  mostConnections = 0;
  #faults: readonly Fault[] = [];
  /** Resources whose last list lacked something, as far as is known here. */
  readonly #lacking = new Set<string>();
  #isMended = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #calls = new Set<Call>();
  readonly #upstream: { readonly url: URL; readonly agent: Agent };
  readonly #random: () => number;

  private constructor(api: Pick<RunningApiServer, 'url' | 'ca'>, random: () => number) {
    this.#upstream = { url: new URL(api.url), agent: new Agent({ ca: api.ca, keepAlive: true }) };
    this.#random = random;
    this.#server = createServer({ keepAliveTimeout: 0 }, (request, response) => void this.#serve(request, response));
    this.#server.on('connection', (socket: Socket) => {
      if (this.#hit('unreachable', '')) return void socket.destroy();
      this.#sockets.add(socket);
      this.mostConnections = Math.max(this.mostConnections, this.#sockets.size);
      socket.on('close', () => this.#sockets.delete(socket)).on('error', () => socket.destroy());
    });
  }

  static async start(api: Pick<RunningApiServer, 'url' | 'ca'>, random: () => number): Promise<ApiWay> {
    const way = new ApiWay(api, random);
    await new Promise<void>((resolve) => way.#server.listen(0, '127.0.0.1', resolve));
    return way;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Faults from now on, in place of the former ones. They also hit what is under way. */
  set(faults: readonly Fault[]): void {
    const before = this.#faults;
    this.#faults = faults;
    this.#isMended = false;
    for (const call of this.#calls) {
      // What was swallowed meanwhile is missing in the rest.
      if (isHit(before, 'silent', call.resource)) call.destroy();
      if (this.#hit('cut', call.resource)) call.isCut = true;
      if (call.isWatch && this.#hit('gone', call.resource)) call.expire();
    }
    if (this.#hit('unreachable', '')) for (const socket of this.#sockets) socket.destroy();
  }

  /**
   * No faults from now on, and none that last: nothing resumes from a list that lacked something. Such a list is the
   * truth for whoever has it, and is missed until there is another one; a watch that asks now, or only after a pause,
   * would not bring what the list lacked.
   */
  mend(): void {
    this.set([]);
    this.#isMended = true;
    for (const call of this.#calls) if (this.#resumesFromLess(call)) call.expire();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#upstream.agent.destroy();
  }

  #resumesFromLess({ isWatch, resource }: Call): boolean {
    return this.#isMended && isWatch && this.#lacking.has(resource);
  }

  #hit(name: FaultName, resource: string): boolean {
    const hit = isHit(this.#faults, name, resource);
    if (hit) this.hits.set(name, (this.hits.get(name) ?? 0) + 1);
    return hit;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request).catch(() => undefined);
    if (body === undefined) return void response.destroy();
    const call = this.#callOf(request, response);
    this.#calls.add(call);
    response.on('close', () => this.#calls.delete(call)).on('error', () => response.destroy());
    const { resource } = call;
    // It is never answered: `set` ends the connection.
    if (this.#hit('silent', resource)) return;
    if (this.#hit('throttled', resource)) return refuse(response, 429, { 'retry-after': `${RETRY_AFTER_S}` });
    if (this.#hit('failing', resource)) return refuse(response, 500);
    if (this.#hit('unauthorized', resource)) return refuse(response, 401);
    if (this.#resumesFromLess(call)) return refuse(response, 410);
    if (call.isWatch && this.#hit('gone', resource)) {
      if (this.#random() < 0.5) return refuse(response, 410);
      response.writeHead(200, { 'content-type': 'application/json' });
      return call.expire();
    }
    if (this.#hit('cut', resource)) call.isCut = true;
    this.#forward(request, body, response, call);
  }

  #callOf({ url = '', method }: IncomingMessage, response: ServerResponse): Call {
    const { pathname, searchParams } = new URL(url, 'http://any');
    const [, resource = '', name, sub] = RESOURCE.exec(pathname) ?? [];
    const isWatch = searchParams.has('watch');
    return {
      resource,
      isWatch,
      isList: method === 'GET' && name === undefined && !isWatch && resource !== '',
      isStatus: method === 'PATCH' && sub === 'status',
      isCut: false,
      destroy: () => void response.socket?.destroy(),
      expire() {
        if (response.headersSent) response.end(`${JSON.stringify({ type: 'ERROR', object: statusOf(410) })}\n`);
      },
    };
  }

  #forward(request: IncomingMessage, body: Buffer, response: ServerResponse, call: Call): void {
    const { url, agent } = this.#upstream;
    const { host: _, connection: __, ...headers } = request.headers;
    const sent = requestTls(
      { host: url.hostname, port: url.port, agent, path: request.url, method: request.method, headers },
      (answer) => void this.#answer(answer, response, call).catch(() => void response.destroy()),
    );
    sent.on('error', () => void response.destroy()).end(body);
    response.on('close', () => sent.destroy());
  }

  async #answer(answer: IncomingMessage, response: ServerResponse, call: Call): Promise<void> {
    const { resource, isWatch, isList, isStatus } = call;
    const { 'content-length': _, 'transfer-encoding': __, connection: ___, ...headers } = answer.headers;
    const status = answer.statusCode ?? 500;
    if (isWatch) {
      response.writeHead(status, headers);
      response.flushHeaders();
      if (this.#resumesFromLess(call)) return call.expire();
      for await (const chunk of answer as AsyncIterable<Buffer>) await this.#pass(chunk, response, call);
      return void response.end();
    }
    let body = await bodyOf(answer);
    if (isStatus && status < 300) this.#written(body);
    if (isList && status < 300) {
      const isShort = this.#hit('short lists', resource);
      if (isShort) body = this.#shortened(body);
      if (isShort) this.#lacking.add(resource);
      else this.#lacking.delete(resource);
    }
    if (isList && this.#hit('broken lists', resource)) body = body.subarray(0, this.#random() * body.length);
    response.writeHead(status, { ...headers, 'content-length': call.isCut ? body.length + 1 : body.length });
    await this.#pass(body, response, call);
    response.end();
  }

  async #pass(chunk: Buffer, response: ServerResponse, call: Call): Promise<void> {
    if (this.#hit('slow', call.resource)) await delay(SLOWEST * this.#random());
    // What is swallowed is made up for by the end of the connection.
    if (response.destroyed || this.#hit('silent', call.resource)) return;
    if (!call.isCut) return void response.write(chunk);
    response.write(chunk.subarray(0, this.#random() * chunk.length), () => void response.destroy());
  }

  #shortened(body: Buffer): Buffer {
    const list = JSON.parse(body.toString()) as { items?: unknown[] | null };
    const lacking = MOST_LACKING * this.#random();
    return Buffer.from(JSON.stringify({ ...list, items: list.items?.filter(() => this.#random() > lacking) ?? [] }));
  }

  #written(body: Buffer): void {
    const { kind, metadata } = JSON.parse(body.toString()) as {
      readonly kind: string;
      readonly metadata: { readonly name: string; readonly resourceVersion: string };
    };
    this.statusWrites.push({ object: `${kind} ${metadata.name}`, resourceVersion: BigInt(metadata.resourceVersion) });
  }
}

/** Resource, name and subresource in a path. */
const RESOURCE = /^\/(?:api|apis\/[^/]+)\/[^/]+\/(?:namespaces\/[^/]+\/(?=[^/]))?([^/]+)(?:\/([^/]+)(?:\/([^/]+))?)?$/;

function isHit(faults: readonly Fault[], name: FaultName, resource: string): boolean {
  return faults.some((fault) => fault.name === name && (fault.of === undefined || fault.of.has(resource)));
}

function refuse(response: ServerResponse, code: number, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(statusOf(code)));
}

const REASONS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
};

function statusOf(code: number): object {
  const reason = REASONS[code];
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'a fault', reason, code };
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
