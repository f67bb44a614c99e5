import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, type RequestOptions, createServer, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { type AddressInfo, type Socket, connect, createServer as createTcpServer } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import type { OnEnd } from '../../src/testing/on-end.ts';
import type { WorkloadSecrets } from './agent.ts';

/** What a backend was sent. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** An HTTP service that answers with what it received. */
export async function startMirror(onEnd: OnEnd): Promise<number> {
  // Connections stay: one that closes while it is idle may meet a request.
  const server = createServer({ keepAliveTimeout: 0 }, ({ method, url, headers }, response) =>
    response.end(JSON.stringify({ method, url, headers })),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** A TCP service that sends back what it gets; with TLS of its own if it has secrets. */
export async function startEcho(onEnd: OnEnd, secrets?: WorkloadSecrets): Promise<number> {
  const sockets = new Set<Socket>();
  const serve = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    socket.pipe(socket);
  };
  const server =
    secrets === undefined
      ? createTcpServer(serve)
      : createTlsServer({ cert: secrets.certificate, key: secrets.key }, serve).on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onEnd(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

export interface Connection {
  /** Where it leads, if not to 127.0.0.1. */
  readonly address?: string | undefined;
  /** Without: in plaintext. */
  readonly secrets?: Pick<WorkloadSecrets, 'certificate' | 'key'> | 'none' | undefined;
  readonly servername?: string | undefined;
  /** Without: as proxies of the mesh do. */
  readonly alpn?: readonly string[] | undefined;
  readonly maxVersion?: 'TLSv1.2' | undefined;
  /** Sent before everything else, in plaintext on a TCP port. */
  readonly preface?: string | undefined;
}

export interface Request extends Connection {
  readonly host: string;
  readonly path?: string | undefined;
  readonly method?: string | undefined;
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A listener that waits for more than it gets keeps silent for ever. */
const PATIENCE = 10_000;

/** Longer than what tells TLS from plaintext. */
const WORDS = 'is anybody there';

/** One request on a connection of its own; `closed` if there is no answer. */
export function send(port: number, request: Request): Promise<Reply | 'closed'> {
  const { host, address = '127.0.0.1', path = '/', method = 'GET', headers = {} } = request;
  const options = { host: address, port, path, method, headers: { host, ...headers }, agent: false };
  return new Promise((resolve) => {
    const call =
      request.secrets === undefined
        ? requestHttp(options as RequestOptions)
        : requestHttps({ ...options, ...tlsOptions(request, ['istio-http/1.1', 'http/1.1']) } as RequestOptions);
    call.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('error', () => resolve('closed'));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    call.on('error', () => resolve('closed'));
    call.setTimeout(PATIENCE, () => call.destroy(new Error('silent')));
    call.end();
  });
}

/** The first line of the answer to these bytes, or `closed`. */
export function sendBytes(port: number, bytes: string, connection: Connection = {}): Promise<string> {
  const { address: host = '127.0.0.1' } = connection;
  const isPlain = connection.secrets === undefined;
  const socket = isPlain ? connect({ host, port }) : connectTls({ host, port, ...tlsOptions(connection, ['istio']) });
  return new Promise((resolve) => {
    let text = '';
    socket.setTimeout(PATIENCE, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    socket.on('error', () => socket.destroy()).on('close', () => resolve(text.split('\r\n')[0] || 'closed'));
    socket.once(isPlain ? 'connect' : 'secureConnect', () => socket.write(bytes));
  });
}

/** Whether what is sent comes back: `echoed`, or `closed`. */
export function converse(port: number, connection: Connection): Promise<string> {
  const { address: host = '127.0.0.1' } = connection;
  const isPlain = connection.secrets === undefined;
  const socket = isPlain ? connect({ host, port }) : connectTls({ host, port, ...tlsOptions(connection, ['istio']) });
  return new Promise((resolve) => {
    const end = (answer: string): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(PATIENCE, () => end('silent'));
    // Anything else is an alert of TLS.
    socket.on('data', (bytes: Buffer) => bytes.toString() === WORDS && end('echoed'));
    socket.on('error', () => end('closed')).on('close', () => end('closed'));
    socket.once(isPlain ? 'connect' : 'secureConnect', () => socket.write((connection.preface ?? '') + WORDS));
  });
}

function tlsOptions({ secrets, servername = '', alpn, maxVersion }: Connection, meshAlpn: readonly string[]) {
  return {
    ...(secrets === undefined || secrets === 'none' ? {} : { cert: secrets.certificate, key: secrets.key }),
    ...(maxVersion && { maxVersion }),
    servername,
    ALPNProtocols: [...(alpn ?? meshAlpn)],
    // What these tests are about is whom the server lets in.
    rejectUnauthorized: false,
  };
}

const SECRET = 'secret of the issuer';

/** As JSON, the keys by which tokens are verified. */
export const jwks = JSON.stringify({ keys: [{ kty: 'oct', kid: 'a', k: Buffer.from(SECRET).toString('base64url') }] });

/** A token with these claims. */
export function tokenOf(claims: object, secret = SECRET): string {
  const part = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url');
  const signed = `${part({ alg: 'HS256', kid: 'a' })}.${part({ exp: 4_000_000_000, ...claims })}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}
