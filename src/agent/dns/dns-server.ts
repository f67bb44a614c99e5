import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, isIPv6, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import type { Responder } from './responder.ts';
import { readFrames } from './tcp-frames.ts';

/** Connections at one time; more are closed at once. */
const MOST_CONNECTIONS = 256;
/** A query over TCP: no sane one is longer. Bytes. */
const MOST_QUERY_BYTES = 4_096;
/** A client that does not read its answers. Bytes. */
const MOST_UNREAD_BYTES = 1024 * 1024;
/** A connection without queries. Milliseconds. */
const IDLE_MS = 10_000;

export interface DnsServerOptions {
  /** IP addresses. One that this machine does not have is left out, unless none is left. */
  readonly addresses: readonly string[];
  /** 0: any, the same for all. */
  readonly port: number;
  readonly responder: Pick<Responder, 'respond'>;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Answers on UDP and TCP. Resolves with the port. Rejects with the system's error if it cannot listen. */
export async function startDnsServer({ addresses, port, responder, signal }: DnsServerOptions): Promise<number> {
  const closing: (() => void)[] = [];
  let bound = port;
  let absent: unknown;
  try {
    for (const address of addresses) {
      try {
        const tcp = await listenTcp(address, bound, responder, signal);
        closing.push(() => tcp.close());
        const { port: own } = tcp.address() as { readonly port: number };
        const udp = await listenUdp(address, own, responder, signal);
        closing.push(() => udp.close());
        bound = own;
      } catch (error) {
        if (!isAbsent(error)) throw error;
        absent = error;
      }
    }
    if (closing.length === 0) throw absent ?? new Error('no address to listen on');
  } catch (error) {
    for (const close of closing) close();
    throw error;
  }
  const end = (): void => {
    for (const close of closing) close();
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  return bound;
}

/** The machine has no such address, or not the family: `::1` where IPv6 is off. */
function isAbsent(error: unknown): boolean {
  return ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

type Responding = Pick<Responder, 'respond'>;

async function listenUdp(
  address: string,
  port: number,
  responder: Responding,
  signal: AbortSignal,
): Promise<UdpSocket> {
  const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', ipv6Only: isIPv6(address) });
  socket.on('message', (message, from) => {
    const send = (response: Uint8Array): void => {
      // The client may be gone: nobody needs to know.
      if (!signal.aborted) socket.send(response, from.port, from.address, () => {});
    };
    const response = responder.respond(message, 'udp', signal);
    if (response instanceof Promise) void response.then(send);
    else if (response !== undefined) send(response);
  });
  socket.bind({ address, port, exclusive: true });
  try {
    await once(socket, 'listening');
  } catch (error) {
    socket.close();
    throw error;
  }
  // Such as an ICMP message about a client that is gone.
  socket.on('error', () => {});
  return socket;
}

async function listenTcp(address: string, port: number, responder: Responding, signal: AbortSignal): Promise<Server> {
  const server = createServer({ noDelay: true }, (socket) => serveConnection(socket, responder, signal));
  server.maxConnections = MOST_CONNECTIONS;
  server.listen({ host: address, port, ipv6Only: true });
  await once(server, 'listening');
  server.on('error', () => {});
  return server;
}

function serveConnection(socket: Socket, responder: Responding, signal: AbortSignal): void {
  const read = readFrames(MOST_QUERY_BYTES);
  const ended = new AbortController();
  const end = (): void => void socket.destroy();
  let waiting = 0;
  const send = (response: Uint8Array): void => {
    if (socket.destroyed) return;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(response.length);
    socket.write(Buffer.concat([length, response]));
    if (socket.writableLength > MOST_UNREAD_BYTES) socket.destroy();
  };
  const respond = (message: Buffer): void => {
    const response = responder.respond(message, 'tcp', ended.signal);
    if (response instanceof Promise) {
      waiting++;
      void response.then((found) => {
        waiting--;
        send(found);
      });
    } else if (response !== undefined) send(response);
  };
  socket.setTimeout(IDLE_MS, () => {
    if (waiting === 0) socket.destroy();
  });
  socket.on('error', end);
  socket.on('close', () => {
    signal.removeEventListener('abort', end);
    ended.abort();
  });
  signal.addEventListener('abort', end);
  socket.on('data', (chunk) => {
    const messages = read(chunk);
    if (messages === 'too long') socket.destroy();
    // Thousands of queries may have come at once: each is answered only if what went before has not ended this.
    else for (const message of messages) if (!socket.destroyed) respond(message);
  });
}
