/**
 * Splits a byte stream into messages that begin with their length in two bytes.
 * @param mostBytes of a message; a longer one cannot be read, nor what follows it.
 */
export function readFrames(mostBytes: number): (chunk: Buffer) => readonly Buffer[] | 'too long' {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const messages: Buffer[] = [];
    while (rest.length >= 2) {
      const length = rest.readUInt16BE(0);
      if (length > mostBytes) return 'too long';
      if (rest.length < 2 + length) break;
      messages.push(rest.subarray(2, 2 + length));
      rest = rest.subarray(2 + length);
    }
    return messages;
  };
}
