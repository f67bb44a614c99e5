import { connect, type ClientHttp2Session, type ClientHttp2Stream, type SecureClientSessionOptions } from 'node:http2';
import { framed, openAdsStream } from '../test/harness/raw-ads.ts';

/**
 * Many cheap xDS clients in a separate process, so that the server's CPU can be measured on its own: raw HTTP/2, one
 * connection each, requests that were encoded once. They acknowledge every response, of which they read only type and
 * nonce. The parent sends commands, and is notified once all clients have received what it expects.
 */
interface Connect {
  readonly do: 'connect';
  readonly port: number;
  /** State of the world, not delta. */
  readonly sotw?: boolean;
  /** Absent: plaintext. */
  readonly secure?: Secure;
  readonly clients: number;
  /** Each client's requests, in base64: sent in this order, each after the response to the previous, or all at once. */
  readonly requests: readonly string[];
  readonly atOnce: boolean;
  /** Replaces the first request, in turn: clients that differ in their nodes. */
  readonly first?: readonly string[];
  /** Number of responses after which a client is done. */
  readonly responses: number;
}

type Command =
  | Connect
  | { readonly do: 'expect'; readonly responses: number }
  /** Whether responses are acknowledged from now on. */
  | { readonly do: 'mute'; readonly muted: boolean }
  | { readonly do: 'disconnect' };

/** How clients know the server, and prove who they are. PEM. */
export interface Secure {
  readonly ca: string;
  readonly servername: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

interface Client {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  received: number;
  bytes: number;
}

let clients: Client[] = [];
let expected = 0;
let done = 0;
let startedAt = 0;
let muted = false;

function send(message: object): void {
  process.send?.(message);
}

function open(command: Connect, requests: readonly Buffer[], index: number): Client {
  const { token, ...tls } = command.secure ?? {};
  const session = connect(`${command.secure === undefined ? 'http' : 'https'}://127.0.0.1:${command.port}`, {
    settings: { initialWindowSize: 1 << 20 },
    // Like Pods, which have addresses of their own.
    localAddress: `127.0.${1 + Math.floor(index / 200)}.${1 + (index % 200)}`,
    ...tls,
  } as SecureClientSessionOptions);
  session.on('error', () => {});
  session.on('connect', () => session.setLocalWindowSize(1 << 20));
  const stream = openAdsStream(
    session,
    command.sotw !== true,
    token === undefined ? {} : { authorization: `Bearer ${token}` },
  );
  const client: Client = { session, stream, received: 0, bytes: 0 };
  let next = 0;
  if (command.atOnce) while (next < requests.length) stream.write(requests[next++]!);
  else stream.write(requests[next++]!);
  let head = Buffer.alloc(0);
  let left = 0;
  stream.on('data', (data: Buffer) => {
    for (let chunk = data; chunk.length > 0;) {
      if (left > 0) {
        const taken = Math.min(left, chunk.length);
        left -= taken;
        client.bytes += taken;
        chunk = chunk.subarray(taken);
        continue;
      }
      // The type and the nonce are at the start of a response.
      const want = head.length < 5 ? 5 : Math.min(HEAD, head.readUInt32BE(1) + 5);
      const taken = Math.min(want - head.length, chunk.length);
      head = Buffer.concat([head, chunk.subarray(0, taken)]);
      chunk = chunk.subarray(taken);
      client.bytes += taken;
      if (head.length < want || want === 5) continue;
      left = head.readUInt32BE(1) + 5 - want;
      const ack = command.sotw === true ? sotwAckOf(head.subarray(5), requests) : ackOf(head.subarray(5));
      head = Buffer.alloc(0);
      if (!muted) stream.write(ack);
      client.received++;
      if (client.received === expected && ++done === clients.length) report();
      if (!command.atOnce && next < requests.length) stream.write(requests[next++]!);
    }
  });
  return client;
}

const HEAD = 120;

/** Field 4 (type URL), then field 5 (nonce). */
function ackOf(head: Buffer): Buffer {
  if (head[0] !== 0x22) throw new Error('a response does not start with its type');
  const typeEnd = 2 + head[1]!;
  if (head[typeEnd] !== 0x2a) throw new Error('a response does not go on with its nonce');
  const nonce = head.subarray(typeEnd + 2, typeEnd + 2 + head[typeEnd + 1]!);
  const typeUrl = head.subarray(2, typeEnd);
  return framed(
    Buffer.concat([Buffer.from([0x12, typeUrl.length]), typeUrl, Buffer.from([0x32, nonce.length]), nonce]),
  );
}

/**
 * Field 1 (version), then fields 4 and 5. An acknowledgement repeats what is asked for: it is the request of the type,
 * with the version and the nonce behind it.
 */
function sotwAckOf(head: Buffer, requests: readonly Buffer[]): Buffer {
  if (head[0] !== 0x0a) throw new Error('a response does not start with its version');
  const version = head.subarray(0, 2 + head[1]!);
  const rest = head.subarray(version.length);
  const typeEnd = 2 + rest[1]!;
  const nonce = rest.subarray(typeEnd, typeEnd + 2 + rest[typeEnd + 1]!);
  const asked = requests.find((request) => request.includes(rest.subarray(2, typeEnd)));
  if (asked === undefined) throw new Error('a response is of a type that was not asked for');
  return framed(Buffer.concat([asked.subarray(5), version, nonce]));
}

function report(): void {
  const bytes = clients.reduce((sum, client) => sum + client.bytes, 0);
  send({ done: true, ms: performance.now() - startedAt, bytes });
}

process.on('message', (command: Command) => {
  startedAt = performance.now();
  done = 0;
  if (command.do === 'connect') {
    expected = command.responses;
    const read = (request: string): Buffer => framed(Buffer.from(request, 'base64'));
    const requests = command.requests.map(read);
    const first = command.first?.map(read) ?? [requests[0]!];
    clients = Array.from({ length: command.clients }, (_, index) =>
      open(command, [first[index % first.length]!, ...requests.slice(1)], index),
    );
    return;
  }
  if (command.do === 'expect') {
    expected = command.responses;
    for (const client of clients) client.received = client.bytes = 0;
    send({ ready: true });
    return;
  }
  if (command.do === 'mute') {
    ({ muted } = command);
    send({ ready: true });
    return;
  }
  for (const client of clients) client.session.destroy();
  clients = [];
  send({ ready: true });
});
