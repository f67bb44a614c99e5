import type { Found } from './names.ts';
import { HEADER_BYTES, type Query, TYPES } from './query.ts';

const TTL_SECONDS = 30;
const RESPONSE = 0x8000;
const AUTHORITATIVE = 0x0400;
const TRUNCATED = 0x0200;
const RECURSION_DESIRED = 0x0100;
const RECURSION_AVAILABLE = 0x0080;
const CODES = { serverFailure: 2, notImplemented: 4 } as const;
const INTERNET = 1;
/** Size of a datagram that the agent takes: it needs no more. */
const OWN_UDP_BYTES = 1_232;
const OPT_BYTES = 11;
/** A pointer to the name in the question. */
const QUESTION = 0xc000 | HEADER_BYTES;

/**
 * The answer to a query for a name that the agent knows. Of a host without addresses of the asked family, it says that
 * the name exists and has none.
 * @param mostBytes a longer answer is cut, and says so: clients ask again over TCP.
 * @param random in [0, 1): the order of the addresses.
 */
export function answer(query: Query, found: Found, mostBytes: number, random: () => number): Buffer {
  const [all, size] = query.type === 'A' ? [found.v4, 4] : [found.v6, 16];
  const [cname, owner] = cnameOf(query, found.alias);
  const room = mostBytes - HEADER_BYTES - query.question.length - cname.length - (query.isExtended ? OPT_BYTES : 0);
  const count = Math.floor(all.length / size);
  const fitting = Math.max(0, Math.min(count, Math.floor(room / (12 + size))));
  const order = shuffled(count, fitting, random);
  const records = Buffer.alloc(fitting * (12 + size));
  order.forEach((index, i) => {
    const at = i * (12 + size);
    writeRecord(records, at, owner, query.type === 'A' ? TYPES.A : TYPES.AAAA, size);
    records.set(all.subarray(index * size, (index + 1) * size), at + 12);
  });
  const flags = AUTHORITATIVE | (fitting < count ? TRUNCATED : 0);
  return message(query, flags, (cname.length > 0 ? 1 : 0) + fitting, [cname, records]);
}

/** Says that the name cannot be looked up now. */
export const failure = (query: Query): Buffer => message(query, CODES.serverFailure, 0, []);

/** Says that this kind of message is not understood; undefined if even that cannot be said. */
export function notImplemented(request: Uint8Array): Buffer | undefined {
  if (request.length < HEADER_BYTES) return undefined;
  const header = Buffer.alloc(HEADER_BYTES);
  header.set(request.subarray(0, 2));
  header.writeUInt16BE(RESPONSE | (((request[2]! << 8) | request[3]!) & 0x7900) | CODES.notImplemented, 2);
  return header;
}

function message(query: Query, flags: number, answers: number, records: readonly Uint8Array[]): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(query.id, 0);
  header.writeUInt16BE(RESPONSE | RECURSION_AVAILABLE | (query.flags & RECURSION_DESIRED) | flags, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers, 6);
  header.writeUInt16BE(query.isExtended ? 1 : 0, 10);
  return Buffer.concat([header, query.question, ...records, ...(query.isExtended ? [optRecord()] : [])]);
}

/** The CNAME record, and a pointer to the name that the addresses belong to. */
function cnameOf(query: Query, alias: string | undefined): readonly [record: Buffer, owner: number] {
  if (alias === undefined) return [Buffer.alloc(0), QUESTION];
  // The name in the question without the search domain, byte for byte.
  const searchBytes = Buffer.byteLength(query.name.slice(alias.length + 1)) + 1;
  const target = Buffer.concat([query.question.subarray(0, -5 - searchBytes), Buffer.alloc(1)]);
  const record = Buffer.alloc(12 + target.length);
  writeRecord(record, 0, QUESTION, TYPES.CNAME, target.length);
  record.set(target, 12);
  return [record, 0xc000 | (HEADER_BYTES + query.question.length + 12)];
}

function writeRecord(into: Buffer, at: number, owner: number, type: number, length: number): void {
  into.writeUInt16BE(owner, at);
  into.writeUInt16BE(type, at + 2);
  into.writeUInt16BE(INTERNET, at + 4);
  into.writeUInt32BE(TTL_SECONDS, at + 6);
  into.writeUInt16BE(length, at + 10);
}

function optRecord(): Buffer {
  const record = Buffer.alloc(OPT_BYTES);
  record.writeUInt16BE(TYPES.OPT, 1);
  record.writeUInt16BE(OWN_UDP_BYTES, 3);
  return record;
}

/** `few` of the numbers below `count`, in random order. */
function shuffled(count: number, few: number, random: () => number): number[] {
  const numbers = Array.from({ length: count }, (_, i) => i);
  for (let i = 0; i < few; i++) {
    const j = i + Math.floor(random() * (count - i));
    [numbers[i], numbers[j]] = [numbers[j]!, numbers[i]!];
  }
  return numbers.slice(0, few);
}
