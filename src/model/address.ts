import { isIP } from 'node:net';

/** An IP address that Envoy accepts: one without a zone. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/** One text per address, because IPv6 addresses can be written in many ways. Other text stays as it is. */
export function canonicalAddress(text: string): string {
  return isIP(text) === 6 && isAddress(text) ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
}

/** Ports of Envoy and Istio's agent in each Pod: admin interface, metrics, health. */
const FIRST_PROXY_PORT = 15_000;
const LAST_PROXY_PORT = 15_099;

/**
 * Whether a client that connects there reaches, or could reach, its own proxy or agent: a unix socket, or one of their
 * ports on loopback (or on the unspecified address, which Linux treats as loopback, or a name for it).
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
