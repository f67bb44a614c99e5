// WebSockets (RFC 6455) on /echo: they send back what they receive, in frames of up to 65,535 bytes of text.
'use strict';
const { createHash } = require('node:crypto');

/** From section 1.3: the answer to a key that clients choose proves that it was read. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** Why a session ends, section 7.4.1. */
const GOING_AWAY = 1001;
const UNSUPPORTED = 1003;

/** @returns `close`, which tells the clients of all sessions that the server goes away. */
exports.echo = function echo(server) {
  const sessions = new Set();
  server.on('upgrade', (request, socket) => {
    const key = request.headers['sec-websocket-key'];
    if (request.url !== '/echo' || key === undefined) {
      socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      return;
    }
    const accept = createHash('sha1')
      .update(key + GUID)
      .digest('base64');
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    serve(socket);
    sessions.add(socket);
    socket.on('close', () => sessions.delete(socket)).on('error', () => socket.destroy());
  });
  return { close: () => sessions.forEach((socket) => socket.write(frame(CLOSE, code(GOING_AWAY)))) };
};

function serve(socket) {
  let unread = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    unread = Buffer.concat([unread, chunk]);
    for (let next = read(unread); next !== undefined; next = read(unread)) {
      unread = unread.subarray(next.length);
      if (next.opcode === TEXT) socket.write(frame(TEXT, next.payload));
      else if (next.opcode === PING) socket.write(frame(PONG, next.payload));
      else if (next.opcode === CLOSE) return void socket.end(frame(CLOSE, next.payload));
      else if (next.opcode !== PONG) return void socket.end(frame(CLOSE, code(UNSUPPORTED)));
    }
  });
}

/** The first frame, section 5.2; undefined if it is not complete yet. What is not supported has the opcode undefined. */
function read(bytes) {
  if (bytes.length < 2) return undefined;
  const [first, second] = bytes;
  const short = second & 0x7f;
  const start = short === 126 ? 4 : 2;
  // A last frame, masked, of a length in two bytes at most.
  if ((first & 0x80) === 0 || (second & 0x80) === 0 || short === 127) return { length: bytes.length };
  if (bytes.length < start) return undefined;
  const size = short === 126 ? bytes.readUInt16BE(2) : short;
  const length = start + 4 + size;
  if (bytes.length < length) return undefined;
  const mask = bytes.subarray(start, start + 4);
  const payload = bytes.subarray(start + 4, length).map((byte, index) => byte ^ mask[index & 3]);
  return { opcode: first & 0x0f, payload, length };
}

function frame(opcode, payload) {
  const head = payload.length < 126 ? [0x80 | opcode, payload.length] : [0x80 | opcode, 126, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from(head), payload]);
}

function code(number) {
  return Buffer.from([number >> 8, number & 0xff]);
}
