import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import protobuf from 'protobufjs';
import { types } from '../../src/envoy/proto-types.ts';
import { typeUrl } from '../../src/envoy/proto.ts';
import { field, framed, openDeltaStream } from '../harness/raw-ads.ts';

export const CDS = typeUrl(types.cluster);
export const EDS = typeUrl(types.endpoint);
export const LDS = typeUrl(types.listener);
export const RDS = typeUrl(types.route);

export interface Request {
  readonly typeUrl: string;
  readonly names?: readonly string[];
  readonly nonce?: string;
  readonly error?: string;
}

/** The code of a `google.rpc.Status`. */
const INVALID_ARGUMENT = Buffer.from([8, 13]);

export function encode({ typeUrl, names = [], nonce, error }: Request): Buffer {
  return Buffer.concat([
    field(2, typeUrl),
    ...names.map((name) => field(3, name)),
    ...(nonce === undefined ? [] : [field(6, nonce)]),
    ...(error === undefined ? [] : [field(7, INVALID_ARGUMENT, field(2, error))]),
  ]);
}

/** A delta response, as far as it matters here: the names and bytes of its resources. */
export interface Response {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: ReadonlyMap<string, Buffer>;
}

/** A raw delta stream on a connection of its own, from an address of its own on loopback. */
export class AdsStream {
  readonly #session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  #pieces: Buffer[] = [];
  #length = 0;
  ended = false;

  constructor(port: number, from: string, onResponse: (response: Response) => void, onEnd: () => void = () => {}) {
    this.#session = connect(`http://127.0.0.1:${port}`, {
      settings: { initialWindowSize: 1 << 20 },
      createConnection: () => connectTcp({ host: '127.0.0.1', port, localAddress: from }),
    });
    const end = (): void => {
      if (this.ended) return;
      this.ended = true;
      onEnd();
    };
    this.#session.on('error', end);
    this.#session.on('connect', () => {
      // It may be closed as soon as it is there.
      if (!this.#session.destroyed) this.#session.setLocalWindowSize(1 << 20);
    });
    this.stream = openDeltaStream(this.#session);
    this.stream.on('error', end);
    this.stream.on('close', end);
    this.stream.on('data', (chunk: Buffer) => {
      this.#pieces.push(chunk);
      this.#length += chunk.length;
      this.#take(onResponse);
    });
  }

  send(...parts: readonly Uint8Array[]): void {
    if (!this.ended) this.stream.write(framed(Buffer.concat(parts)));
  }

  close(): void {
    this.ended = true;
    this.#session.destroy();
  }

  #take(onResponse: (response: Response) => void): void {
    while (this.#length >= 5) {
      const all = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      this.#pieces = [all];
      const length = 5 + all.readUInt32BE(1);
      if (all.length < length) return;
      this.#pieces = [all.subarray(length)];
      this.#length -= length;
      onResponse(read(all.subarray(5, length)));
    }
  }
}

function read(bytes: Buffer): Response {
  let [typeUrl, nonce] = ['', ''];
  const resources = new Map<string, Buffer>();
  for (const [field, value] of fieldsOf(bytes)) {
    if (field === 4) typeUrl = value.toString();
    if (field === 5) nonce = value.toString();
    if (field !== 2) continue;
    let name = '';
    for (const [inner, content] of fieldsOf(value)) if (inner === 3) name = content.toString();
    resources.set(name, value);
  }
  return { typeUrl, nonce, resources };
}

function* fieldsOf(bytes: Buffer): Generator<[number, Buffer]> {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if ((tag & 7) === 2) yield [tag >>> 3, Buffer.from(reader.bytes())];
    else reader.skipType(tag & 7);
  }
}
