import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import protobuf from 'protobufjs';

const url = (type: string): string => `type.googleapis.com/envoy.config.${type}`;
export const CDS = url('cluster.v3.Cluster');
export const EDS = url('endpoint.v3.ClusterLoadAssignment');
export const LDS = url('listener.v3.Listener');
export const RDS = url('route.v3.RouteConfiguration');

const METHOD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources';

export function text(field: number, content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.from(
    protobuf.Writer.create()
      .uint32(field * 8 + 2)
      .bytes(bytes)
      .finish(),
  );
}

/** A node with text metadata, as the field of a delta request. */
export function nodeField(id: string, metadata: Readonly<Record<string, string>> = {}): Buffer {
  const members = Object.entries(metadata).map(([key, value]) =>
    text(1, Buffer.concat([text(1, key), text(2, text(3, value))])),
  );
  return text(1, Buffer.concat([text(1, id), text(3, Buffer.concat(members))]));
}

export interface Request {
  readonly typeUrl: string;
  readonly names?: readonly string[];
  readonly nonce?: string;
  readonly error?: string;
}

export function encode({ typeUrl, names = [], nonce, error }: Request): Buffer {
  return Buffer.concat([
    text(2, typeUrl),
    ...names.map((name) => text(3, name)),
    ...(nonce === undefined ? [] : [text(6, nonce)]),
    ...(error === undefined ? [] : [text(7, Buffer.concat([Buffer.from([8, 13]), text(2, error)]))]),
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
    this.#session.on('connect', () => this.#session.setLocalWindowSize(1 << 20));
    this.stream = this.#session.request({
      ':method': 'POST',
      ':path': METHOD,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    this.stream.on('error', end);
    this.stream.on('close', end);
    this.stream.on('data', (chunk: Buffer) => {
      this.#pieces.push(chunk);
      this.#length += chunk.length;
      this.#take(onResponse);
    });
  }

  send(...parts: readonly Buffer[]): void {
    if (this.ended) return;
    const body = Buffer.concat(parts);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(body.length, 1);
    this.stream.write(Buffer.concat([prefix, body]));
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
