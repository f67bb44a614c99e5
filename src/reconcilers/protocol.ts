import type { Protocol } from '../model/service.ts';

const NAMES: Readonly<Record<string, Protocol>> = {
  tcp: 'TCP',
  udp: 'UDP',
  grpc: 'GRPC',
  'grpc-web': 'GRPCWeb',
  http: 'HTTP',
  http_proxy: 'HTTP_PROXY',
  http2: 'HTTP2',
  https: 'HTTPS',
  tls: 'TLS',
  mongo: 'Mongo',
  redis: 'Redis',
  mysql: 'MySQL',
};

const APP_PROTOCOLS: Readonly<Record<string, Protocol>> = {
  'kubernetes.io/h2c': 'HTTP2',
  'kubernetes.io/ws': 'HTTP',
  'kubernetes.io/wss': 'HTTPS',
};

/** Ports of protocols where the server speaks first, so that sniffing would wait forever. */
const SERVER_FIRST: ReadonlySet<number> = new Set([25, 53, 3306, 27017]);

/** Protocol in the `protocol` field of a ServiceEntry, Gateway or Sidecar port; unknown ones are sniffed. */
export function parseProtocol(text: string): Protocol {
  const lower = text.toLowerCase();
  if (lower.startsWith('grpc-web')) return 'GRPCWeb';
  return Object.hasOwn(NAMES, lower) ? NAMES[lower]! : 'Unsupported';
}

/** Protocol of a Service port: by transport, then `appProtocol`, then the part of its name before the first dash. */
export function servicePortProtocol(port: {
  readonly port: number;
  readonly name?: string;
  readonly protocol?: string;
  readonly appProtocol?: string;
}): Protocol {
  if (port.protocol === 'UDP') return 'UDP';
  const named = port.appProtocol ?? port.name ?? '';
  if (port.appProtocol !== undefined && Object.hasOwn(APP_PROTOCOLS, port.appProtocol))
    return APP_PROTOCOLS[port.appProtocol]!;
  const lower = named.toLowerCase();
  if (lower.startsWith('grpc-web')) return 'GRPCWeb';
  const prefix = parseProtocol(lower.split('-', 1)[0]!);
  if (prefix !== 'Unsupported') return prefix;
  return SERVER_FIRST.has(port.port) ? 'TCP' : 'Unsupported';
}
