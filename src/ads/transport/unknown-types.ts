import type { AdsLog } from './server-options.ts';

/** Unsupported type URLs to warn about, once each; further ones are ignored. */
const MOST = 64;

/** Types that clients have asked for in vain. */
export class UnknownTypes {
  readonly #log: AdsLog;
  readonly #known = new Set<string>();

  constructor(log: AdsLog) {
    this.#log = log;
  }

  warn(typeUrl: string): void {
    if (this.#known.has(typeUrl) || this.#known.size >= MOST) return;
    this.#known.add(typeUrl);
    this.#log.warn('Proxy requested an unsupported resource type', { typeUrl: typeUrl.slice(0, 256) });
  }
}
