import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { any, createProtos, typeUrl } from '../../src/envoy/encode/proto.ts';

const protos = createProtos();

/** An EDS cluster, as small as it gets. */
export function cluster(name: string, more: object = {}): Uint8Array {
  return protos.encode(types.cluster, {
    name,
    type: 'EDS',
    connectTimeout: { seconds: '1' },
    edsClusterConfig: { edsConfig: { ads: {}, resourceApiVersion: 'V3' } },
    ...more,
  });
}

export function assignment(name: string, ports: readonly number[], address = '127.0.0.1'): Uint8Array {
  return protos.encode(types.endpoint, {
    clusterName: name,
    endpoints: [
      {
        lbEndpoints: ports.map((portValue) => ({
          endpoint: { address: { socketAddress: { address, portValue } } },
        })),
      },
    ],
  });
}

/** All requests to one cluster. */
export function table(name: string, to: string, more: object = {}): { content: Uint8Array; clusters: string[] } {
  const content = protos.encode(types.route, {
    name,
    virtualHosts: [
      { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: to } }], ...more },
    ],
  });
  return { content, clusters: [to] };
}

export function listener(name: string, port: number, tableName: string): Uint8Array {
  return listenerWith(name, port, {
    rds: { routeConfigName: tableName, configSource: { ads: {}, resourceApiVersion: 'V3' } },
  });
}

/** With all requests to one cluster, and no table. */
export function inlineListener(name: string, port: number, to: string): { content: Uint8Array; clusters: string[] } {
  const routes = [{ match: { prefix: '/' }, route: { cluster: to } }];
  const content = listenerWith(name, port, {
    routeConfig: { name: 'inline', virtualHosts: [{ name: 'all', domains: ['*'], routes }] },
  });
  return { content, clusters: [to] };
}

/** Connections to a range of addresses to one cluster; what begins like HTTP, wherever it goes, to another. */
export function rangeListener(
  name: string,
  port: number,
  { range, ranged, http }: { readonly range: string; readonly ranged: string; readonly http: string },
): { content: Uint8Array; clusters: string[] } {
  const routes = [{ match: { prefix: '/' }, route: { cluster: http } }];
  const manager = httpManager(name, {
    routeConfig: { name: 'inline', virtualHosts: [{ name: 'all', domains: ['*'], routes }] },
  });
  const proxy = any(types.tcpProxy, { statPrefix: name, cluster: ranged });
  const [addressPrefix = '', length] = range.split('/');
  const content = protos.encode(types.listener, {
    name,
    address: { socketAddress: { address: '127.0.0.1', portValue: port } },
    listenerFilters: [{ name: 'envoy.filters.listener.http_inspector', typedConfig: any(types.httpInspector, {}) }],
    filterChains: [
      {
        name: 'ranged',
        filterChainMatch: { prefixRanges: [{ addressPrefix, prefixLen: { value: Number(length) } }] },
        filters: [{ name: 'envoy.filters.network.tcp_proxy', typedConfig: proxy }],
      },
      {
        name: 'http',
        filterChainMatch: { transportProtocol: 'raw_buffer', applicationProtocols: ['http/1.1', 'h2c'] },
        filters: [{ name: 'envoy.filters.network.http_connection_manager', typedConfig: manager }],
      },
    ],
  });
  return { content, clusters: [ranged, http] };
}

/** At an address that is none. */
export function misplacedListener(name: string): Uint8Array {
  return protos.encode(types.listener, {
    name,
    address: { socketAddress: { address: 'nonsense', portValue: 1 } },
    filterChains: [{ filters: [] }],
  });
}

function httpManager(name: string, routing: object) {
  return any(types.httpConnectionManager, {
    statPrefix: name,
    ...routing,
    httpFilters: [
      {
        name: 'envoy.filters.http.router',
        typedConfig: { typeUrl: typeUrl('envoy.extensions.filters.http.router.v3.Router'), value: new Uint8Array() },
      },
    ],
  });
}

export function listenerWith(name: string, port: number, routing: object, more: object = {}): Uint8Array {
  const manager = httpManager(name, routing);
  return protos.encode(types.listener, {
    name,
    address: { socketAddress: { address: '127.0.0.1', portValue: port } },
    filterChains: [{ filters: [{ name: 'envoy.filters.network.http_connection_manager', typedConfig: manager }] }],
    ...more,
  });
}

export interface BackEnd {
  readonly port: number;
  stop(): Promise<void>;
}

/** Answers every request with its name. */
export async function startBackEnd(name: string): Promise<BackEnd> {
  const server: Server = createServer((_, response) => response.end(name));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
