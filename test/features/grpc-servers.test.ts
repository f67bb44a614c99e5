import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { freePort } from '../conformance/envoy-resources.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { callEcho } from '../peers/echo.ts';
import { type Authority, createAuthority } from '../peers/keys.ts';
import { conditions } from './conditions.ts';
import { explainAccess } from './explaining.ts';
import { type WorkloadFiles, dial, serveEcho } from './grpc-library.ts';
import { destinationRule, object, pod, target } from './objects.ts';
import type { Program } from './program.ts';
import { LDS } from './proxy.ts';
import { type SkippingClock, later } from './skipping-clock.ts';
import { Cluster } from './sources.ts';

/** gRPC servers without an Envoy: what they accept is decided by policies, which the library for Node enforces. */

const policy = (kind: string, name: string, spec: object) => ({
  ...object('security.istio.io/v1', kind, name, {}),
  spec,
});
const peers = (mode: string) => policy('PeerAuthentication', 'default', { mtls: { mode } });
const authorization = (name: string, spec: object) => policy('AuthorizationPolicy', name, spec);

interface Served {
  readonly cluster: Cluster;
  readonly program: Program;
  readonly clock: SkippingClock;
  /** Of the control plane. */
  readonly port: number;
  /** Of the server. */
  readonly serverPort: number;
}

/** Until the test is over. */
async function serve(labels: Readonly<Record<string, string>>, ...objects: readonly KubernetesObject[]) {
  const cluster = await Cluster.create();
  const serverPort = await freePort();
  const ports = [{ name: 'grpc', port: 9000, targetPort: serverPort }];
  const { metadata, ...slice } = object('discovery.k8s.io/v1', 'EndpointSlice', 'echo', {
    addressType: 'IPv4',
    ports: [{ name: 'grpc', port: serverPort }],
    endpoints: [{ ...target('echo-1', '127.0.0.1'), conditions: { ready: true } }],
  });
  const echo = pod('echo-1', '127.0.0.1', { app: 'echo', ...labels });
  const annotations = { 'inject.istio.io/templates': 'grpc-agent' };
  await cluster.apply(
    object('v1', 'Service', 'echo', { spec: { clusterIP: '10.96.0.1', ports, selector: { app: 'echo' } } }),
    { ...echo, metadata: { ...echo.metadata, annotations } },
    { ...slice, metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'echo' } } },
    ...objects,
  );
  const program = await cluster.start();
  await program.logged('Ready');
  const { clock, serving } = program;
  return { cluster, program, clock, port: serving.ports.grpc!, serverPort } satisfies Served;
}

function plainClient(port: number): Client {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  onTestFinished(() => client.close());
  return client;
}

async function filesOf(authority: Authority, account: string): Promise<WorkloadFiles> {
  const directory = await temporaryDirectory();
  const { certificate, key } = await authority.workload(`spiffe://cluster.local/ns/shop/sa/${account}`);
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  return {
    certificate: await write('tls.crt', certificate),
    key: await write('tls.key', key),
    roots: await write('ca.crt', authority.certificate),
  };
}

const codeOf = (call: Promise<string>): Promise<number | string> => call.catch((error: ServiceError) => error.code);

/** What `explain access` says of a call. */
async function explained({ cluster }: Served, ...args: readonly string[]): Promise<string> {
  const call = ['--to', 'shop/echo-1', '--method', 'POST', '--path', '/test.Echo/Say'];
  const { out } = await explainAccess(['--kubeconfig', cluster.kubeconfig], ...call, ...args);
  expect(out).toContain('judging it as a gRPC server');
  return out;
}

test('a server serves once it has its listener, and refuses what policies deny', async () => {
  const deny = { action: 'DENY', rules: [{ when: [{ key: 'request.headers[x-bad]', values: ['1'] }] }] };
  const served = await serve({}, authorization('deny', deny));
  const { cluster, port, serverPort } = served;
  await serveEcho('one', serverPort, { port, workload: 'echo-1.shop' });
  const client = dial('echo:9000', { port });
  expect(await callEcho(client)).toBe('one');
  expect(await explained(served)).toMatch(/^allowed: no policy denies it/);
  const bad = new Metadata();
  bad.set('x-bad', '1');
  expect(await codeOf(callEcho(client, bad))).toBe(status.PERMISSION_DENIED);
  expect(await explained(served, '--header', 'x-bad: 1')).toMatch(/^denied with 403: a rule denies it/);
  await cluster.apply(authorization('allow', { rules: [{ to: [{ operation: { paths: ['/test.Other/*'] } }] }] }));
  await expect.poll(() => codeOf(callEcho(client))).toBe(status.PERMISSION_DENIED);
});

test('a server refuses what a template of paths denies', async () => {
  const deny = (path: string) =>
    authorization('deny', { action: 'DENY', rules: [{ to: [{ operation: { paths: [path] } }] }] });
  const { cluster, port, serverPort } = await serve({}, deny('/other/{*}'));
  await serveEcho('one', serverPort, { port, workload: 'echo-1.shop' });
  const client = dial('echo:9000', { port });
  expect(await callEcho(client)).toBe('one');
  await cluster.apply(deny('/{*}/{*}'));
  await expect.poll(() => codeOf(callEcho(client))).toBe(status.PERMISSION_DENIED);
});

test('a server that says so speaks mutual TLS, and clients do where a rule asks for it', async () => {
  const mutual = destinationRule('echo', { host: 'echo', trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } });
  const allow = authorization('allow', {
    rules: [{ from: [{ source: { principals: ['cluster.local/ns/shop/sa/client'] } }] }],
  });
  const served = await serve({ 'security.istio.io/tlsMode': 'istio' }, mutual, allow);
  const { cluster, clock, port, serverPort } = served;
  const authority = await createAuthority();
  const [server, client, other] = await Promise.all(
    ['default', 'client', 'other'].map((account) => filesOf(authority, account)),
  );
  await serveEcho('one', serverPort, { port, workload: 'echo-1.shop', files: server });
  expect(await callEcho(dial('echo:9000', { port, files: client }))).toBe('one');
  expect(await codeOf(callEcho(dial('echo:9000', { port, workload: 'other.shop', files: other })))).toBe(
    status.PERMISSION_DENIED,
  );
  expect(await explained(served, '--from', 'shop/client')).toMatch(/^allowed: a rule allows it/);
  for (const from of ['shop/other', 'spiffe://elsewhere.example.com/ns/shop/sa/client'])
    expect(await explained(served, '--from', from)).toMatch(/^denied with 403: no rule/);
  expect(await codeOf(callEcho(plainClient(serverPort)))).toBe(status.UNAVAILABLE);
  expect(await explained(served)).toMatch(/^denied: the connection is closed: the port accepts only mutual TLS/);
  await cluster.apply(peers('DISABLE'));
  await cluster.delete(mutual, allow);
  await expect
    .poll(() => {
      // Former modes count until clients have followed.
      clock.skip(5_000);
      return codeOf(callEcho(plainClient(serverPort)));
    })
    .toBe('one');
});

test('a server verifies no tokens, and denies what a provider would be asked about', async () => {
  const jwt = policy('RequestAuthentication', 'jwt', { jwtRules: [{ issuer: 'issuer', jwks: '{"keys":[]}' }] });
  const ask = { action: 'CUSTOM', provider: { name: 'ask' }, rules: [{ to: [{ operation: { paths: ['/asked'] } }] }] };
  const served = await serve({}, jwt, authorization('ask', ask));
  const { cluster, port, serverPort } = served;
  await serveEcho('one', serverPort, { port, workload: 'echo-1.shop' });
  const client = dial('echo:9000', { port });
  const token = new Metadata();
  token.set('authorization', 'Bearer nonsense');
  expect(await callEcho(client, token)).toBe('one');
  expect(await explained(served, '--header', 'authorization: Bearer nonsense')).toMatch(/^allowed/);
  const everywhere = { ...ask, rules: [{}] };
  await cluster.apply(authorization('ask', everywhere));
  await expect.poll(() => codeOf(callEcho(client))).toBe(status.PERMISSION_DENIED);
  expect(await explained(served)).toMatch(/^denied with 403: a CUSTOM rule matches/);
  expect(await explained(served, '--port', '7')).toMatch(/^denied: .* the workload does not accept connections/);
});

/** Asks for its listener as a library does, and cannot read some of them. */
function fussyServer({ port, serverPort }: Served, cannotRead: string): void {
  const client = new XdsClient(port, true);
  onTestFinished(() => client.close());
  const name = `xds.istio.io/grpc/lds/inbound/0.0.0.0:${serverPort}`;
  const id = 'sidecar~127.0.0.1~echo-1.shop~shop.svc.cluster.local';
  client.send({ typeUrl: LDS, node: { id, generator: 'grpc' }, subscribe: [name] });
  const answer = async (): Promise<never> => {
    for (;;) {
      const { bodies, nonce } = await client.next(LDS);
      const isBad = [...bodies.values()].some((body) => body.includes(cannotRead));
      client.send({ typeUrl: LDS, nonce, ...(isBad && { error: `${name}: what is ${cannotRead}?` }) });
    }
  };
  answer().catch(() => undefined);
}

test.each([
  ['at Envoys that take it', true],
  ['where there is no Envoy', false],
])('a policy that only a library rejects stays in force %s', async (_, hasEnvoy) => {
  const deny = (path: string) =>
    authorization('deny', { action: 'DENY', rules: [{ to: [{ operation: { paths: [path] } }] }] });
  const [good, bad] = [deny('/good'), deny('/bad')];
  const served = await serve({}, good);
  const { cluster, program } = served;
  const envoy = hasEnvoy ? await program.connect(true) : undefined;
  fussyServer(served, '/bad');
  const programmed = (expected: object): Promise<void> =>
    later(program, () => conditions(cluster, good)['Programmed']).toMatchObject(expected);
  await programmed({ status: 'True', reason: 'Programmed' });
  await cluster.apply(bad);
  const message = expect.not.stringContaining('in force') as string;
  await programmed({ reason: 'Rejected', message });
  await envoy?.until((proxy) =>
    expect(Buffer.from(proxy.held(LDS).get('virtualInbound')!).includes('/bad')).toBe(true),
  );
});
