import { type ClientHttp2Session, connect } from 'node:http2';
import { Pool } from 'undici';
import type { Client } from './load.ts';

/** Beyond what anything takes here, Envoy's own patience included. */
const LONGEST_MS = 20_000;

/** Throws unless it is a whole answer. */
export type Check = (status: number, text: string) => void;

/** HTTP/1.1: a connection for each path, which is kept. */
export function http1(origin: string, paths: readonly string[], check: Check): Client {
  const pools = paths.map(
    () => new Pool(origin, { connections: 1, headersTimeout: LONGEST_MS, bodyTimeout: LONGEST_MS }),
  );
  return {
    name: 'HTTP/1.1',
    askers: paths.length,
    async ask(asker) {
      const { statusCode, body } = await pools[asker]!.request({ method: 'GET', path: paths[asker]! });
      check(statusCode, await body.text());
    },
    close: async () => void (await Promise.all(pools.map((pool) => pool.destroy()))),
  };
}

/** HTTP/2 without TLS, which the client knows the server to speak: one connection for all paths. */
export function http2(origin: string, paths: readonly string[], check: Check): Client {
  let session: ClientHttp2Session | undefined;
  const current = (): ClientHttp2Session => {
    // The server's GOAWAY closes it for new requests.
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(origin);
      // Each of its requests fails on its own.
      session.on('error', () => {});
    }
    return session;
  };
  const answerOf = async (path: string): Promise<{ readonly status: number; readonly text: string }> => {
    const stream = current().request({ ':path': path });
    stream.setTimeout(LONGEST_MS, () => stream.destroy(new Error('no answer')));
    let status = 0;
    stream.on('response', (headers) => (status = headers[':status'] ?? 0));
    let text = '';
    for await (const chunk of stream.setEncoding('utf8')) text += chunk as string;
    return { status, text };
  };
  return {
    name: 'HTTP/2',
    askers: paths.length,
    async ask(asker) {
      const { status, text } = await answerOf(paths[asker]!).catch((error: unknown) => {
        if (!isUnsent(error)) throw error;
        return answerOf(paths[asker]!);
      });
      check(status, text);
    },
    close() {
      session?.destroy();
      return Promise.resolve();
    },
  };
}

/**
 * The GOAWAY arrived after the request was made and before it was written: Node refuses it by itself. Any client sends
 * it again on a new connection (RFC 9113, 8.7).
 */
function isUnsent(error: unknown): boolean {
  return error instanceof Error && error.message.includes('NGHTTP2_REFUSED_STREAM');
}
