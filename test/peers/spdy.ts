import { Duplex } from 'node:stream';
import { constants, inflateSync } from 'node:zlib';

/**
 * The part of SPDY/3.1 that Kubernetes forwards ports with: streams that the client opens, with headers, and their data. No
 * flow control, no priorities, and nothing that the server pushes.
 * The specification: https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/
 */
export const SPDY = 'SPDY/3.1';

const [SYN_STREAM, SYN_REPLY, RST_STREAM, PING] = [1, 2, 3, 6];
const CONTROL = 0x8003_0000;
const FIN = 1;
const CANCEL = 5;

/** A connection inside a connection. */
export interface SpdyStream extends Duplex {
  readonly headers: ReadonlyMap<string, string>;
}

/** Serves a connection that has just been upgraded to SPDY. */
export function serveSpdy(socket: Duplex, accept: (stream: SpdyStream) => void): void {
  const streams = new Map<number, Stream>();
  const headers = new HeaderBlocks();
  const open = (frame: Frame): void => {
    const id = frame.payload.readUInt32BE(0);
    const stream = new Stream(socket, id, headers.read(frame.payload.subarray(10)));
    streams.set(id, stream);
    stream.once('close', () => streams.delete(id));
    socket.write(control(SYN_REPLY, Buffer.concat([uint32(id), headers.none()])));
    if (frame.fin) stream.push(null);
    accept(stream);
  };
  const take = (frame: Frame): void => {
    if (frame.type === undefined) streams.get(frame.stream)?.receive(frame);
    else if (frame.type === SYN_STREAM) open(frame);
    else if (frame.type === RST_STREAM) streams.get(frame.payload.readUInt32BE(0))?.reset();
    else if (frame.type === PING) socket.write(control(PING, frame.payload));
  };
  let rest = Buffer.alloc(0);
  socket.on('data', (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    for (let next = parse(rest); next !== undefined; next = parse(rest)) {
      rest = rest.subarray(next.length);
      take(next);
    }
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    for (const stream of streams.values()) stream.reset();
  });
}

class Stream extends Duplex implements SpdyStream {
  readonly headers: ReadonlyMap<string, string>;
  readonly #socket: Duplex;
  readonly #id: number;
  #isReset = false;

  constructor(socket: Duplex, id: number, headers: ReadonlyMap<string, string>) {
    super();
    this.#socket = socket;
    this.#id = id;
    this.headers = headers;
    this.on('error', () => {});
  }

  receive({ payload, fin }: Frame): void {
    if (payload.length > 0) this.push(payload);
    if (fin) this.push(null);
  }

  reset(): void {
    this.#isReset = true;
    this.destroy();
  }

  override _read(): void {}

  override _write(data: Buffer, _encoding: string, done: () => void): void {
    this.#send(uint32(this.#id), 0, data);
    done();
  }

  override _final(done: () => void): void {
    this.#send(uint32(this.#id), FIN, Buffer.alloc(0));
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#isReset && !this.writableFinished && !this.#socket.destroyed)
      this.#socket.write(control(RST_STREAM, Buffer.concat([uint32(this.#id), uint32(CANCEL)])));
    done(error);
  }

  #send(head: Buffer, flags: number, data: Buffer): void {
    if (!this.#socket.destroyed) this.#socket.write(frameOf(head, flags, data));
  }
}

interface Frame {
  /** Undefined: data. */
  readonly type?: number;
  /** Of data. */
  readonly stream: number;
  readonly fin: boolean;
  readonly payload: Buffer;
  readonly length: number;
}

/** The first frame; undefined: more bytes are to come. */
function parse(bytes: Buffer): Frame | undefined {
  if (bytes.length < 8) return undefined;
  const [head, size] = [bytes.readUInt32BE(0), bytes.readUIntBE(5, 3)];
  const length = 8 + size;
  if (bytes.length < length) return undefined;
  const isControl = head >= CONTROL;
  return {
    ...(isControl && { type: head & 0xffff }),
    stream: head,
    fin: (bytes[4]! & FIN) !== 0,
    payload: bytes.subarray(8, length),
    length,
  };
}

function control(type: number, payload: Buffer): Buffer {
  return frameOf(uint32(CONTROL + type), 0, payload);
}

function frameOf(head: Buffer, flags: number, payload: Buffer): Buffer {
  const size = uint32(payload.length);
  size[0] = flags;
  return Buffer.concat([head, size, payload]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The header blocks of a direction of a connection are one zlib stream. */
class HeaderBlocks {
  #compressed = Buffer.alloc(0);
  #known = 0;
  #answered = false;

  read(block: Buffer): ReadonlyMap<string, string> {
    this.#compressed = Buffer.concat([this.#compressed, block]);
    const all = inflateSync(this.#compressed, { dictionary: DICTIONARY, finishFlush: constants.Z_SYNC_FLUSH });
    let at = this.#known;
    this.#known = all.length;
    const number = (): number => all.readUInt32BE((at += 4) - 4);
    const text = (): string => {
      const size = number();
      return all.toString('utf8', at, (at += size));
    };
    return new Map(Array.from({ length: number() }, () => [text(), text()] as const));
  }

  /** A block without headers, which is not compressed and so needs no dictionary; the empty one after it flushes it. */
  none(): Buffer {
    const start = this.#answered ? [] : [0x78, 0x01];
    this.#answered = true;
    return Buffer.from([...start, ...[0, 4, 0, 0xfb, 0xff], ...[0, 0, 0, 0], ...[0, 0, 0, 0xff, 0xff]]);
  }
}

const WORDS = [
  'options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,accept-ranges',
  'age,allow,authorization,cache-control,connection,content-base,content-encoding,content-language',
  'content-length,content-location,content-md5,content-range,content-type,date,etag,expect,expires,from',
  'host,if-match,if-modified-since,if-none-match,if-range,if-unmodified-since,last-modified,location',
  'max-forwards,pragma,proxy-authenticate,proxy-authorization,range,referer,retry-after,server,te,trailer',
  'transfer-encoding,upgrade,user-agent,vary,via,warning,www-authenticate,method,get,status,200 OK,version',
  'HTTP/1.1,url,public,set-cookie,keep-alive,origin',
].flatMap((words) => words.split(','));
const TEXT = [
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritat',
  'ive Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found5',
  '00 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct N',
  'ov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,applic',
  'ation/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf',
  '-8charset=iso-8859-1,utf-,*,enq=0.',
].join('');

/** Words with their lengths, and a text: section 2.6.10.1. */
const DICTIONARY = Buffer.concat([
  ...WORDS.map((word) => Buffer.concat([uint32(word.length), Buffer.from(word)])),
  Buffer.from(TEXT),
]);
