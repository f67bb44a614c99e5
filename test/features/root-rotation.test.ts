import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import protobuf from 'protobufjs';
import { readPem, writePem } from '../../src/identity/pem.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { type Response, XdsClient } from '../conformance/xds-client.ts';
import { secureCall, signCertificate } from '../harness/secure-call.ts';
import type { Program } from './program.ts';
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

/** An agent that asks for roots. */
function startAgent(program: Program) {
  const client = new XdsClient(program.serving.ports.grpc, true);
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
  const report = JSON.parse(found?.metadata.annotations?.['fairlead/root-rotation'] ?? '{}') as { step?: string };
  return { roots: namesOf(pems(found?.data['root-cert.pem'] ?? '')), report };
}

test('another root is trusted by all before it signs, and the old one until what it signed has expired', async () => {
  const made = await secureCluster();
  await made.apply(namespace(NAMESPACE), namespace('shop'));
  made.server.cluster.apply(SECRETS, secret('cacerts', await selfSigned('old', new Date())));
  const program = await made.start();
  await program.logged('Signing certificates');
  await expect.poll(() => configMap(made, 'shop').roots).toEqual(['O=old']);
  const [trusted] = pems(
    (made.server.cluster.object(CONFIG_MAPS, 'shop', 'istio-ca-root-cert') as { data: Record<string, string> }).data[
      'root-cert.pem'
    ]!,
  );
  const csr = new OpenSsl().request('rsa:2048');
  /** Who signs, and what comes with it: by a client that trusts the roots that it was given last. */
  const sign = async () => {
    const caller = secureCall(trusted!, { token: tokenOf('shop:default') }, SERVER);
    const chain = await signCertificate(program.serving.ports.secure!, caller, csr);
    if (typeof chain === 'string') return chain;
    return [new X509Certificate(chain[0]!).issuer, ...namesOf(pems(chain.at(-1)!))];
  };
  expect(await sign()).toEqual(['O=old', 'O=old']);
  const agent = startAgent(program);
  const first = await agent.next();
  expect(namesOf(first.roots)).toEqual(['O=old']);
  first.ack();

  made.server.cluster.apply(SECRETS, secret('cacerts', await selfSigned('new', new Date())));
  program.clock.skip(2 * MINUTE);
  await program.logged('Root certificate added');
  const both = await agent.next();
  expect(namesOf(both.roots)).toEqual(['O=old', 'O=new']);
  await expect.poll(() => configMap(made, 'shop').roots).toEqual(['O=old', 'O=new']);
  expect(await sign()).toEqual(['O=old', 'O=old', 'O=new']);
  program.clock.skip(HOUR);
  await expect
    .poll(() => configMap(made, NAMESPACE).report)
    .toMatchObject({ step: 'Distributing', waitingFor: expect.stringContaining('1 proxies') as string });
  expect(await sign()).toEqual(['O=old', 'O=old', 'O=new']);

  both.ack();
  await later(program, sign).toEqual(['O=new', 'O=new', 'O=old']);
  await program.logged('Root certificate is trusted by all proxies');
  await program.logged('Root certificate signs no longer');
  await expect
    .poll(() => configMap(made, NAMESPACE))
    .toMatchObject({ roots: ['O=new', 'O=old'], report: { step: 'Retiring' } });

  program.clock.skip(91 * 24 * HOUR);
  await later(program, () => configMap(made, 'shop').roots).toEqual(['O=new']);
  await program.logged('Root certificate dropped');
  await expect.poll(() => configMap(made, NAMESPACE).report).toMatchObject({ step: 'Stable' });
});
