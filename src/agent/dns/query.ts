import packet from 'dns-packet';

/** A query, as far as the agent understands it. */
export interface Query {
  readonly name: string;
  readonly type: 'A' | 'AAAA' | 'other';
  /** The question as it came. */
  readonly question: Uint8Array;
  readonly flags: number;
  readonly id: number;
  /** How many bytes an answer over UDP may have. */
  readonly udpBytes: number;
  /** It has an OPT record: so must the answer. */
  readonly isExtended: boolean;
}

/** What a message is that is not a query to answer or forward. */
export type Unusable = 'malformed' | 'unsupported';

export const HEADER_BYTES = 12;
const LEAST_UDP_BYTES = 512;
/** Larger datagrams may be fragmented on the way. */
const MOST_UDP_BYTES = 1_232;
/**
 * Besides the question: OPT, and perhaps a signature. Their names can be compressed in chains as long as the message,
 * which are followed for each of them.
 */
const MOST_RECORDS = 4;
const RESPONSE = 0x8000;
const OPCODE = 0x7800;

/** Reads a message that anybody may have sent. */
export function readQuery(message: Uint8Array): Query | Unusable {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  if (bytes.length < HEADER_BYTES) return 'malformed';
  const flags = bytes.readUInt16BE(2);
  // An answer to an answer could go on for ever.
  if ((flags & RESPONSE) !== 0) return 'malformed';
  if ((flags & OPCODE) !== 0) return 'unsupported';
  if (bytes.readUInt16BE(4) !== 1) return 'malformed';
  if (bytes.readUInt16BE(6) + bytes.readUInt16BE(8) + bytes.readUInt16BE(10) > MOST_RECORDS) return 'malformed';
  try {
    const { questions: [question] = [], additionals = [] } = packet.decode(bytes);
    const end = endOfName(bytes, HEADER_BYTES) + 4;
    if (question === undefined || end > bytes.length) return 'malformed';
    const opt = additionals.find(({ type }) => type === 'OPT') as { readonly udpPayloadSize?: number } | undefined;
    const isInternet = bytes.readUInt16BE(end - 2) === 1;
    return {
      id: bytes.readUInt16BE(0),
      flags,
      name: question.name.toLowerCase(),
      type: isInternet ? typeOf(bytes.readUInt16BE(end - 4)) : 'other',
      question: bytes.subarray(HEADER_BYTES, end),
      isExtended: opt !== undefined,
      udpBytes: Math.min(MOST_UDP_BYTES, Math.max(LEAST_UDP_BYTES, opt?.udpPayloadSize ?? 0)),
    };
  } catch {
    return 'malformed';
  }
}

/** Beyond the message if the name has a pointer: there is nothing before it that it could point to. */
function endOfName(bytes: Buffer, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== 0) {
    if (bytes[at]! > 63) return Infinity;
    at += bytes[at]! + 1;
  }
  return at + 1;
}

function typeOf(type: number): Query['type'] {
  if (type === TYPES.A) return 'A';
  return type === TYPES.AAAA ? 'AAAA' : 'other';
}

export const TYPES = { A: 1, CNAME: 5, AAAA: 28, OPT: 41 } as const;
