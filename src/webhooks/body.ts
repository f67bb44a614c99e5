import type { IncomingMessage } from 'node:http';

/** A call gets no verdict. */
export class Unanswerable extends Error {
  override readonly name = 'Unanswerable';
  /** For metrics. */
  readonly reason: 'handshake' | 'malformed' | 'too large' | 'busy' | 'ended';
  /** Of HTTP. */
  readonly status: number;

  constructor(reason: Unanswerable['reason'], status: number, message: string) {
    super(message);
    this.reason = reason;
    this.status = status;
  }
}

/** Throws an {@link Unanswerable} if the body is longer, or ends before it is complete. */
export async function readBody(request: IncomingMessage, most: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > most) throw new Unanswerable('too large', 413, `the body is over ${most} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof Unanswerable) throw error;
    throw new Unanswerable('ended', 499, 'the caller is gone');
  }
  return Buffer.concat(chunks).toString('utf8');
}
