import { ApiError } from '../client/api-error.ts';

/** No event of an API server comes close: etcd refuses objects over 1.5 MB. */
const LONGEST = 64 * 1024 * 1024;

/** Splits a byte stream at newlines. An incomplete last line waits for the rest, and is lost if the stream ends. */
export class LineSplitter {
  private readonly longest: number;
  private pending: Uint8Array[] = [];
  private size = 0;

  constructor(longest = LONGEST) {
    this.longest = longest;
  }

  push(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const tail = chunk.subarray(start, end);
      const line = this.pending.length === 0 ? tail : Buffer.concat([...this.pending, tail]);
      this.pending = [];
      this.size = 0;
      start = end + 1;
      if (line.length > 0) lines.push(Buffer.from(line.buffer, line.byteOffset, line.length).toString('utf8'));
    }
    if (start < chunk.length) {
      this.pending.push(chunk.subarray(start));
      this.size += chunk.length - start;
    }
    if (this.size > this.longest)
      throw new ApiError('a line of the watch does not end', { code: 0, reason: 'LineTooLong', retryable: true });
    return lines;
  }
}
