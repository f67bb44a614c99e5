import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { any, createProtos, typeUrl } from '../../src/envoy/encode/proto.ts';
import { callEcho, type EchoServer, startEcho } from '../peers/echo.ts';
import { CDS, EDS, LDS, RDS, ServedMesh } from './served-mesh.ts';

/** An xDS client that shares no code and no habits with Envoy: gRPC's own, state of the world, names only. */

const protos = createProtos();

const listener = protos.encode(types.listener, {
  name: 'echo',
  apiListener: {
    apiListener: any(types.httpConnectionManager, {
      rds: { routeConfigName: 'echo-routes', configSource: { ads: {}, resourceApiVersion: 'V3' } },
      httpFilters: [
        {
          name: 'router',
          typedConfig: { typeUrl: typeUrl('envoy.extensions.filters.http.router.v3.Router'), value: new Uint8Array() },
        },
      ],
    }),
  },
});

const table = (cluster: string): { content: Uint8Array; clusters: string[] } => ({
  content: protos.encode(types.route, {
    name: 'echo-routes',
    virtualHosts: [{ name: 'v', domains: ['echo'], routes: [{ match: { prefix: '' }, route: { cluster } }] }],
  }),
  clusters: [cluster],
});

const cluster = (name: string, more: object = {}): Uint8Array =>
  protos.encode(types.cluster, {
    name,
    type: 'EDS',
    edsClusterConfig: { edsConfig: { ads: {}, resourceApiVersion: 'V3' } },
    lbPolicy: 'ROUND_ROBIN',
    ...more,
  });

const assignment = (clusterName: string, portValue: number): Uint8Array =>
  protos.encode(types.endpoint, {
    clusterName,
    endpoints: [
      {
        locality: { region: 'r', zone: 'z', subZone: 's' },
        loadBalancingWeight: { value: 1 },
        lbEndpoints: [{ endpoint: { address: { socketAddress: { address: '127.0.0.1', portValue } } } }],
      },
    ],
  });

let mesh: ServedMesh;
let client: Client;
let one: EchoServer;
let two: EchoServer;

beforeAll(async () => {
  mesh = await ServedMesh.start({ times: { lingerMs: 20 }, tickMs: 10 });
  [one, two] = await Promise.all([startEcho('one'), startEcho('two')]);
  process.env['GRPC_XDS_BOOTSTRAP_CONFIG'] = JSON.stringify({
    xds_servers: [
      {
        server_uri: `127.0.0.1:${mesh.server.port}`,
        channel_creds: [{ type: 'insecure' }],
        server_features: ['xds_v3'],
      },
    ],
    node: { id: 'grpc-client', locality: { region: 'r', zone: 'z', sub_zone: 's' } },
  });
  const { register } = await import('@grpc/grpc-js-xds');
  register();
  mesh.publish({
    [LDS]: { echo: listener },
    [RDS]: { 'echo-routes': table('a') },
    [CDS]: { a: cluster('a') },
    [EDS]: { a: assignment('a', one.port) },
  });
  client = new Client('xds:///echo', credentials.createInsecure());
});

afterAll(async () => {
  client.close();
  one.stop();
  two.stop();
  await mesh.stop();
});

const say = (): Promise<string> => callEcho(client);

test('gRPC finds its back end, follows endpoints and routes, and keeps what works when it rejects something', async () => {
  expect(await say()).toBe('one');
  mesh.publish({ [EDS]: { a: assignment('a', two.port) } });
  await expect.poll(say, { timeout: 5_000 }).toBe('two');
  mesh.publish({
    [CDS]: { b: cluster('b') },
    [EDS]: { b: assignment('b', one.port) },
    [RDS]: { 'echo-routes': table('b') },
  });
  await expect.poll(say, { timeout: 5_000 }).toBe('one');
  mesh.publish({ [CDS]: { b: cluster('b', { lbPolicy: 'MAGLEV' }) } });
  await expect.poll(() => mesh.rejections.map(({ typeUrl: url, name }) => [url, name])).toEqual([[CDS, 'b']]);
  expect(await say()).toBe('one');
  mesh.publish({ [EDS]: { b: assignment('b', two.port) } });
  await expect.poll(say, { timeout: 5_000 }).toBe('two');
  expect(mesh.server.counts()).toMatchObject({ failures: 0, timeouts: 0 });
});
