import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  Metadata,
  credentials,
  type ServiceError,
} from '@grpc/grpc-js';
import protobuf from 'protobufjs';

/** A response of either kind. */
export interface Response {
  readonly typeUrl: string;
  readonly nonce: string;
  /** State of the world only. */
  readonly version: string;
  /** Messages as they came. */
  readonly resources: ReadonlyMap<string, Uint8Array>;
  /** The same as text: the conformance tests send no messages but `name@content`. */
  readonly bodies: ReadonlyMap<string, string>;
  /** Delta only. */
  readonly versions: ReadonlyMap<string, string>;
  readonly removed: readonly string[];
  readonly bytes: number;
}

export interface Request {
  readonly typeUrl: string;
  readonly nonce?: string;
  readonly error?: string;
  readonly node?: Node | undefined;
  /** State of the world. */
  readonly version?: string;
  readonly names?: readonly string[];
  /** Delta. */
  readonly subscribe?: readonly string[];
  readonly unsubscribe?: readonly string[];
  readonly initial?: Readonly<Record<string, string>>;
}

export interface Node {
  readonly id: string;
  readonly cluster?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Metadata GENERATOR. */
  readonly generator?: string;
  /** More metadata, of which each value is text. */
  readonly texts?: Readonly<Record<string, string>>;
  readonly locality?: { readonly region: string; readonly zone: string } | undefined;
  /** `client_features` */
  readonly features?: readonly string[];
}

/** How a client proves who it is. */
export interface SecureCall {
  readonly credentials: ChannelCredentials;
  /** The name that the server must have. */
  readonly name: string;
  readonly metadata: Metadata;
}

/** What the name of a resource is, which only delta says outright. */
export type NameOf = (resource: Uint8Array) => string;

interface Methods {
  readonly stream: string;
  readonly delta: string;
}

const AGGREGATED: Methods = {
  stream: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
};
const identity = (bytes: Buffer): Buffer => bytes;

/** A hand-driven xDS client on a real gRPC connection: it sends exactly what a script says. */
export class XdsClient {
  readonly delta: boolean;
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  readonly #received: Response[] = [];
  readonly #waiting: (() => void)[] = [];
  #error: ServiceError | undefined;
  #ended = false;
  #markers = 0;
  readonly closed: Promise<ServiceError | undefined>;

  /**
   * @param secure absent: plaintext.
   * @param beside a client whose connection it uses; absent: one of its own.
   */
  constructor(
    port: number,
    delta: boolean,
    nameOf: NameOf = nameOfText,
    secure?: SecureCall,
    methods: Methods = AGGREGATED,
    beside?: XdsClient,
  ) {
    this.delta = delta;
    this.#client =
      beside !== undefined
        ? beside.#client
        : new Client(`127.0.0.1:${port}`, secure?.credentials ?? credentials.createInsecure(), {
            'grpc.max_receive_message_length': -1,
            'grpc.use_local_subchannel_pool': 1,
            ...(secure && { 'grpc.ssl_target_name_override': secure.name }),
          });
    this.#call = this.#client.makeBidiStreamRequest(
      delta ? methods.delta : methods.stream,
      identity,
      identity,
      secure?.metadata ?? new Metadata(),
    );
    this.#call.on('data', (bytes: Buffer) => {
      this.#received.push(delta ? readDelta(bytes) : readState(bytes, nameOf));
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      this.#call.on('error', (error: ServiceError) => {
        this.#error = error;
        this.#ended = true;
        this.#wake();
        resolve(error);
      });
      this.#call.on('end', () => {
        this.#ended = true;
        this.#wake();
        resolve(undefined);
      });
    });
  }

  send(request: Request): void {
    this.#call.write(this.delta ? writeDelta(request) : writeState(request));
  }

  sendBytes(bytes: Uint8Array): void {
    this.#call.write(Buffer.from(bytes));
  }

  /** The next response, or the next one of a type; those of other types stay. */
  async next(typeUrl?: string): Promise<Response> {
    for (;;) {
      const index = this.#received.findIndex((response) => typeUrl === undefined || response.typeUrl === typeUrl);
      if (index >= 0) return this.#received.splice(index, 1)[0]!;
      if (this.#ended) throw this.#error ?? new Error('the stream has ended');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Acknowledges responses until one brings this resource. */
  async nextWith(typeUrl: string, name: string): Promise<Uint8Array> {
    for (;;) {
      const { resources, nonce } = await this.next(typeUrl);
      this.send({ typeUrl, nonce });
      const found = resources.get(name);
      if (found !== undefined) return found;
    }
  }

  /** What came so far, in order. */
  get received(): readonly Response[] {
    return this.#received;
  }

  /**
   * Everything that the server had to say up to now: a name of a type that is always answered is asked for, and what
   * came before its answer is returned. Uses a type that the script does not use.
   */
  async settled(typeUrl: string, names: readonly string[] = []): Promise<readonly Response[]> {
    const marker = `marker-${++this.#markers}`;
    this.send(this.delta ? { typeUrl, subscribe: [marker] } : { typeUrl, names: [...names, marker], nonce: '' });
    for (;;) {
      const index = this.#received.findIndex((r) => r.typeUrl === typeUrl && r.bodies.has(marker));
      if (index >= 0) {
        const [response] = this.#received.splice(index, 1);
        this.send({ typeUrl, nonce: response!.nonce, version: response!.version, names: [...names, marker] });
        return this.#received.splice(0);
      }
      if (this.#ended) throw this.#error ?? new Error('the stream has ended');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Says that no more requests come. */
  end(): void {
    this.#call.end();
  }

  close(): void {
    this.#call.cancel();
    this.#client.close();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

function writeState(request: Request): Buffer {
  const writer = protobuf.Writer.create();
  if (request.version !== undefined) writer.uint32(10).string(request.version);
  if (request.node !== undefined) writer.uint32(18).bytes(writeNode(request.node));
  for (const name of request.names ?? []) writer.uint32(26).string(name);
  writer.uint32(34).string(request.typeUrl);
  if (request.nonce !== undefined) writer.uint32(42).string(request.nonce);
  if (request.error !== undefined) writer.uint32(50).bytes(writeStatus(request.error));
  return Buffer.from(writer.finish());
}

function writeDelta(request: Request): Buffer {
  const writer = protobuf.Writer.create();
  if (request.node !== undefined) writer.uint32(10).bytes(writeNode(request.node));
  writer.uint32(18).string(request.typeUrl);
  for (const name of request.subscribe ?? []) writer.uint32(26).string(name);
  for (const name of request.unsubscribe ?? []) writer.uint32(34).string(name);
  for (const [name, version] of Object.entries(request.initial ?? {})) {
    writer.uint32(42).fork().uint32(10).string(name).uint32(18).string(version).ldelim();
  }
  if (request.nonce !== undefined) writer.uint32(50).string(request.nonce);
  if (request.error !== undefined) writer.uint32(58).bytes(writeStatus(request.error));
  return Buffer.from(writer.finish());
}

function writeNode(node: Node): Uint8Array {
  const writer = protobuf.Writer.create().uint32(10).string(node.id);
  if (node.cluster !== undefined) writer.uint32(18).string(node.cluster);
  const { labels, generator, texts = {} } = node;
  const metadata: [string, (value: protobuf.Writer) => unknown][] = [];
  for (const [key, text] of Object.entries(texts)) metadata.push([key, (value) => value.uint32(26).string(text)]);
  if (generator !== undefined) metadata.push(['GENERATOR', (value) => value.uint32(26).string(generator)]);
  if (labels !== undefined) {
    const nested = struct(Object.entries(labels), (value, text) => value.uint32(26).string(text));
    metadata.push(['LABELS', (value) => value.uint32(42).bytes(nested)]);
  }
  if (metadata.length > 0) writer.uint32(26).bytes(struct(metadata, (value, write) => write(value)));
  if (node.locality !== undefined) {
    writer.uint32(34).fork().uint32(10).string(node.locality.region).uint32(18).string(node.locality.zone).ldelim();
  }
  for (const feature of node.features ?? []) writer.uint32(82).string(feature);
  return writer.finish();
}

/** A `google.protobuf.Struct`. */
function struct<T>(
  entries: readonly [string, T][],
  writeValue: (to: protobuf.Writer, value: T) => unknown,
): Uint8Array {
  const writer = protobuf.Writer.create();
  for (const [key, value] of entries) {
    const field = writer.uint32(10).fork().uint32(10).string(key).uint32(18).fork();
    writeValue(field, value);
    field.ldelim().ldelim();
  }
  return writer.finish();
}

function writeStatus(message: string): Uint8Array {
  return protobuf.Writer.create().uint32(8).int32(13).uint32(18).string(message).finish();
}

function fields(bytes: Uint8Array, visit: (field: number, value: Uint8Array) => void): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) visit(reader.uint32() >>> 3, reader.bytes());
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

function readState(bytes: Buffer, nameOf: NameOf): Response {
  let [typeUrl, nonce, version] = ['', '', ''];
  const resources = new Map<string, Uint8Array>();
  fields(bytes, (field, value) => {
    if (field === 1) version = text(value);
    if (field === 4) typeUrl = text(value);
    if (field === 5) nonce = text(value);
    if (field !== 2) return;
    const resource = readAny(value);
    put(resources, nameOf(resource), resource);
  });
  return { ...response(typeUrl, nonce, resources, bytes), version };
}

function readDelta(bytes: Buffer): Response {
  let [typeUrl, nonce] = ['', ''];
  const resources = new Map<string, Uint8Array>();
  const versions = new Map<string, string>();
  const removed: string[] = [];
  fields(bytes, (field, value) => {
    if (field === 4) typeUrl = text(value);
    if (field === 5) nonce = text(value);
    if (field === 6) removed.push(text(value));
    if (field !== 2) return;
    let [name, version] = ['', ''];
    let resource: Uint8Array = new Uint8Array();
    fields(value, (inner, content) => {
      if (inner === 1) version = text(content);
      if (inner === 2) resource = readAny(content);
      if (inner === 3) name = text(content);
    });
    put(resources, name, resource);
    versions.set(name, version);
  });
  return { ...response(typeUrl, nonce, resources, bytes), versions, removed };
}

function response(
  typeUrl: string,
  nonce: string,
  resources: ReadonlyMap<string, Uint8Array>,
  { length }: Buffer,
): Response {
  const bodies = new Map(Array.from(resources, ([name, resource]) => [name, text(resource)]));
  return { typeUrl, nonce, version: '', resources, bodies, versions: new Map(), removed: [], bytes: length };
}

function put(resources: Map<string, Uint8Array>, name: string, resource: Uint8Array): void {
  if (resources.has(name)) throw new Error(`${name} is sent twice`);
  resources.set(name, resource);
}

function readAny(bytes: Uint8Array): Uint8Array {
  let value: Uint8Array = new Uint8Array();
  fields(bytes, (field, content) => {
    if (field === 2) value = content;
  });
  return value;
}

function nameOfText(resource: Uint8Array): string {
  const body = text(resource);
  return body.slice(0, body.indexOf('@'));
}
