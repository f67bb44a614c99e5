import { Buffer } from 'node:buffer';
import { hash } from 'node:crypto';
import { BadRequest } from '../bad-request.ts';
import { type ContentHasher, SetHash, viewOf } from '../store/content-hash.ts';
import type { NameIndex } from '../store/name-index.ts';
import type { RequestedNames } from '../store/name-set.ts';
import type { Served } from '../store/served.ts';
import type { ServedIndex } from '../store/served-index.ts';
import { FieldReader, stringOf } from './field-reader.ts';

/**
 * Names that a stream may be subscribed to, and versions that it may report, per type: three for each of 20,000
 * services. What they cost delays all other streams.
 */
export const MAX_NAMES = 65_536;

/** In bytes. Legitimate type URLs and nonces are shorter. */
const MAX_ID_BYTES = 256;
/** The same for resource names. The longest name built from DNS names, ports and subsets has some 600. */
const MAX_NAME_BYTES = 4_096;

/** Names and versions of `initial_resource_versions`. */
export interface RequestedVersions {
  readonly count: number;
  /**
   * The items that are not among the pairs, and the pairs that are not among the items. Strings are made only for the
   * latter; equal hashes count as equal pairs, so a client that makes hashes collide merely misses something.
   */
  compare(indexes: readonly ServedIndex[]): Compared;
}

interface Compared {
  readonly items: readonly Served[];
  readonly held: Map<string, string>;
  /** Some pair is among the items. */
  readonly anyCurrent: boolean;
}

/** A discovery request of either kind, as far as it matters. */
export interface DiscoveryRequest {
  readonly typeUrl: string;
  readonly nonce: string;
  /** State of the world only: the last version that was accepted in full. */
  readonly version: string;
  /** The encoded node; absent in all but the first request. */
  readonly node: Uint8Array | undefined;
  readonly error: { readonly code: number; readonly message: string } | undefined;
  /** State of the world: all names. Delta: the added names. `*` is not included. */
  readonly names: WireNames;
  readonly removed: WireNames;
  readonly versions: RequestedVersions;
}

/** Repeated names, counted while the message is read; strings are made of them only on demand. */
export class WireNames implements RequestedNames {
  /** Number of names that are neither `*` nor blank. */
  count = 0;
  /** Whether the name `*` is among them. */
  star = false;
  /** Whether there were any, including `*` and blank ones. */
  any = false;
  readonly #buffer: Buffer;
  readonly #field: number;
  /** Where the field of the first name begins, and where that of the last one ends. */
  #from = 0;
  #to = 0;

  constructor(buffer: Buffer, field: number) {
    this.#buffer = buffer;
    this.#field = field;
  }

  /** Adds a name. `start`: where its field begins. */
  add(start: number, from: number, to: number): void {
    this.any = true;
    if (to === from) return;
    if (to === from + 1 && this.#buffer[from] === STAR) {
      this.star = true;
      return;
    }
    expectName(from, to);
    if (this.count++ === 0) this.#from = start;
    this.#to = to;
  }

  /**
   * Takes all consecutive names from `at` on; returns where the next other field begins. Requests have thousands of
   * names, and the general reader is several times slower.
   */
  addRun(at: number, end: number): number {
    const tag = this.#field * 8 + 2;
    const buffer = this.#buffer;
    while (at + 2 <= end && buffer[at] === tag) {
      const length = buffer[at + 1]!;
      const to = at + 2 + length;
      if (length > 127 || to > end) break;
      this.add(at, at + 2, to);
      at = to;
    }
    return at;
  }

  /**
   * Digest of the bytes from the first name to the last, which identify the names. Both kinds of requests have their
   * names in field 3. Delta Envoys sort them; others list them in the order in which they learned of them.
   */
  digest(): string {
    return hash('sha256', this.#buffer.subarray(this.#from, this.#to), 'base64url');
  }

  strings(): string[] {
    const names: string[] = [];
    this.#visit((from, to) => names.push(stringOf(this.#buffer, from, to)));
    return names;
  }

  hash(hasher: ContentHasher, index?: NameIndex): { hash: SetHash; areIn: boolean } {
    const hash = new SetHash();
    let areIn = index !== undefined;
    const view = viewOf(this.#buffer);
    this.#visit((from, to) => {
      hasher.bytes(view, from, to);
      hash.add(hasher);
      areIn &&= index!.has(hasher, view, from, to);
    });
    return { hash, areIn };
  }

  #visit(visit: (from: number, to: number) => void): void {
    if (this.count === 0) return;
    const buffer = this.#buffer;
    const tag = this.#field * 8 + 2;
    const reader = new FieldReader(buffer, this.#from, this.#to);
    while (reader.next()) {
      if (reader.field !== this.#field) continue;
      reader.expectBytes();
      let { from, to } = reader;
      for (;;) {
        if (to > from && !(to === from + 1 && buffer[from] === STAR)) visit(from, to);
        // As in addRun.
        if (to + 2 > this.#to || buffer[to] !== tag || buffer[to + 1]! > 127) break;
        from = to + 2;
        to = from + buffer[to + 1]!;
      }
      reader.at = to;
    }
  }
}

function expectName(from: number, to: number): void {
  if (to - from > MAX_NAME_BYTES) throw new BadRequest(`a name or version is longer than ${MAX_NAME_BYTES} bytes`);
}

const STAR = 0x2a;

/** Field of `initial_resource_versions` in the request; key and value of a map entry are its fields 1 and 2. */
const VERSIONS = 5;
const VERSIONS_TAG = 0x2a;
const KEY_TAG = 0x0a;
const VALUE_TAG = 0x12;

/** Where the field of a pair begins, and where its name and its version are. */
type VisitPair = (start: number, nameFrom: number, nameTo: number, versionFrom: number, versionTo: number) => void;

class WireVersions implements RequestedVersions {
  count = 0;
  readonly #buffer: Buffer;
  readonly #hasher: ContentHasher;

  constructor(buffer: Buffer, hasher: ContentHasher) {
    this.#buffer = buffer;
    this.#hasher = hasher;
  }

  /** Takes the current entry of a reader and the entries right after it. */
  add(reader: FieldReader): void {
    this.#visit(reader, () => this.count++);
  }

  compare(indexes: readonly ServedIndex[]): Compared {
    if (this.#areThose(indexes)) return { items: [], held: new Map<string, string>(), anyCurrent: this.count > 0 };
    const isHeld = indexes.map(({ items }) => new Uint8Array(items.length));
    const others: number[] = [];
    this.#visitAll(({ a, b }, start) => {
      for (let i = 0; i < indexes.length; i++) {
        const found = indexes[i]!.find(a, b);
        if (found < 0) continue;
        isHeld[i]![found] = 1;
        return;
      }
      others.push(start);
    });
    const held = new Map(others.map((start) => this.#entry(start)));
    const items = indexes.flatMap((index, at) => index.items.filter((_, i) => isHeld[at]![i] === 0));
    return { items, held, anyCurrent: this.count > others.length };
  }

  /** Whether the client holds what there is, as nearly all do that come back to a new replica. */
  #areThose(indexes: readonly ServedIndex[]): boolean {
    const expected = new SetHash();
    for (const { hash } of indexes) expected.addAll(hash);
    if (expected.count !== this.count) return false;
    const hash = new SetHash();
    this.#visitAll((pair) => hash.add(pair));
    return hash.equals(expected);
  }

  /** Calls back with the hash of each pair, and where its field begins. */
  #visitAll(visit: (hash: ContentHasher, start: number) => void): void {
    if (this.count === 0) return;
    const hasher = this.#hasher;
    const view = viewOf(this.#buffer);
    const reader = new FieldReader(this.#buffer);
    while (reader.next()) {
      if (reader.field !== VERSIONS) continue;
      this.#visit(reader, (start, nameFrom, nameTo, versionFrom, versionTo) => {
        hasher.pair(view, nameFrom, nameTo, versionFrom, versionTo);
        visit(hasher, start);
      });
    }
  }

  #entry(start: number): [string, string] {
    const reader = new FieldReader(this.#buffer, start);
    reader.next();
    let [name, version] = ['', ''];
    const entry = reader.message();
    while (entry.next()) {
      if (entry.field === 1) name = entry.string();
      else if (entry.field === 2) version = entry.string();
    }
    return [name, version];
  }

  /** Visits the current entry of a reader, and those right after it as long as they have the usual encoding. */
  #visit(reader: FieldReader, visit: VisitPair): void {
    const entry = reader.message();
    let [nameFrom, nameTo, versionFrom, versionTo] = [0, 0, 0, 0];
    while (entry.next()) {
      if (entry.field === 1) [nameFrom, nameTo] = [entry.from, entry.to];
      else if (entry.field === 2) [versionFrom, versionTo] = [entry.from, entry.to];
      else continue;
      entry.expectBytes();
    }
    expectName(nameFrom, nameTo);
    expectName(versionFrom, versionTo);
    visit(reader.start, nameFrom, nameTo, versionFrom, versionTo);
    // As in WireNames: the general reader is several times slower. Names come first.
    const buffer = this.#buffer;
    let at = reader.at;
    while (at + 4 <= buffer.length && buffer[at] === VERSIONS_TAG) {
      const length = buffer[at + 1]!;
      const to = at + 2 + length;
      if (length > 127 || length < 4 || to > buffer.length || buffer[at + 2] !== KEY_TAG) break;
      const keyTo = at + 4 + buffer[at + 3]!;
      if (keyTo + 2 > to || buffer[keyTo] !== VALUE_TAG || keyTo + 2 + buffer[keyTo + 1]! !== to) break;
      visit(at, at + 4, keyTo, keyTo + 2, to);
      at = to;
    }
    reader.at = at;
  }
}

const NO_NAMES = new WireNames(Buffer.alloc(0), -1);
const NO_VERSIONS: RequestedVersions = {
  count: 0,
  compare: (indexes) => ({
    items: indexes.flatMap(({ items }) => items),
    held: new Map<string, string>(),
    anyCurrent: false,
  }),
};

/** `envoy.service.discovery.v3.DiscoveryRequest` */
export function readRequest(bytes: Uint8Array, hasher: ContentHasher): DiscoveryRequest {
  return read(bytes, hasher, { version: 1, node: 2, names: 3, typeUrl: 4, nonce: 5, error: 6 });
}

/** `envoy.service.discovery.v3.DeltaDiscoveryRequest` */
export function readDeltaRequest(bytes: Uint8Array, hasher: ContentHasher): DiscoveryRequest {
  return read(bytes, hasher, { node: 1, typeUrl: 2, names: 3, removed: 4, versions: VERSIONS, nonce: 6, error: 7 });
}

/** Field numbers; absent if this kind of request has no such field. */
interface Numbers {
  readonly node: number;
  readonly typeUrl: number;
  readonly names: number;
  readonly nonce: number;
  readonly error: number;
  readonly version?: number;
  readonly removed?: number;
  readonly versions?: number;
}

function read(bytes: Uint8Array, hasher: ContentHasher, at: Numbers): DiscoveryRequest {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let typeUrl = '';
  let nonce = '';
  let version = '';
  let node: Uint8Array | undefined;
  let error: DiscoveryRequest['error'];
  // Most requests are acknowledgements, and have none of these.
  let names = NO_NAMES;
  let removed = NO_NAMES;
  let versions: WireVersions | undefined;
  const reader = new FieldReader(buffer);
  while (reader.next()) {
    switch (reader.field) {
      case at.names:
        reader.expectBytes();
        if (names === NO_NAMES) names = new WireNames(buffer, at.names);
        names.add(reader.start, reader.from, reader.to);
        reader.at = names.addRun(reader.at, buffer.length);
        break;
      case at.versions:
        (versions ??= new WireVersions(buffer, hasher)).add(reader);
        break;
      case at.removed:
        reader.expectBytes();
        if (removed === NO_NAMES) removed = new WireNames(buffer, reader.field);
        removed.add(reader.start, reader.from, reader.to);
        break;
      case at.typeUrl:
        typeUrl = reader.shortString('a type URL', MAX_ID_BYTES);
        break;
      case at.nonce:
        nonce = reader.shortString('a nonce', MAX_ID_BYTES);
        break;
      case at.version:
        version = reader.string();
        break;
      case at.node:
        reader.expectBytes();
        node = buffer.subarray(reader.from, reader.to);
        break;
      case at.error:
        error = readStatus(reader.message());
        break;
    }
  }
  if (names.count + removed.count > MAX_NAMES || (versions?.count ?? 0) > MAX_NAMES) {
    throw new BadRequest('the request has too many names', true);
  }
  return { typeUrl, nonce, version, node, error, names, removed, versions: versions ?? NO_VERSIONS };
}

/** `google.rpc.Status` */
function readStatus(reader: FieldReader): { code: number; message: string } {
  let code = 0;
  let message = '';
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === 0) code = reader.varint;
    else if (reader.field === 2) message = reader.string();
  }
  return { code, message };
}
