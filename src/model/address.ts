import { isIP } from 'node:net';

/** An IP address that Envoy takes: one without a zone. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/** One text for each address: IPv6 can be written in many ways. Anything else stays as it is. */
export function canonicalAddress(text: string): string {
  return isIP(text) === 6 && isAddress(text) ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
}

/**
 * Whether an endpoint of this address is in the Pod of whoever connects to it: loopback, the unspecified address (which
 * Linux takes for loopback), a name for it, or a unix socket.
 */
export function isInOwnPod(address: string): boolean {
  if (/^(unix:\/\/|[/@])/.test(address) || /^(.+\.)?localhost\.?$/i.test(address)) return true;
  if (isIP(address) === 4) return /^(127|0)\./.test(address);
  return /^::(1|ffff:(7f[\da-f]{2}|0):[\da-f]+)?$/.test(canonicalAddress(address));
}
