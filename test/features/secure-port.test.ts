import { status as Status } from '@grpc/grpc-js';
import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { type Caller, secureCall, signCertificate } from '../harness/secure-call.ts';
import { CDS } from './proxy.ts';
import { type Program, get } from './program.ts';
import { SERVER, startSecure, tokenOf } from './secure-cluster.ts';

/** What a sidecar of shop/default gets that asks for clusters: their number, or how it is refused. */
async function ask(
  program: Program,
  roots: string,
  caller: Caller,
  id = 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local',
) {
  const client = new XdsClient(program.serving.ports.secure!, true, undefined, secureCall(roots, caller, SERVER));
  onTestFinished(() => client.close());
  client.send({ typeUrl: CDS, node: { id } });
  const answer = await client.next().catch((error: { code: number; details: string }) => error);
  return 'resources' in answer ? answer.resources.size : `${Status[answer.code]}: ${answer.details}`;
}

/** CreateCertificate; the chain, or how it is refused. */
const sign = (program: Program, roots: string, caller: Caller, csr: string) =>
  signCertificate(program.serving.ports.secure!, secureCall(roots, caller, SERVER), csr);

test('a token is exchanged for a certificate, and the certificate for configuration', async () => {
  const { program, roots } = await startSecure();
  const openssl = new OpenSsl();
  const csr = openssl.request('rsa:2048');
  const chain = await sign(program, roots, { token: tokenOf('shop:default') }, csr);
  expect(chain).toHaveLength(2);
  const [leaf = '', root] = chain as string[];
  expect(root).toBe(roots);
  openssl.write('root.pem', roots);
  openssl.write('leaf.pem', leaf);
  expect(openssl.run('verify -CAfile root.pem leaf.pem')).toContain('OK');
  expect(new X509Certificate(leaf).subjectAltName).toBe('URI:spiffe://cluster.local/ns/shop/sa/default');

  const certificate = { chain: leaf, key: openssl.read('request.key') };
  expect(await ask(program, roots, { certificate })).toBeGreaterThan(0);
  expect(await ask(program, roots, { token: tokenOf('shop:default') })).toBeGreaterThan(0);
  // With its certificate it gets the next one.
  expect(await sign(program, roots, { certificate }, csr)).toHaveLength(2);
});

test('whoever cannot prove who it is gets nothing', async () => {
  const { program, roots } = await startSecure();
  expect(await ask(program, roots, {})).toMatch(/^UNAUTHENTICATED/);
  expect(await ask(program, roots, { token: 'nonsense' })).toMatch(/^UNAUTHENTICATED/);
  const openssl = new OpenSsl();
  openssl.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
  const foreign = { chain: openssl.read('ca.pem'), key: openssl.read('ca.key') };
  expect(await ask(program, roots, { certificate: foreign })).toMatch(/^UNAUTHENTICATED/);
  expect(await sign(program, roots, {}, openssl.request('rsa:2048'))).toMatch(/^UNAUTHENTICATED/);
});

test('refusals are counted by reason, and logged once for an address', async () => {
  const { program, roots } = await startSecure();
  await ask(program, roots, {});
  await ask(program, roots, { token: 'nonsense' });
  await ask(program, roots, { token: tokenOf('shop:default') }, 'sidecar~10.0.0.1~a.bank~bank.svc.cluster.local');
  await sign(program, roots, { token: tokenOf('shop:default') }, 'nonsense');
  const { body } = await get(program.serving.ports.monitoring, '/metrics');
  for (const reason of ['none', 'token', 'identity', 'request'])
    expect(body).toContain(`fairlead_secure_refused_total{reason="${reason}"} 1`);
  expect(program.log.filter(({ msg }) => msg === 'Caller on the secure port refused')).toHaveLength(1);
});

test('a node is of the namespace that its credential names', async () => {
  const { program, roots } = await startSecure();
  const id = 'sidecar~10.0.0.1~a.bank~bank.svc.cluster.local';
  expect(await ask(program, roots, { token: tokenOf('shop:default') }, id)).toMatch(/^PERMISSION_DENIED.*namespace/);
});

test('known tokens are good while the API server is away, and unknown ones are told to try again', async () => {
  const { made, program, roots } = await startSecure();
  const token = tokenOf('shop:default');
  expect(await ask(program, roots, { token })).toBeGreaterThan(0);
  program.clock.skip(120_000);
  made.server.cluster.failNext(503, 1_000);
  expect(await ask(program, roots, { token })).toBeGreaterThan(0);
  expect(await ask(program, roots, { token: tokenOf('shop:other') })).toMatch(/^UNAVAILABLE/);
});
