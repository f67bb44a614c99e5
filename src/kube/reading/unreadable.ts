import { createHash } from 'node:crypto';
import { ApiError } from '../client/api-error.ts';
import type { Log } from '../client/log.ts';

export interface UnreadableOptions {
  /** For logs: a kind or a resource id. */
  readonly name: string;
  readonly log: Log;
  /** Nothing of the objects may be logged. */
  readonly confidential?: true;
}

/** Lines after one revision that are asked for again. */
const MOST_LINES = 10;

/** What cannot be read of a collection: all of it is counted, and the first is logged. */
export class Unreadable {
  count = 0;
  private readonly options: UnreadableOptions;
  /** Of lines that were not events, all after the same revision. */
  private version: string | undefined;
  private readonly digests = new Set<string>();

  constructor(options: UnreadableOptions) {
    this.options = options;
  }

  add(what: unknown): void {
    if (this.count++ > 0) return;
    const text = typeof what === 'string' ? what : (JSON.stringify(what) ?? '');
    const { name, log, confidential } = this.options;
    log.warn('Skipped an unreadable object; further ones are only counted', {
      kind: name,
      ...(!confidential && { object: text.slice(0, 200) }),
    });
  }

  /**
   * A line of the watch that is not an event. It may have been garbled in transit: throws to have it sent again. If it
   * comes back the same, it is skipped.
   */
  addLine(line: string, version: string | undefined): void {
    if (this.version !== version) {
      this.version = version;
      this.digests.clear();
    }
    const digest = createHash('sha256').update(line).digest('base64');
    if (this.digests.has(digest) || this.digests.size >= MOST_LINES) return this.add(line);
    this.digests.add(digest);
    throw new ApiError('a line of the watch is not an event', { code: 0, reason: 'Garbled', retryable: true });
  }
}
