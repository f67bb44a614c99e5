import { isIP } from 'node:net';
import { EtcdError } from './error.ts';

/** How to reach an etcd. Plain data; files are named, and read for each connection: they change. */
export interface EtcdAccess {
  /** `https://host:port` or `http://host:port`: members of one cluster. */
  readonly endpoints: readonly string[];
  /** Path of the certificates of authorities, PEM. Absent: those of the system. */
  readonly caFile?: string;
  /** Paths of the client certificate with its intermediates, and its key, PEM. */
  readonly certificate?: { readonly certFile: string; readonly keyFile: string };
  /** Any server certificate will do. */
  readonly skipsVerification?: true;
  /** Addresses of hosts that are not looked up. */
  readonly hostAliases?: Readonly<Record<string, readonly string[]>>;
}

/** Something to connect to. */
export interface Target {
  /** For people. */
  readonly endpoint: string;
  /** As gRPC names addresses. */
  readonly address: string;
  /** What the server's certificate must be for. */
  readonly host: string;
  readonly authority: string;
  readonly isSecure: boolean;
}

/** Of one access; more are not tried. */
const MOST_TARGETS = 64;

const DEFAULT_PORT = '2379';

/** In the order of the endpoints. Throws {@link EtcdError}. */
export function targetsOf({ endpoints, hostAliases = {} }: EtcdAccess): readonly Target[] {
  const targets = endpoints.flatMap((endpoint) => {
    const [, scheme, shown = '', port = DEFAULT_PORT] =
      /^(https?):\/\/(\[[\da-fA-F:.]+\]|[^\s/?#@:[\]]+)(?::(\d{1,5}))?\/?$/.exec(endpoint) ?? [];
    if (scheme === undefined)
      throw new EtcdError('Misconfigured', `endpoint ${JSON.stringify(endpoint)} is not of the form https://host:port`);
    const host = shown.replace(/^\[(.*)\]$/, '$1');
    const addresses = Object.hasOwn(hostAliases, host) ? (hostAliases[host] ?? []) : [host];
    if (addresses.length === 0)
      throw new EtcdError(
        'Misconfigured',
        `endpoint ${JSON.stringify(endpoint)}: its host has no address in hostAliases`,
      );
    return addresses.map((address) => ({
      endpoint: address === host ? endpoint : `${endpoint} (${address})`,
      address: addressOf(address, port),
      host,
      authority: `${shown}:${port}`,
      isSecure: scheme === 'https',
    }));
  });
  if (targets.length === 0) throw new EtcdError('Misconfigured', 'there are no endpoints');
  return targets.slice(0, MOST_TARGETS);
}

function addressOf(host: string, port: string): string {
  switch (isIP(host)) {
    case 4:
      return `ipv4:${host}:${port}`;
    case 6:
      return `ipv6:[${host}]:${port}`;
    default:
      return `dns:${host}:${port}`;
  }
}
