import { lookup as lookUp, type LookupAddress, type LookupOptions } from 'node:dns';
import { type IncomingMessage, get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { isIP } from 'node:net';
import type { AllowedAddresses } from './addresses.ts';

/** Why a URL could not be fetched, in the words of its owner. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
}

export interface FetchOptions {
  readonly allowed: AllowedAddresses;
  readonly mostBytes: number;
  /** Ends the fetch, also while it waits or follows redirects. */
  readonly signal: AbortSignal;
}

const mostRedirects = 3;

/** The text at a URL. Addresses are checked when they are connected to, so that neither DNS nor a redirect escapes. */
export async function fetchText(url: string, options: FetchOptions, redirects = 0): Promise<string> {
  const target = new URL(url);
  if (target.protocol !== 'http:' && target.protocol !== 'https:')
    throw new FetchError(`${target.protocol}// URLs are not fetched`);
  const host = target.hostname.replace(/^\[|\]$/g, '');
  // A host that is an address is connected to without a lookup.
  if (isIP(host) !== 0 && !options.allowed.has(host)) throw notAllowed(host);
  const response = await request(target, options);
  const { statusCode = 0, headers } = response;
  if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
    response.destroy();
    if (redirects >= mostRedirects) throw new FetchError(`more than ${mostRedirects} redirects`);
    return fetchText(redirected(target, headers.location), options, redirects + 1);
  }
  if (statusCode !== 200) {
    response.destroy();
    throw new FetchError(`HTTP status ${statusCode}`);
  }
  return body(response, options.mostBytes);
}

/** Where a redirect leads. Whoever asks for keys by TLS does not get them without. */
export function redirected(from: URL, location: string): string {
  if (!URL.canParse(location, from.href)) throw new FetchError('a redirect to something that is not a URL');
  const to = new URL(location, from);
  if (from.protocol === 'https:' && to.protocol === 'http:') throw new FetchError('a redirect from https to http');
  return to.href;
}

function notAllowed(address: string): FetchError {
  return new FetchError(
    `${address} is not a public address; if it is to be called, add its range to the setting jwks-allowed-networks`,
  );
}

function request(url: URL, { allowed, signal }: FetchOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const get = url.protocol === 'https:' ? getHttps : getHttp;
    const headers = { accept: 'application/json', 'user-agent': 'fairlead' };
    get(url, { signal, agent: false, headers, lookup: checkedLookup(allowed) }, resolve).on('error', reject);
  });
}

type LookupCallback = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/** DNS, without the addresses that may not be called. */
function checkedLookup(allowed: AllowedAddresses) {
  return (host: string, options: LookupOptions, callback: LookupCallback): void => {
    lookUp(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '');
      const usable = addresses.filter(({ address }) => allowed.has(address));
      const [first] = usable;
      if (first === undefined) return callback(notAllowed(addresses[0]?.address ?? host), '');
      if (options.all === true) callback(null, usable);
      else callback(null, first.address, first.family);
    });
  };
}

async function body(response: IncomingMessage, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > mostBytes) {
      response.destroy();
      throw new FetchError(`the answer is longer than ${mostBytes / 1024} KiB`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
