/**
 * Pods have addresses that EndpointSlices accept; their programs are on this machine. As many letters either way, so
 * that nothing around them moves.
 */
const [POD, LOCAL] = ['10.244.', '127.77.'].map((text) => Buffer.from(text)) as [Buffer, Buffer];

/** Where the program in the Pod with this address is. */
export const localOf = (address: string): string => address.replace(POD.toString(), LOCAL.toString());

/** Of HTTP/2 frames: length, type, flags, stream. Bytes. */
const FRAME_HEADER = 9;
const DATA = 0;
/** Of the messages of gRPC: whether it is compressed, length. Bytes. */
const MESSAGE_HEADER = 5;

/** How far a stream is. */
interface Stream {
  /** What is known of the header of the message. */
  header: number[];
  /** Bytes that are missing of the message. */
  left: number;
  /** Where the beginning of an address is that has not ended yet. */
  begun: { readonly bytes: Buffer; readonly at: number }[];
}

/**
 * What a server sends over a connection of gRPC, with local addresses. An address may be in several pieces, and in
 * several frames: frames wait for the rest, which comes because its message has not ended. Nothing waits for time to
 * pass: on a busy machine, the rest may be late.
 */
export class Localized {
  #rest = Buffer.alloc(0);
  #waiting: Buffer[] = [];
  readonly #streams = new Map<number, Stream>();

  /** What can be sent on after this piece. */
  push(piece: Buffer): Buffer {
    let bytes = Buffer.concat([this.#rest, piece]);
    for (;;) {
      const length = bytes.length < FRAME_HEADER ? Infinity : FRAME_HEADER + bytes.readUIntBE(0, 3);
      if (bytes.length < length) break;
      const frame = bytes.subarray(0, length);
      bytes = bytes.subarray(length);
      if (frame[3] === DATA) this.#read(frame.readUInt32BE(5), frame.subarray(FRAME_HEADER));
      this.#waiting.push(frame);
    }
    this.#rest = bytes;
    for (const { begun } of this.#streams.values()) if (begun.length > 0) return Buffer.alloc(0);
    const ready = Buffer.concat(this.#waiting);
    this.#waiting = [];
    return ready;
  }

  /** Nobody here pads frames. */
  #read(id: number, bytes: Buffer): void {
    const stream = this.#streams.get(id) ?? { header: [], left: 0, begun: [] };
    this.#streams.set(id, stream);
    for (const [at, byte] of bytes.entries()) {
      if (stream.left === 0) {
        stream.header.push(byte);
        if (stream.header.length < MESSAGE_HEADER) continue;
        stream.left = Buffer.from(stream.header).readUInt32BE(1);
        stream.header = [];
        continue;
      }
      stream.left--;
      // Its first letter does not come again in it: no address begins within the beginning of another.
      if (byte !== POD[stream.begun.length]) stream.begun = [];
      if (byte === POD[stream.begun.length]) stream.begun.push({ bytes, at });
      if (stream.begun.length === POD.length)
        for (const [i, { bytes, at }] of stream.begun.entries()) bytes[at] = LOCAL[i]!;
      if (stream.left === 0 || stream.begun.length === POD.length) stream.begun = [];
    }
  }
}
