import { BlockList, isIP } from 'node:net';

type Environment = Readonly<Record<string, string | undefined>>;

/** An environment variable with an unusable value. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

/**
 * The proxy that the environment names for a server, or undefined for none. The rules are those of kubectl and all Go
 * programs: golang.org/x/net/http/httpproxy. Throws a {@link ProxyError} if the proxy is not a URL.
 */
export function proxyFor(server: string, env: Environment): string | undefined {
  const { protocol, hostname, port } = new URL(server);
  const secure = protocol === 'https:';
  const names = secure ? ['HTTPS_PROXY', 'https_proxy'] : ['HTTP_PROXY', 'http_proxy'];
  const variable = names.find((name) => (env[name] ?? '') !== '');
  if (variable === undefined) return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  const exceptions = env['NO_PROXY'] || env['no_proxy'] || '';
  if (isExcepted(host, Number(port) || (secure ? 443 : 80), exceptions)) return undefined;
  const value = env[variable]!;
  const proxy = value.includes('://') ? value : `http://${value}`;
  if (!isProxy(proxy)) throw new ProxyError(`${variable} is not the URL of an HTTP or SOCKS proxy`);
  return proxy;
}

/** Whether requests can be sent through it. */
export function isProxy(url: string): boolean {
  return URL.canParse(url) && /^(https?|socks5h?):$/.test(new URL(url).protocol) && new URL(url).hostname !== '';
}

function isExcepted(host: string, port: number, exceptions: string): boolean {
  const family = isIP(host);
  if (host === 'localhost' || (family === 4 && host.startsWith('127.')) || host === '::1') return true;
  return exceptions
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && matches(entry, host.toLowerCase(), family, port));
}

function matches(entry: string, host: string, family: number, port: number): boolean {
  if (entry === '*') return true;
  const [address = '', bits] = entry.split('/');
  if (bits !== undefined) return family > 0 && isIP(address) === family && inNetwork(host, address, bits, family);
  const [, bracketed, plain = entry, ofPort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? [];
  if (ofPort !== undefined && Number(ofPort) !== port) return false;
  const name = bracketed ?? plain;
  if (isIP(name) > 0) return isIP(name) === family && inNetwork(host, name, isIP(name) === 4 ? '32' : '128', family);
  // `*.example.com` and `.example.com`: subdomains only.
  const below = name.replace(/^\*/, '');
  return below.startsWith('.') ? host.endsWith(below) : host === below || host.endsWith(`.${below}`);
}

function inNetwork(host: string, network: string, bits: string, family: number): boolean {
  const longest = family === 4 ? 32 : 128;
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > longest) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  list.addSubnet(network, Number(bits), type);
  return list.check(host, type);
}
