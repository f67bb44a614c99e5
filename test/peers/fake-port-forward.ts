import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { createAuthority } from './keys.ts';
import { SPDY, type SpdyStream, serveSpdy } from './spdy.ts';

const PROTOCOL = 'v4.channel.k8s.io';
const SPDY_PROTOCOL = 'portforward.k8s.io';
/** RFC 6455 */
const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const [BINARY, CLOSE] = [2, 8];

/**
 * The part of a kubelet that forwards ports, to this machine: over WebSocket, and over SPDY, to which the API server
 * translates what kubectl and istioctl ask for.
 * @param portOf the port here of a port of a Pod; undefined: nothing listens there.
 */
export async function startPortForwarding(
  portOf: (pod: string, port: number) => number | undefined,
): Promise<{ readonly port: number; stop(): void }> {
  const { certificate: cert, key } = await (await createAuthority()).server(['127.0.0.1']);
  const server = createServer({ cert, key });
  const open = new Set<Duplex>();
  server.on('upgrade', ({ url = '', headers }, socket) => {
    open.add(socket);
    socket.on('error', () => {});
    const { pathname, searchParams } = new URL(url, 'https://kubelet');
    const [, command, namespace, name] = pathname.split('/');
    if (command === 'portForward' && headers.upgrade === SPDY) {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${SPDY}\r\nConnection: Upgrade\r\n` +
          `X-Stream-Protocol-Version: ${SPDY_PROTOCOL}\r\n\r\n`,
      );
      return forwardStreams(socket, (port) => portOf(`${namespace}/${name}`, port));
    }
    const protocols = headers['sec-websocket-protocol']?.split(/, */) ?? [];
    if (command !== 'portForward' || !protocols.includes(PROTOCOL))
      return void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${MAGIC}`).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${PROTOCOL}\r\n\r\n`,
    );
    const port = Number(searchParams.get('port'));
    const number = Buffer.from([port & 255, port >> 8]);
    for (const channel of [0, 1]) socket.write(frame(BINARY, Buffer.from([channel, ...number])));
    const target = portOf(`${namespace}/${name}`, port);
    if (target === undefined) {
      socket.write(frame(BINARY, Buffer.from(`\u0001nothing listens on ${port}`)));
      return void socket.end(frame(CLOSE, Buffer.alloc(0)));
    }
    const inner = connect(target, '127.0.0.1');
    inner.on('data', (data) => socket.write(frame(BINARY, Buffer.concat([Buffer.from([0]), data]))));
    inner.on('end', () => socket.end(frame(CLOSE, Buffer.alloc(0))));
    inner.on('error', () => socket.destroy());
    socket.on('close', () => inner.destroy());
    let rest = Buffer.alloc(0);
    socket.on('data', (data: Buffer) => {
      rest = Buffer.concat([rest, data]);
      for (let next = parse(rest); next !== undefined; next = parse(rest)) {
        rest = rest.subarray(next.length);
        if (next.opcode === BINARY && next.payload[0] === 0) inner.write(next.payload.subarray(1));
        else if (next.opcode === CLOSE) socket.end();
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}

/** Each connection is two streams: one for errors, and one for data. */
function forwardStreams(socket: Duplex, portOf: (port: number) => number | undefined): void {
  const errors = new Map<string, SpdyStream>();
  serveSpdy(socket, (stream) => {
    const request = stream.headers.get('requestid') ?? '';
    if (stream.headers.get('streamtype') === 'error') return void errors.set(request, stream);
    const error = errors.get(request);
    errors.delete(request);
    const port = Number(stream.headers.get('port'));
    const target = portOf(port);
    if (target === undefined) {
      error?.end(`nothing listens on ${port}`);
      return void stream.end();
    }
    const inner = connect(target, '127.0.0.1');
    stream.pipe(inner).pipe(stream);
    inner.on('error', ({ message }) => error?.write(message));
    inner.on('close', () => {
      error?.end();
      stream.end();
    });
    stream.on('close', () => inner.destroy());
  });
}

function frame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  if (length < 126) return Buffer.concat([Buffer.from([0x80 | opcode, length]), payload]);
  const head = Buffer.alloc(10);
  head.writeUInt8(0x80 | opcode, 0);
  head.writeUInt8(127, 1);
  head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

/** The first frame of a client, which is masked and short; undefined: more bytes are to come. */
function parse(
  bytes: Buffer,
): { readonly opcode: number; readonly payload: Buffer; readonly length: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = bytes[1]! & 127;
  const start = short === 126 ? 4 : 2;
  if (short === 127) throw new Error('too long');
  if (bytes.length < start + 4) return undefined;
  const size = short === 126 ? bytes.readUInt16BE(2) : short;
  const length = start + 4 + size;
  if (bytes.length < length) return undefined;
  const mask = bytes.subarray(start, start + 4);
  const payload = Buffer.from(bytes.subarray(start + 4, length).map((byte, i) => byte ^ mask[i % 4]!));
  return { opcode: bytes[0]! & 15, payload, length };
}
