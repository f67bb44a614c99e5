import type { ApiError } from './api-error.ts';
import { TOO_LARGE } from './body.ts';
import type { Log } from './log.ts';

/**
 * Says each trouble with the API server once when it begins and once when it is over, however many kinds have it and
 * however often it is tried again.
 */
export class Outages {
  private readonly log: Log;
  /** Trouble -> who has it. */
  private readonly open = new Map<string, Set<string>>();

  constructor(log: Log) {
    this.log = log;
  }

  begin(who: string, error: ApiError): void {
    const trouble = troubleOf(error);
    if (this.open.get(trouble)?.has(who) === true) return;
    this.end(who, trouble);
    const having = this.open.get(trouble);
    if (having !== undefined) {
      having.add(who);
      return;
    }
    this.open.set(trouble, new Set([who]));
    this.log.warn(`API server: ${trouble}, trying again until it works`, { who, err: error });
  }

  /** `who` has no trouble any more, or another one than before. */
  end(who: string, unless = ''): void {
    for (const [trouble, having] of this.open) {
      if (trouble === unless || !having.delete(who) || having.size > 0) continue;
      this.open.delete(trouble);
      if (unless === '') this.log.info(`API server: no longer ${trouble}`, { who });
    }
  }
}

function troubleOf({ code, reason }: ApiError): string {
  if (reason === 'NoCredentials') return 'credentials unreadable';
  if (reason === 'Garbled') return 'sending what is no event';
  if (reason === TOO_LARGE) return 'sending more than can be read';
  if (reason === 'SinkFailed') return 'sending what we fail on';
  if (code === 0) return 'unreachable';
  if (code === 401) return 'refusing the credentials';
  if (code === 403) return 'denying access';
  if (code === 429 || code >= 500) return 'unavailable';
  return `answering ${code} ${reason}`;
}
