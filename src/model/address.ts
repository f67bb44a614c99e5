import { isIP } from 'node:net';

/** An IP address that Envoy takes: one without a zone. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/** One text for each address: IPv6 can be written in many ways. Anything else stays as it is. */
export function canonicalAddress(text: string): string {
  return isIP(text) === 6 && isAddress(text) ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
}

/** Of Envoy and Istio's agent in each Pod: the admin interface, metrics, health. */
const FIRST_PROXY_PORT = 15_000;
const LAST_PROXY_PORT = 15_099;

/**
 * Whether whoever connects there meets its own proxy or agent, or could: a unix socket, or one of their ports at loopback
 * (the unspecified address, which Linux takes for it, or a name for it).
 */
export function isOwnProxy(address: string, ports: readonly number[]): boolean {
  if (/^(unix:\/\/|[/@])/.test(address)) return true;
  return isLoopback(address) && ports.some((port) => port >= FIRST_PROXY_PORT && port <= LAST_PROXY_PORT);
}

function isLoopback(address: string): boolean {
  if (/^(.+\.)?localhost\.?$/i.test(address)) return true;
  if (isIP(address) === 4) return /^(127|0)\./.test(address);
  return /^::(1|ffff:(7f[\da-f]{2}|0):[\da-f]+)?$/.test(canonicalAddress(address));
}

/** `unix:///var/run/x.sock` */
export function isSocket(address: string): boolean {
  return address.startsWith('unix://');
}
