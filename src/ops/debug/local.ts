import { isIP } from 'node:net';
import type { Answer, Route } from '../http-server.ts';

/**
 * Not everybody who can reach the port may see config and workload addresses, so requests must come from this machine.
 * `kubectl port-forward` does, but so does a browser, in which any page may point its own name at this address: only
 * `localhost` and IP addresses are accepted as the host.
 */
export function loopbackOnly(route: Route): Route {
  return (request) => {
    if (!isLoopback(request.remoteAddress))
      return refusal(401, 'debug pages are served to this machine only; use kubectl port-forward');
    if (!namesThisMachine(request.host))
      return refusal(403, 'debug pages are served only under localhost or an IP address');
    return route(request);
  };
}

export function refusal(status: number, text: string): Answer & { readonly body: string } {
  return { status, type: 'text/plain', body: `${text}\n` };
}

/** Whether a connection from this address comes from this machine. */
export function isLoopback(address: string): boolean {
  const v4 = address.replace(/^::ffff:/, '');
  return v4 === '::1' || /^127\.\d+\.\d+\.\d+$/.test(v4);
}

/** The header may be absent: only browsers are sure to send it. */
function namesThisMachine(host: string): boolean {
  const [, v6, name = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  if (v6 !== undefined) return isIP(v6) === 6;
  return host === '' || isIP(name) === 4 || /^localhost\.?$/i.test(name);
}
