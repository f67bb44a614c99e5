import { isIP } from 'node:net';

/** An IP address that Envoy takes: one without a zone. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/** One text for each address: IPv6 can be written in many ways. Anything else stays as it is. */
export function canonicalAddress(text: string): string {
  return isIP(text) === 6 && isAddress(text) ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
}
