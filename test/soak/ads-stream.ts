import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import protobuf from 'protobufjs';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { typeUrl } from '../../src/envoy/encode/proto.ts';
import { framed, openAdsStream } from '../harness/raw-ads.ts';

export const CDS = typeUrl(types.cluster);
export const EDS = typeUrl(types.endpoint);
export const LDS = typeUrl(types.listener);
export const RDS = typeUrl(types.route);

/** A request on either kind of stream. */
export interface Request {
  readonly typeUrl: string;
  /** A `node` message; only in the first request. */
  readonly node?: Uint8Array;
  /** Requested names: all of them in state of the world, only the added ones over delta. */
  readonly names?: readonly string[];
  readonly nonce?: string;
  /** State of the world: the version of the last accepted response. */
  readonly version?: string;
  /** Delta, in the first request of a type: what the client already has. */
  readonly initial?: ReadonlyMap<string, string>;
  readonly error?: string;
}

/** The code of the `google.rpc.Status` in Envoy's rejections. */
const INTERNAL = 13;
/** The wire type of strings, bytes and messages. */
const LENGTH_DELIMITED = 2;

export function encode(
  { typeUrl, node, names = [], nonce, version, initial = new Map<string, string>(), error }: Request,
  delta = true,
): Uint8Array {
  const [nodeNumber, typeNumber, nonceNumber, errorNumber] = delta ? ([1, 2, 6, 7] as const) : ([2, 4, 5, 6] as const);
  const writer = protobuf.Writer.create();
  const tag = (number: number): protobuf.Writer => writer.uint32((number << 3) | LENGTH_DELIMITED);
  if (version !== undefined) tag(1).string(version);
  if (node !== undefined) tag(nodeNumber).bytes(node);
  tag(typeNumber).string(typeUrl);
  for (const [name, held] of initial) {
    tag(5).fork();
    tag(1).string(name);
    tag(2).string(held).ldelim();
  }
  if (nonce !== undefined) tag(nonceNumber).string(nonce);
  if (error !== undefined) {
    tag(errorNumber).fork();
    writer.uint32(8).uint32(INTERNAL);
    tag(2).string(error).ldelim();
  }
  const encoded = writer.finish();
  return names.length > 0 ? Buffer.concat([encoded, encodedNames(names)]) : encoded;
}

/** The order of fields does not matter. Many clients ask for the same names. */
function encodedNames(names: readonly string[]): Uint8Array {
  let encoded = namesEncoded.get(names);
  if (encoded === undefined) {
    const writer = protobuf.Writer.create();
    for (const name of names) writer.uint32((3 << 3) | LENGTH_DELIMITED).string(name);
    namesEncoded.set(names, (encoded = writer.finish()));
  }
  return encoded;
}

const namesEncoded = new WeakMap<readonly string[], Uint8Array>();

/** A response, as far as it matters here. */
export interface Response {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly version: string;
  /** Name -> version; versions are empty in state of the world. */
  readonly resources: ReadonlyMap<string, string>;
  readonly removed: readonly string[];
  readonly message: Buffer;
}

/** Endpoints of a stream. */
export interface Peer {
  readonly port: number;
  /** Loopback address that it comes from. */
  readonly from: string;
  readonly delta?: boolean;
}

/** Length of the prefix that gRPC puts before a message. */
const PREFIX_BYTES = 5;

/** A raw stream on its own connection, from a given loopback address. */
export class AdsStream {
  readonly delta: boolean;
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  #pieces: Buffer[] = [];
  #length = 0;
  /** Number of bytes needed for the next step: the prefix, or the prefix and its message. */
  #wanted = PREFIX_BYTES;
  ended = false;

  /** @param onResponse If absent, responses are dropped. */
  constructor({ port, from, delta = true }: Peer, onResponse?: (response: Response) => void, onEnd = (): void => {}) {
    this.delta = delta;
    this.session = connect(`http://127.0.0.1:${port}`, {
      settings: { initialWindowSize: 1 << 20 },
      createConnection: () => connectTcp({ host: '127.0.0.1', port, localAddress: from }),
    });
    const end = (): void => {
      if (this.ended) return;
      this.ended = true;
      onEnd();
    };
    this.session.on('error', end);
    this.session.on('connect', () => {
      // It may be closed as soon as it is established.
      if (!this.session.destroyed) this.session.setLocalWindowSize(1 << 20);
    });
    this.stream = openAdsStream(this.session, delta);
    this.stream.on('error', end);
    this.stream.on('close', end);
    // The server has ended its side: gRPC clients close then.
    this.stream.on('end', () => {
      this.session.destroy();
      end();
    });
    if (onResponse === undefined) {
      this.stream.resume();
      return;
    }
    this.stream.on('data', (chunk: Buffer) => {
      this.#pieces.push(chunk);
      this.#length += chunk.length;
      this.#take(onResponse);
    });
  }

  send(request: Request): void {
    this.sendBytes(encode(request, this.delta));
  }

  sendBytes(message: Uint8Array): void {
    if (!this.ended) this.stream.write(framed(message));
  }

  close(): void {
    this.ended = true;
    this.session.destroy();
  }

  #take(onResponse: (response: Response) => void): void {
    while (this.#length >= this.#wanted) {
      const all = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      this.#pieces = [all];
      const length = PREFIX_BYTES + all.readUInt32BE(1);
      this.#wanted = length;
      if (all.length < length) return;
      this.#pieces = [all.subarray(length)];
      this.#length -= length;
      this.#wanted = PREFIX_BYTES;
      onResponse(read(all.subarray(PREFIX_BYTES, length), this.delta));
    }
  }
}

/**
 * Reads only what matters here. Many clients share one thread with the clock that measures them, and a message may have
 * a thousand resources: it is read in one pass, and only names are copied.
 */
function read(message: Buffer, delta: boolean): Response {
  let [typeUrl, nonce, version] = ['', '', ''];
  const removed: string[] = [];
  let resources = new Map<string, string>();
  let first = message.length;
  const fields = new Fields(message, 0, message.length);
  for (let at = 0; fields.next(); at = fields.to) {
    const { number, from, to } = fields;
    if (number === 2) {
      if (resources.size === 0) {
        first = at;
        const known = delta ? undefined : lastStates.find(({ bytes }) => bytes.equals(message.subarray(at)));
        if (known !== undefined) {
          resources = known.resources;
          break;
        }
      }
      if (delta) readResource(message, from, to, resources);
      else resources.set(nameIn(message, from, to), '');
    } else if (number === 4) typeUrl = message.toString('latin1', from, to);
    else if (number === 5) nonce = message.toString('latin1', from, to);
    else if (number === 6) removed.push(message.toString('latin1', from, to));
    else if (number === 1) version = message.toString('latin1', from, to);
  }
  if (!delta && message.length - first > LARGE && lastStates.every((state) => state.resources !== resources)) {
    lastStates.unshift({ bytes: message.subarray(first), resources });
    lastStates.length = Math.min(lastStates.length, KEPT_STATES);
  }
  return { typeUrl, nonce, version, resources, removed, message };
}

/** State of the world that many clients are sent is parsed once: the server writes resources last. */
const lastStates: { readonly bytes: Buffer; readonly resources: Map<string, string> }[] = [];
const KEPT_STATES = 8;
/** Bytes. */
const LARGE = 65_536;

function readResource(message: Buffer, from: number, to: number, resources: Map<string, string>): void {
  let [name, version] = ['', ''];
  const fields = new Fields(message, from, to);
  while (fields.next()) {
    if (fields.number === 1) version = message.toString('latin1', fields.from, fields.to);
    else if (fields.number === 3) name = message.toString('latin1', fields.from, fields.to);
  }
  resources.set(name, version);
}

/** All served types have their name in the first field of the message inside the `Any`. */
function nameIn(message: Buffer, from: number, to: number): string {
  const any = new Fields(message, from, to);
  while (any.next()) {
    if (any.number !== 2) continue;
    const inner = new Fields(message, any.from, any.to);
    return inner.next() && inner.number === 1 ? message.toString('latin1', inner.from, inner.to) : '';
  }
  return '';
}

/** The length-delimited fields of a message between two offsets. Other fields of these messages are short numbers. */
class Fields {
  number = 0;
  from = 0;
  to: number;
  readonly #bytes: Buffer;
  readonly #end: number;

  constructor(bytes: Buffer, from: number, end: number) {
    this.#bytes = bytes;
    this.to = from;
    this.#end = end;
  }

  next(): boolean {
    while (this.to < this.#end) {
      const tag = this.#varint();
      const value = this.#varint();
      if ((tag & 7) !== LENGTH_DELIMITED) continue;
      this.number = tag >>> 3;
      this.from = this.to;
      this.to += value;
      return true;
    }
    return false;
  }

  #varint(): number {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = this.#bytes[this.to++]!;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
      shift += 7;
    }
  }
}
