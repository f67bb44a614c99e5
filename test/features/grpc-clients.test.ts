import { type Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { callEcho, type EchoServer, startEcho } from '../peers/echo.ts';
import { conditions } from './conditions.ts';
import { dial } from './grpc-library.ts';
import { destinationRule, object, pod, target, virtualService } from './objects.ts';
import type { Program } from './program.ts';
import { Cluster } from './sources.ts';

/** gRPC's own clients, without an Envoy: the library for Node dials a service with two Pods. */

const echo = object('v1', 'Service', 'echo', {
  spec: { clusterIP: '10.96.0.1', ports: [{ name: 'grpc', port: 9000 }], selector: { app: 'echo' } },
});
const versions = destinationRule('echo', {
  host: 'echo',
  subsets: ['v1', 'v2'].map((version) => ({ name: version, labels: { version } })),
});
const to = (version: string) => ({ route: [{ destination: { host: 'echo', subset: version } }] });
const routes = (...http: readonly object[]) => virtualService('echo', { hosts: ['echo'], http });

/** Each Pod has a port of its own. */
function slice(name: string, ip: string, port: number): KubernetesObject {
  const { metadata, ...rest } = object('discovery.k8s.io/v1', 'EndpointSlice', name, {
    addressType: 'IPv4',
    ports: [{ name: 'grpc', port }],
    endpoints: [{ ...target(name, ip), conditions: { ready: true } }],
  });
  return { ...rest, metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'echo' } } };
}

let one: EchoServer;
let two: EchoServer;
let first: KubernetesObject;
let second: KubernetesObject;

beforeAll(async () => {
  [one, two] = await Promise.all([startEcho('one', '127.0.0.1'), startEcho('two', '127.0.0.2')]);
  first = slice('echo-1', '127.0.0.1', one.port);
  second = slice('echo-2', '127.0.0.2', two.port);
});

afterAll(() => {
  one.stop();
  two.stop();
});

interface Served {
  readonly cluster: Cluster;
  readonly program: Program;
  readonly dial: (name: string) => Client;
}

async function serve(...objects: readonly KubernetesObject[]): Promise<Served> {
  const cluster = await Cluster.create();
  const pods = [
    pod('echo-1', '127.0.0.1', { app: 'echo', version: 'v1' }),
    pod('echo-2', '127.0.0.2', { app: 'echo', version: 'v2' }),
  ];
  await cluster.apply(echo, ...pods, ...objects);
  const program = await cluster.start();
  await program.logged('Ready');
  const port = program.serving.ports.grpc!;
  return { cluster, program, dial: (name) => dial(name, { port }) };
}

const codeOf = (call: Promise<string>): Promise<number | string> => call.catch((error: ServiceError) => error.code);

test.each(['echo:9000', 'echo.shop:9000', 'echo.shop.svc:9000', 'echo.shop.svc.cluster.local:9000'])(
  'dials %s, and follows endpoints',
  async (name) => {
    const { cluster, program, dial } = await serve(first);
    const client = dial(name);
    expect(await callEcho(client)).toBe('one');
    await cluster.apply(second);
    await cluster.delete(first);
    await expect.poll(() => callEcho(client)).toBe('two');
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  },
);

test('routes by headers, and routes are programmed when it has acknowledged them', async () => {
  const byHeader = { match: [{ headers: { version: { exact: 'two' } } }], ...to('v2') };
  const { cluster, dial } = await serve(first, second, versions, routes(byHeader, to('v1')));
  const client = dial('echo:9000');
  expect(await callEcho(client)).toBe('one');
  const metadata = new Metadata();
  metadata.set('version', 'two');
  expect(await callEcho(client, metadata)).toBe('two');
  const changed = routes(to('v2'));
  await cluster.apply(changed);
  await cluster.changed(() => {
    const { generation } = cluster.object(changed).metadata;
    const message = 'Acknowledged by the proxy that it concerns.';
    expect(conditions(cluster, changed)['Programmed']).toMatchObject({ observedGeneration: generation, message });
  });
  expect(await callEcho(client)).toBe('two');
});

test('aborts calls where a fault says so, and fails those without a valid destination', async () => {
  const off = { match: [{ uri: { prefix: '/test.Off/' } }], ...to('v1') };
  const abort = { grpcStatus: 'DATA_LOSS', percentage: { value: 100 } };
  const old = { match: [{ uri: { prefix: '/test.Old/' } }], redirect: { uri: '/test.Echo/' } };
  const lost = { match: [{ uri: { prefix: '/test.Lost/' } }], route: [{ destination: { host: 'nowhere' } }] };
  const { dial } = await serve(first, versions, routes({ ...off, fault: { abort } }, old, lost, to('v1')));
  const client = dial('echo:9000');
  expect(await callEcho(client)).toBe('one');
  expect(await codeOf(callEcho(client, undefined, '/test.Off/Say'))).toBe(status.DATA_LOSS);
  expect(await codeOf(callEcho(client, undefined, '/test.Old/Say'))).toBe(status.UNAVAILABLE);
  expect(await codeOf(callEcho(client, undefined, '/test.Lost/Say'))).toBe(status.UNAVAILABLE);
});

test('ends calls that take longer than the timeout of their route', async () => {
  const slow = { delay: { fixedDelay: '60s', percentage: { value: 100 } } };
  const { dial } = await serve(first, versions, routes({ ...to('v1'), timeout: '0.1s', fault: slow }));
  expect(await codeOf(callEcho(dial('echo:9000')))).toBe(status.DEADLINE_EXCEEDED);
});

test('sends nothing in plaintext where a rule asks for TLS that it cannot speak', async () => {
  const tls = destinationRule('echo', { host: 'echo', trafficPolicy: { tls: { mode: 'SIMPLE' } } });
  const { cluster, dial } = await serve(first, tls);
  const client = dial('echo:9000');
  expect(await codeOf(callEcho(client))).toBe(status.UNAVAILABLE);
  await cluster.delete(tls);
  await expect.poll(() => codeOf(callEcho(client))).toBe('one');
});

test('calls with the same value of a header reach the same Pod', async () => {
  const hash = { loadBalancer: { consistentHash: { httpHeaderName: 'user' } } };
  const { dial } = await serve(first, second, destinationRule('echo', { host: 'echo', trafficPolicy: hash }));
  const client = dial('echo:9000');
  const reached = async (user: string): Promise<string> => {
    const metadata = new Metadata();
    metadata.set('user', user);
    return callEcho(client, metadata);
  };
  const users = Array.from({ length: 20 }, (_, i) => `user-${i}`);
  const before = await Promise.all(users.map(reached));
  expect(new Set(before)).toEqual(new Set(['one', 'two']));
  expect(await Promise.all(users.map(reached))).toEqual(before);
});
