import { Agent, createServer, type IncomingHttpHeaders, type RequestListener, request } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Ask {
  readonly headers?: Readonly<Record<string, string>>;
  /** Port of an HTTP proxy on 127.0.0.1 to send the request through. */
  readonly proxy?: number;
}

/** Makes requests over keep-alive connections. */
export class HttpClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });

  /** Rejects if there is no response. */
  get(url: string, { headers = {}, proxy }: Ask = {}): Promise<Answer> {
    const { host, hostname, port, pathname, search } = new URL(url);
    const target =
      proxy === undefined
        ? { host: hostname, port: port || 80, path: pathname + search }
        : { host: '127.0.0.1', port: proxy, path: url };
    return new Promise((resolve, reject) => {
      const asked = request({ ...target, agent: this.#agent, headers: { host, ...headers }, timeout: 10_000 });
      asked.on('response', (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (text: string) => (body += text));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
        response.on('error', reject);
      });
      asked.on('timeout', () => asked.destroy(new Error(`${url}: no answer within 10 s`)));
      asked.on('error', reject);
      asked.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Listens on 127.0.0.1; returns a function to close it. */
export async function serve(port: number, listener: RequestListener): Promise<() => void> {
  const server = createServer(listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
