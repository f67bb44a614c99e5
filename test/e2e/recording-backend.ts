import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OnEnd } from '../../src/testing/on-end.ts';

/** A request, as a backend received it. */
export interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Which connection of this backend it came on, counted from 1. */
  readonly connection: number;
}

/** How a backend answers its `count`th request since it was last reset, counted from 1. */
export type Answer = (response: ServerResponse, request: IncomingMessage, count: number) => void;

/** An HTTP service that remembers what it received. Unless it is told otherwise, it answers with its name. */
export class RecordingBackend {
  readonly name: string;
  readonly port: number;
  readonly received: RecordedRequest[] = [];
  #answer: Answer;

  private constructor(name: string, port: number) {
    this.name = name;
    this.port = port;
    this.#answer = (response) => response.end(name);
  }

  /** @param wanted port; absent: a free one. */
  static async start(name: string, onEnd: OnEnd, wanted = 0): Promise<RecordingBackend> {
    // Connections stay: one that closes while it is idle may meet a request.
    const server = createServer({ keepAliveTimeout: 0 });
    server.listen(wanted, '127.0.0.1');
    await once(server, 'listening');
    onEnd(() => {
      server.close();
      server.closeAllConnections();
    });
    const backend = new RecordingBackend(name, (server.address() as AddressInfo).port);
    let connections = 0;
    const numbers = new WeakMap<object, number>();
    server.on('connection', (socket) => numbers.set(socket, ++connections));
    server.on('request', (request, response) => {
      const { method = '', url = '', headers, socket } = request;
      backend.received.push({ method, url, headers, connection: numbers.get(socket) ?? 0 });
      backend.#answer(response, request, backend.received.length);
    });
    return backend;
  }

  /** Answers like this from now on. */
  answer(answer: Answer): void {
    this.#answer = answer;
  }

  /** Forgets what it received, and answers with its name again. */
  reset(): void {
    this.received.length = 0;
    this.#answer = (response) => response.end(this.name);
  }
}
