import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { freePorts } from '../../testing/free-ports.ts';
import { FakeCluster, type Answer } from './fake-cluster.ts';

/** A {@link FakeCluster} behind HTTP or HTTPS on 127.0.0.1. */
export class FakeApiServer {
  readonly cluster: FakeCluster;
  /** Accepted tokens; undefined: any. */
  tokens: Set<string> | undefined;
  /** Handlers that answer the next requests instead of the cluster. */
  readonly intercept: ((request: IncomingMessage, response: ServerResponse) => void)[] = [];
  private server: Server | undefined;
  private readonly sockets = new Set<Socket>();
  private port = 0;
  private onIdle: () => void = () => undefined;

  private readonly keys: { readonly certificate: string; readonly key: string } | undefined;

  constructor(cluster = new FakeCluster(), keys?: { readonly certificate: string; readonly key: string }) {
    this.cluster = cluster;
    this.keys = keys;
  }

  get url(): string {
    return `${this.keys === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.sockets.size;
  }

  /** Listens, on the same port each time. */
  async start(): Promise<this> {
    const { keys } = this;
    const serve = (request: IncomingMessage, response: ServerResponse): void => void this.serve(request, response);
    const server =
      keys === undefined ? createServer(serve) : createTlsServer({ cert: keys.certificate, key: keys.key }, serve);
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => {
        this.sockets.delete(socket);
        if (this.sockets.size === 0) this.onIdle();
      });
    });
    if (this.port === 0) [this.port = 0] = await freePorts(1);
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(this.port, '127.0.0.1', resolve));
    this.server = server;
    return this;
  }

  /** As if the process were killed: connections are reset, and nothing listens. */
  async stop(): Promise<void> {
    for (const watch of this.cluster.watches()) watch.finish();
    this.reset();
    await new Promise<void>((resolve) => (this.server === undefined ? resolve() : this.server.close(() => resolve())));
    this.server = undefined;
  }

  /** Resolves once no connection is open. */
  async idle(): Promise<void> {
    if (this.sockets.size > 0) await new Promise<void>((resolve) => (this.onIdle = resolve));
  }

  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  /** A kubeconfig for this server, with the token if given. */
  kubeConfig(token?: string): KubeConfig {
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: 'fake', server: this.url, skipTLSVerify: true }],
      users: [{ name: 'fake', ...(token === undefined ? {} : { token }) }],
      contexts: [{ name: 'fake', cluster: 'fake', user: 'fake' }],
      currentContext: 'fake',
    });
    return config;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const intercept = this.intercept.shift();
    if (intercept !== undefined) return intercept(request, response);
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    if (this.tokens !== undefined && !this.tokens.has(token))
      return send(response, { status: 401, body: { kind: 'Status', code: 401, reason: 'Unauthorized' } });
    const url = new URL(request.url ?? '', this.url);
    const text = Buffer.concat(chunks).toString();
    const answer = this.cluster.answer(
      { method: request.method ?? '', path: url.pathname, query: Object.fromEntries(url.searchParams) },
      text === '' ? undefined : JSON.parse(text),
    );
    if (!('stream' in answer)) return send(response, answer);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    response.on('close', () => answer.stream.finish());
    try {
      for await (const chunk of answer.stream) response.write(chunk);
      response.end();
    } catch {
      response.destroy();
    }
  }
}

function send(response: ServerResponse, answer: Exclude<Answer, { stream: unknown }>): void {
  const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
}
