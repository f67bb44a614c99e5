import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { readFrames } from './tcp-frames.ts';

export type Protocol = 'udp' | 'tcp';

export interface UpstreamOptions {
  /** IP addresses of the name servers that are asked, in random order. */
  readonly servers: readonly string[];
  /** Absent: 53. */
  readonly port?: number;
  /** Milliseconds that each of them has to answer; absent: 5,000. */
  readonly timeoutMs?: number;
  /** In [0, 1). */
  readonly random: () => number;
}

/** Asks other name servers, one after the other, with the protocol that the query came with. */
export class Upstream {
  readonly #options: UpstreamOptions;

  constructor(options: UpstreamOptions) {
    this.#options = options;
  }

  /** The first answer, as it came; undefined: no server has answered. */
  async ask(query: Uint8Array, protocol: Protocol, signal: AbortSignal): Promise<Uint8Array | undefined> {
    const { servers, port = 53, timeoutMs = 5_000, random } = this.#options;
    const ask = protocol === 'udp' ? askByUdp : askByTcp;
    const order = servers.map((server) => ({ server, place: random() })).sort((a, b) => a.place - b.place);
    for (const { server } of order) {
      if (signal.aborted) return undefined;
      const found = await within(timeoutMs, signal, (limit) => ask(query, { server, port }, limit));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/**
 * Runs it with a signal that fires with the other one, or when its time is over. Nothing of it outlives its end: a busy
 * application has thousands of queries in a second.
 */
async function within<T>(ms: number, signal: AbortSignal, run: (limit: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController();
  const onEnd = (): void => end.abort();
  const timer = setTimeout(onEnd, ms);
  signal.addEventListener('abort', onEnd);
  try {
    return await run(end.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onEnd);
  }
}

interface Server {
  readonly server: string;
  readonly port: number;
}

/** Datagrams that are not the answer, of one server to one query: each may be a guess of somebody else. */
const MOST_WRONG = 10;

/** Each query has a socket of its own, so a port of its own: that and the id are what a forged answer has to guess. */
function askByUdp(query: Uint8Array, { server, port }: Server, signal: AbortSignal): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4');
    let wrong = 0;
    const end = (found?: Uint8Array): void => {
      signal.removeEventListener('abort', onAbort);
      socket.removeAllListeners().on('error', () => {});
      socket.close();
      resolve(found);
    };
    const onAbort = (): void => end();
    socket.on('error', onAbort);
    socket.on('message', (message) => {
      if (isAnswerTo(query, message)) end(message);
      else if (++wrong >= MOST_WRONG) end();
    });
    // Connected, it takes only what this server sends, and is told at once if nobody listens there. As an event: a
    // callback would also be called without a route to the server, and there is nothing to send on then.
    socket.on('connect', () => socket.send(query));
    socket.connect(port, server);
    if (signal.aborted) end();
    else signal.addEventListener('abort', onAbort);
  });
}

function askByTcp(query: Uint8Array, { server, port }: Server, signal: AbortSignal): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: server, port });
    const end = (found?: Uint8Array): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(found);
    };
    const onAbort = (): void => end();
    socket.on('error', onAbort).on('close', onAbort);
    const read = readFrames(65_535);
    socket.on('data', (chunk) => {
      const messages = read(chunk);
      // One query, so one answer: a server that begins with anything else is not asked further.
      const [first] = messages === 'too long' ? [] : messages;
      if (messages === 'too long') end();
      else if (first !== undefined) end(isAnswerTo(query, first) ? first : undefined);
    });
    const length = Buffer.alloc(2);
    length.writeUInt16BE(query.length);
    socket.write(Buffer.concat([length, query]));
    if (signal.aborted) end();
    else signal.addEventListener('abort', onAbort);
  });
}

function isAnswerTo(query: Uint8Array, message: Uint8Array): boolean {
  return message.length >= 12 && message[0] === query[0] && message[1] === query[1] && (message[2]! & 0x80) !== 0;
}
