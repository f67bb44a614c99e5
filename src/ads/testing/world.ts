import { Buffer } from 'node:buffer';
import { Canaries } from '../protocol/canaries.ts';
import { shareForRejected } from '../protocol/rejected-room.ts';
import { BARRIER_TIMES } from '../protocol/barrier-times.ts';
import { ContentHasher } from '../store/content-hash.ts';
import { Delivery, type DeliveryContext } from '../protocol/delivery.ts';
import type { ObjectRef } from '../../api/object.ts';
import { Frames } from '../wire/frames.ts';
import { NameSets } from '../store/name-set.ts';
import type { EncodedResource } from '../store/resource.ts';
import { type RolloutEvents, Rollouts } from '../rollouts/rollouts.ts';
import { References } from '../store/served.ts';
import { Store } from '../store/store.ts';
import type { ResourceTypes } from '../types.ts';
import { FieldReader } from '../wire/field-reader.ts';
import { type DiscoveryRequest, readDeltaRequest, readRequest } from '../wire/wire-read.ts';
import type { WorldView } from '../store/world.ts';

export const CDS = 'cds';
export const EDS = 'eds';
export const LDS = 'lds';
export const RDS = 'rds';

/** Content of a cluster that waits for a secret, too. */
export const SECRET = '5';

/** Content of an assignment without ready endpoints. */
export const UNREADY = 'unready';

/** Content of the answer for a name that does not exist. */
export const ABSENT = 'absent';

/** Types with short URLs. */
export const TYPES: ResourceTypes = [
  { typeUrl: CDS, shortName: 'cds', wildcard: true, fullState: true, isTried: true },
  {
    typeUrl: EDS,
    shortName: 'eds',
    wildcard: false,
    fullState: false,
    behind: CDS,
    whenAbsent: (name) => resource(EDS, name, ABSENT),
  },
  { typeUrl: LDS, shortName: 'lds', wildcard: true, fullState: true, refersTo: CDS, drains: true, isTried: true },
  {
    typeUrl: RDS,
    shortName: 'rds',
    wildcard: false,
    fullState: false,
    refersTo: CDS,
    whenAbsent: (name) => resource(RDS, name, ABSENT),
  },
];

/** The version is the content; the body is `name@content`, so that it can be read in both kinds of response. */
export function resource(
  typeUrl: string,
  name: string,
  content: string,
  clusters: readonly string[] = [],
  origins: readonly ObjectRef[] = [],
): EncodedResource {
  const bytes = Buffer.from(`${name}@${content}`);
  return {
    typeUrl,
    name,
    version: content,
    body: {
      bytes,
      length: bytes.length,
      hash: content,
      clusters,
      origins,
      ...(content === SECRET && { late: true as const }),
      ...((content === UNREADY || content === 'absent') && { unready: true as const }),
    },
  };
}

/** A store, and what deliveries need from it. */
export class TestServer {
  readonly hasher = new ContentHasher([17, 4]);
  readonly store: Store;
  readonly sets = new NameSets(this.hasher);
  readonly frames = new Frames();
  readonly rejections: { name: string | undefined; version: string | undefined }[] = [];
  timeouts = 0;
  streams = 0;
  readonly rollouts: Rollouts;
  /** Off, unless a test puts another in its place. */
  canaries = new Canaries({ now: () => 0, after: () => {}, isOn: false });
  rejected = shareForRejected();
  /** Of the next client. */
  tenant = '';
  times = BARRIER_TIMES;

  /** @param many from how many names on streams share work; defaults to the server's value. */
  constructor(many?: number, events: RolloutEvents = { after: () => {}, settled: () => {}, changed: () => {} }) {
    this.store = new Store(this.hasher, many);
    this.rollouts = new Rollouts(events);
  }

  #context(delta: boolean, types: ResourceTypes): DeliveryContext {
    return {
      delta,
      sets: this.sets,
      address: '',
      recipient: { stream: `stream-${++this.streams}`, nodeId: '', build: '', tenant: this.tenant },
      rollouts: this.rollouts,
      broughtIn: (batch, view, type) => this.store.broughtIn(batch, view, type),
      canaries: this.canaries,
      rejected: this.rejected,
      once: (encoded) => this.store.once(encoded),
      remember: (view) => this.store.remember(view),
      move: (before, after, news) => this.store.move(before, after, news),
      update: (sight, news) => this.store.update(sight, news),
      shared: () => this.store.work,
      types,
      frames: this.frames,
      references: new References(),
      times: this.times,
      unguarded: false,
    };
  }

  /** @param types that the stream may ask for. */
  open(view: WorldView, delta: boolean, types = TYPES): Delivery {
    return new Delivery(this.#context(delta, types), view, {
      wake: () => {},
      sent: () => {},
      rejected: (_, items) => {
        for (const item of items.length === 0 ? [undefined] : items)
          this.rejections.push({ name: item?.name, version: item?.version });
      },
      asked: () => {},
      unknownType: () => {},
      expired: () => {},
      timedOut: () => this.timeouts++,
      overdue: () => {},
    });
  }
}

/** A request, in terms of either kind. */
export interface Asked {
  readonly typeUrl: string;
  readonly nonce?: string;
  readonly version?: string;
  readonly error?: string | undefined;
  readonly names?: readonly string[];
  readonly unsubscribe?: readonly string[];
  readonly initial?: ReadonlyMap<string, string>;
}

/** Encodes a request to the wire format and reads it back. */
export function encodeRequest(asked: Asked, delta: boolean, hasher: ContentHasher): DiscoveryRequest {
  const fields: Buffer[] = [];
  const bytes = (field: number, value: string | Buffer): void => {
    const content = typeof value === 'string' ? Buffer.from(value) : value;
    if (content.length > 127) throw new Error('too long for a test');
    fields.push(Buffer.from([field * 8 + 2, content.length]), content);
  };
  bytes(delta ? 2 : 4, asked.typeUrl);
  for (const name of asked.names ?? []) bytes(3, name);
  if (asked.nonce !== undefined) bytes(delta ? 6 : 5, asked.nonce);
  if (asked.error !== undefined)
    bytes(delta ? 7 : 6, Buffer.concat([Buffer.from([18, asked.error.length]), Buffer.from(asked.error)]));
  if (delta) {
    for (const name of asked.unsubscribe ?? []) bytes(4, name);
    for (const [name, version] of asked.initial ?? []) {
      bytes(5, Buffer.concat([field(1, name), field(2, version)]));
    }
  } else if (asked.version !== undefined) bytes(1, asked.version);
  const message = Buffer.concat(fields);
  return delta ? readDeltaRequest(message, hasher) : readRequest(message, hasher);
}

function field(number: number, text: string): Buffer {
  return Buffer.concat([Buffer.from([number * 8 + 2, text.length]), Buffer.from(text)]);
}

export interface Response {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly version: string;
  /** Name to content. */
  readonly resources: ReadonlyMap<string, string>;
  readonly removed: readonly string[];
}

/** Reads the frame of a response, including the gRPC message prefix. */
export function decodeFrame(slices: readonly Uint8Array[], delta: boolean): Response {
  const frame = Buffer.concat(slices);
  if (frame.readUInt32BE(1) !== frame.length - 5) throw new Error('the prefix does not say the length of the message');
  const reader = new FieldReader(frame, 5);
  let [typeUrl, nonce, version] = ['', '', ''];
  const resources = new Map<string, string>();
  const removed: string[] = [];
  while (reader.next()) {
    if (reader.field === 1) version = reader.string();
    if (reader.field === 4) typeUrl = reader.string();
    if (reader.field === 5) nonce = reader.string();
    if (reader.field === 6) removed.push(reader.string());
    if (reader.field !== 2) continue;
    const [name, content] = delta ? readDeltaResource(reader.message()) : readAny(reader.message());
    if (resources.has(name)) throw new Error(`${name} is twice in one response`);
    resources.set(name, content);
  }
  return { typeUrl, nonce, version, resources, removed };
}

function readDeltaResource(reader: FieldReader): [string, string] {
  let [name, version] = ['', ''];
  let any: [string, string] = ['', ''];
  while (reader.next()) {
    if (reader.field === 1) version = reader.string();
    if (reader.field === 2) any = readAny(reader.message());
    if (reader.field === 3) name = reader.string();
  }
  if (any[0] !== name || any[1] !== version) throw new Error(`${name}: ${version} has the body ${any.join('@')}`);
  return any;
}

function readAny(reader: FieldReader): [string, string] {
  let body = '';
  while (reader.next()) if (reader.field === 2) body = reader.string();
  const at = body.indexOf('@');
  return [body.slice(0, at), body.slice(at + 1)];
}
