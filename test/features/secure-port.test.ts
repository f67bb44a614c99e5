import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { type Caller, secureCall, signCertificate } from '../harness/secure-call.ts';
import { conditions } from './conditions.ts';
import { CDS, Proxy } from './proxy.ts';
import { type Program, get } from './program.ts';
import { SERVER, askFor, secureCluster, startSecure, tokenOf } from './secure-cluster.ts';
import { REVIEWS, reviews, rule, split, splitRoutes } from './shop.ts';

/** What a sidecar of shop/default gets that asks for clusters: their number, or how it is refused. */
const ask = (program: Program, roots: string, caller: Caller, id?: string) =>
  askFor(CDS, program, roots, caller, id === undefined ? {} : { id });

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

  const signed = program.log.filter(({ msg }) => msg === 'Certificate signed');
  expect(signed).toHaveLength(2);
  const { serialNumber: serial, validToDate } = new X509Certificate(leaf);
  const identity = 'spiffe://cluster.local/ns/shop/sa/default';
  expect(signed[0]).toMatchObject({
    level: 'info',
    identity,
    cluster: 'Kubernetes',
    until: validToDate.toISOString(),
    serial,
  });
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

test('what a proxy rejects counts if it has proven who it is', async () => {
  const made = await secureCluster();
  await made.apply(...reviews, rule, split(80, 20));
  const { program, roots } = await startSecure(made, { provenTenants: true });
  const node = (name: string) => ({ id: `sidecar~10.0.0.1~${name}.shop~shop.svc.cluster.local` });
  const { grpc, secure } = program.serving.ports;
  const plaintext = new Proxy(grpc!, true, node('plaintext'));
  const proven = new Proxy(
    secure!,
    true,
    node('proven'),
    secureCall(roots, { token: tokenOf('shop:default') }, SERVER),
  );
  onTestFinished(() => [plaintext, proven].forEach((each) => each.close()));
  const has = (proxy: Proxy, weight: number) =>
    proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(weight, 100 - weight)));
  const says = (message: unknown) =>
    made.changed(() => expect(conditions(made, split(0, 0))['Programmed']).toMatchObject({ message }));
  for (const each of [plaintext, proven]) await has(each, 80);
  // What the first has acknowledged before the other connected concerned one.
  await made.apply(split(70, 30));
  for (const each of [plaintext, proven]) await has(each, 70);
  await says('Acknowledged by all 2 proxies that it concerns.');
  plaintext.rejects = () => 'no';
  await made.apply(split(10, 90));
  await says(expect.stringMatching(/^Rejected by 1 proxy \(plaintext\.shop\)/));
  await has(proven, 10);
  proven.rejects = () => 'no';
  await made.apply(split(50, 50));
  await says(expect.stringContaining('in force'));
  expect(proven.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90));
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
