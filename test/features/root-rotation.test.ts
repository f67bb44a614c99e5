import { Metadata, credentials } from '@grpc/grpc-js';
import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import protobuf from 'protobufjs';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { readPem, writePem } from '../../src/identity/pem.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { type Response, XdsClient } from '../conformance/xds-client.ts';
import { signCertificate } from '../harness/secure-call.ts';
import { type Program, get } from './program.ts';
import { later } from './skipping-clock.ts';
import { SERVER, secureCluster, tokenOf } from './secure-cluster.ts';
import { type Cluster, SECRETS } from './sources.ts';

const NAMESPACE = 'istio-system';
const CONFIG_MAPS = '/api/v1/configmaps';
const PROXY_CONFIG = 'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig';
const [MINUTE, HOUR] = [60_000, 3_600_000];

const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

const secret = (name: string, entries: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: NAMESPACE },
  data: Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
});

/** Who signs for a service account at this replica, and the roots that come with it; or how it is refused. */
async function signed(program: Program, csr: string, seconds = 3600): Promise<string | string[]> {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${tokenOf('shop:default')}`);
  // For this client, which skips no time, certificates are not valid yet.
  const unchecked = credentials.createSsl(null, null, null, { rejectUnauthorized: false });
  const caller = { credentials: unchecked, name: SERVER, metadata };
  const chain = await signCertificate(program.serving.ports.secure!, caller, csr, seconds);
  if (typeof chain === 'string') return chain;
  return [new X509Certificate(chain[0]!).issuer, ...namesOf(pems(chain.at(-1)!))];
}

/** What `fairlead identity` prints. */
async function identity(made: Cluster): Promise<string> {
  let out = '';
  await runCli(['identity', '--kubeconfig', made.kubeconfig], {
    program: () => Promise.resolve(createProgram()),
    out: (text) => void (out += text),
    err: (text) => void (out += text),
    env: {},
    signal: new AbortController().signal,
  });
  return out;
}

/** An agent that asks for roots. */
function startAgent(program: Program) {
  const client = new XdsClient(program.serving.ports.grpc!, true);
  onTestFinished(() => client.close());
  client.send({ typeUrl: PROXY_CONFIG, node: { id: 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local' } });
  const next = async (): Promise<{ roots: string[]; ack: () => void }> => {
    const response = await client.next(PROXY_CONFIG);
    return { roots: rootsOf(response), ack: () => client.send({ typeUrl: PROXY_CONFIG, nonce: response.nonce }) };
  };
  return { client, next };
}

function rootsOf({ resources }: Response): string[] {
  const [bytes] = resources.values();
  const reader = protobuf.Reader.create(bytes!);
  const roots: string[] = [];
  while (reader.pos < reader.len) {
    expect(reader.uint32() >>> 3).toBe(34);
    roots.push(reader.string());
  }
  return roots;
}

const pems = (bundle: string): string[] => (readPem(bundle) ?? []).map(({ label, der }) => writePem(label, der));

/** Each root by its subject. */
const namesOf = (roots: readonly string[]): string[] => roots.map((root) => new X509Certificate(root).subject);

function configMap(made: Cluster, of: string) {
  const found = made.server.cluster.object(CONFIG_MAPS, of, 'istio-ca-root-cert') as
    | { readonly data: Record<string, string>; readonly metadata: { readonly annotations?: Record<string, string> } }
    | undefined;
  const report = JSON.parse(found?.metadata.annotations?.['fairlead/root-rotation'] ?? '{}') as {
    step?: string;
    waitingFor?: string;
  };
  return { roots: namesOf(pems(found?.data['root-cert.pem'] ?? '')), report };
}

/** A cluster whose CA somebody has plugged in. */
async function startRotating() {
  const made = await secureCluster();
  await made.apply(namespace(NAMESPACE), namespace('shop'));
  const plug = async (name: string): Promise<void> =>
    void made.server.cluster.apply(SECRETS, secret('cacerts', await selfSigned(name, new Date())));
  await plug('old');
  const csr = new OpenSsl().request('rsa:2048');
  return {
    made,
    plug,
    sign: (program: Program, seconds?: number) => signed(program, csr, seconds),
    start: async (identity?: string) => {
      const program = await made.start({}, identity);
      await program.logged('Signing certificates');
      return program;
    },
  };
}

test('another root is trusted by all before it signs, and the old one until what it signed has expired', async () => {
  const { made, plug, sign, start } = await startRotating();
  const program = await start();
  await expect.poll(() => configMap(made, 'shop').roots).toEqual(['O=old']);
  expect(await sign(program)).toEqual(['O=old', 'O=old']);
  const agent = startAgent(program);
  const first = await agent.next();
  expect(namesOf(first.roots)).toEqual(['O=old']);
  first.ack();

  await plug('new');
  program.clock.skip(2 * MINUTE);
  await program.logged('Root certificate added');
  const both = await agent.next();
  expect(namesOf(both.roots)).toEqual(['O=old', 'O=new']);
  await expect.poll(() => configMap(made, 'shop').roots).toEqual(['O=old', 'O=new']);
  expect(await sign(program)).toEqual(['O=old', 'O=old', 'O=new']);
  program.clock.skip(HOUR);
  await expect
    .poll(() => configMap(made, NAMESPACE).report)
    .toMatchObject({ step: 'Distributing', waitingFor: expect.stringContaining('1 proxy to') as string });
  expect(await sign(program)).toEqual(['O=old', 'O=old', 'O=new']);

  const told = await identity(made);
  expect(told.replace(/([0-9A-F]{2}:){31}[0-9A-F]{2}/g, 'SHA').replace(/\d{4}-\S+Z/g, 'TIME'))
    .toBe(`Distributing since TIME
Waiting for 1 proxy to acknowledge the roots, at most until TIME

signing   "O=old"
          SHA-256      SHA
          valid until  TIME
          trusted      since TIME
next      "O=new"
          SHA-256      SHA
          valid until  TIME
          trusted      since TIME
`);
  expect(told).toContain(new X509Certificate(both.roots[1]!).fingerprint256);

  both.ack();
  await later(program, () => sign(program)).toEqual(['O=new', 'O=new', 'O=old']);
  await program.logged('Root certificate is trusted by all proxies');
  await program.logged('Root certificate no longer signs');
  await expect
    .poll(() => configMap(made, NAMESPACE))
    .toMatchObject({ roots: ['O=new', 'O=old'], report: { step: 'Retiring' } });

  program.clock.skip(91 * 24 * HOUR);
  await later(program, () => configMap(made, 'shop').roots).toEqual(['O=new']);
  await program.logged('Root certificate dropped');
  await expect.poll(() => configMap(made, NAMESPACE).report).toMatchObject({ step: 'Stable' });
  const { body } = await get(program.serving.ports.monitoring, '/metrics');
  const expires = new X509Certificate(both.roots[1]!).validToDate.getTime() / 1000;
  for (const name of ['root_cert', 'cert_chain'])
    expect(body).toMatch(new RegExp(`^citadel_server_${name}_expiry_timestamp ${expires}$`, 'm'));
});

const distributing = ['O=old', 'O=old', 'O=new'];
const switched = ['O=new', 'O=new', 'O=old'];
const reported = (made: Cluster) => configMap(made, NAMESPACE).report;

test('a restart in the middle goes on from where it was', async () => {
  const { made, plug, sign, start } = await startRotating();
  const one = await start();
  await expect.poll(() => configMap(made, 'shop').roots).toEqual(['O=old']);
  await plug('new');
  await later(one, () => reported(made)).toMatchObject({ step: 'Distributing' });
  await one.stop();

  // The key of the old root is in no Secret but the state's.
  const two = await start();
  expect(await sign(two)).toEqual(distributing);
  await later(two, () => reported(made)).toMatchObject({ step: 'Retiring' });
  expect(await sign(two)).toEqual(switched);
  await two.stop();

  const three = await start();
  expect(await sign(three)).toEqual(switched);
  await expect.poll(() => reported(made)).toMatchObject({ step: 'Retiring' });
  three.clock.skip(26 * HOUR);
  await later(three, () => reported(made)).toMatchObject({ step: 'Stable' });
  expect(await sign(three)).toEqual(['O=new', 'O=new']);
});

test('replicas take each step together, and wait for the proxies of all', async () => {
  const { made, plug, sign, start } = await startRotating();
  const replicas = [await start('one'), await start('two')];
  const [one, two] = replicas as [Program, Program];
  const agents = replicas.map((program) => startAgent(program));
  for (const agent of agents) (await agent.next()).ack();
  await plug('new');
  const clock = { skip: (ms: number) => replicas.forEach((program) => program.clock.skip(ms)) };
  const both = (program: Program) => later({ clock }, () => sign(program));
  await both(one).toEqual(distributing);
  await both(two).toEqual(distributing);
  const [first, second] = await Promise.all(agents.map((agent) => agent.next()));
  first!.ack();
  const began = one.clock.now();
  await later({ clock }, () => one.clock.now() - began).toBeGreaterThan(15 * MINUTE);
  await later({ clock }, () => reported(made)).toMatchObject({
    waitingFor: expect.stringContaining('1 proxy to') as string,
  });
  expect([await sign(one), await sign(two)]).toEqual([distributing, distributing]);
  second!.ack();
  await both(one).toEqual(switched);
  await both(two).toEqual(switched);
  for (const { log } of replicas) {
    const steps = () => log.map(({ msg }) => msg).filter((msg) => msg.startsWith('Root certificate'));
    await expect
      .poll(steps)
      .toEqual([
        'Root certificate added: it will sign once all proxies trust it',
        'Root certificate is trusted by all proxies',
        'Root certificate no longer signs',
      ]);
  }
});

test('what cannot be used neither begins a rotation nor ends one', async () => {
  const { made, plug, sign, start } = await startRotating();
  const program = await start();
  await expect.poll(() => configMap(made, 'shop').roots).toEqual(['O=old']);
  const broken = async (): Promise<void> => {
    const [{ 'ca-key.pem': key }, rest] = await Promise.all([
      selfSigned('x', new Date()),
      selfSigned('new', new Date()),
    ]);
    made.server.cluster.apply(SECRETS, secret('cacerts', { ...rest, 'ca-key.pem': key }));
  };
  await broken();
  const problems = () => program.log.filter(({ msg }) => msg === 'Signing certificates cannot be used');
  await later(program, problems).toHaveLength(1);
  expect(await sign(program)).toEqual(['O=old', 'O=old']);
  await plug('new');
  await later(program, () => sign(program)).toEqual(distributing);
  await broken();
  await later(program, problems).toHaveLength(2);
  expect(await sign(program)).toEqual(distributing);
  const restarted = await made.start({}, 'two');
  await restarted.logged('Signing certificates cannot be used');
  expect(await sign(restarted)).toEqual(distributing);
});

test('a state that somebody has broken is left alone, and said', async () => {
  const { made, start } = await startRotating();
  const program = await start();
  made.server.cluster.apply(SECRETS, {
    ...secret('fairlead-ca', { 'rotation.json': '{"roots":[{}]}' }),
    metadata: { name: 'fairlead-ca', namespace: NAMESPACE },
  });
  const problem = () => program.log.find(({ msg }) => msg === 'Signing certificates cannot be used')?.['problem'];
  await later(program, problem).toContain('fairlead-ca: rotation.json is not valid');
});

test('certificates for longer than a day are remembered before they are handed out', async () => {
  const { made, plug, sign, start } = await startRotating();
  const program = await start();
  await expect.poll(() => configMap(made, 'shop').roots).toEqual(['O=old']);
  const days = (count: number) => sign(program, count * 24 * 3600);
  expect(await days(30)).toEqual(['O=old', 'O=old']);
  made.server.cluster.denied.add(SECRETS);
  expect(await days(60)).toMatch(/^UNAVAILABLE: this lifetime cannot be recorded/);
  expect(await days(20)).toEqual(['O=old', 'O=old']);
  made.server.cluster.denied.delete(SECRETS);
  await plug('new');
  await later(program, () => reported(made)).toMatchObject({ step: 'Distributing' });
  // A proxy that will not acknowledge anything.
  startAgent(program);
  program.clock.skip(29 * 24 * HOUR);
  await later(program, () => reported(made).waitingFor).toContain('1 proxy to');
  program.clock.skip(3 * 24 * HOUR);
  await later(program, () => reported(made)).toMatchObject({ step: 'Retiring' });
});

test('two replicas that start at once have one root', async () => {
  const made = await secureCluster();
  const replicas = await Promise.all(['one', 'two'].map((name) => made.start({}, name)));
  for (const program of replicas) await program.logged('Signing certificates');
  const bundles = () => replicas.map(({ serving }) => serving.engine.mesh.inputs.trustBundle.get('')?.roots);
  await expect.poll(bundles).toEqual([[expect.any(String)], [expect.any(String)]]);
  const [one, two] = bundles();
  expect(one).toEqual(two);
});
