import { type OutgoingHttpHeaders, type SecureClientSessionOptions, connect } from 'node:http2';

export interface Http2Answer {
  readonly status: number;
  readonly body: string;
}

/**
 * One request by HTTP/2 with prior knowledge, on a connection of its own: Envoy ends that of a bad one. `closed` if there
 * is no answer. Fails if the answer is cut.
 */
export async function askByHttp2(
  port: number,
  headers: OutgoingHttpHeaders,
  tls?: SecureClientSessionOptions,
): Promise<Http2Answer | 'closed'> {
  const session = connect(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`, tls).on('error', () => {});
  try {
    return await new Promise((resolve, reject) => {
      const stream = session.request(headers, { endStream: true });
      let status: number | undefined;
      let body = '';
      let isWhole = false;
      stream.on('response', (answer) => (status = answer[':status']));
      stream.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      stream.on('end', () => (isWhole = true));
      stream.on('error', () => {});
      stream.on('close', () => {
        if (status === undefined) resolve('closed');
        else if (isWhole && stream.rstCode === 0) resolve({ status, body });
        else reject(new Error(`the answer to ${JSON.stringify(headers)} was cut: code ${stream.rstCode}`));
      });
    });
  } finally {
    session.destroy();
  }
}
