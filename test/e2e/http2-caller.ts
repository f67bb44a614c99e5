import {
  type ClientHttp2Session,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
  connect,
} from 'node:http2';
import type { OnEnd } from '../../src/testing/on-end.ts';

export interface Http2Answer {
  readonly status: number;
  readonly body: string;
}

/**
 * Asks by HTTP/2 with prior knowledge, on a connection that is replaced when it has ended; `closed` if there is no
 * answer. One request at a time: a bad one may end the connection, and others with it.
 */
export function http2Caller(port: number, onEnd: OnEnd, tls?: SecureClientSessionOptions) {
  const open = (): ClientHttp2Session => {
    const opened = connect(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`, tls).on('error', () => {});
    // Envoy waits a second before it closes a connection on which something was wrong.
    return opened.on('goaway', (code) => code !== 0 && opened.destroy());
  };
  let session: ClientHttp2Session | undefined;
  onEnd(() => session?.destroy());
  return (headers: OutgoingHttpHeaders): Promise<Http2Answer | 'closed'> => {
    if (session === undefined || session.closed || session.destroyed) session = open();
    const now = session;
    const stream = now.request(headers, { endStream: true });
    return new Promise((resolve) => {
      let status: number | undefined;
      let body = '';
      stream.on('response', (answer) => (status = answer[':status']));
      stream.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      stream.on('error', () => {});
      stream.on('close', () => {
        if (status !== undefined) return resolve({ status, body });
        // It may be about to end, too.
        now.destroy();
        resolve('closed');
      });
    });
  };
}
