import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { type Caller, secureCall, signCertificate } from '../harness/secure-call.ts';
import { conditions } from './conditions.ts';
import { CDS, Proxy } from './proxy.ts';
import { kubeconfigFor, remoteSecret } from './remote-secret.ts';
import { SERVER, askFor, secureCluster, startSecure, tokenOf } from './secure-cluster.ts';
import { REVIEWS, reviews, rule, split, splitRoutes } from './shop.ts';
import { SECRETS, TOKEN_REVIEWS } from './sources.ts';

type Says = (token: string) => string | undefined;

/** A program that serves another cluster, whose API server says which account (`namespace:name`) a token is of. */
async function startWithEast(says: Says) {
  const [own, east] = await Promise.all([secureCluster(), secureCluster()]);
  east.server.cluster.virtual.set(TOKEN_REVIEWS, ({ spec }) => {
    const { token, audiences } = spec as { readonly token: string; readonly audiences: readonly string[] };
    const account = says(token);
    const user = { username: `system:serviceaccount:${account}`, groups: ['system:serviceaccounts'] };
    return { status: { authenticated: account !== undefined, audiences, user } };
  });
  own.server.cluster.apply(SECRETS, remoteSecret({ east: kubeconfigFor(east.server.url) }));
  const { program, roots } = await startSecure(own, { provenTenants: true }, { insecureRemoteClusters: 'allow' });
  const ask = (caller: Caller, cluster?: string) =>
    askFor(CDS, program, roots, caller, cluster === undefined ? {} : { texts: { CLUSTER_ID: cluster } });
  const sign = async (caller: Caller) => {
    const openssl = new OpenSsl();
    const csr = openssl.request('rsa:2048');
    const chain = await signCertificate(program.serving.ports.secure!, secureCall(roots, caller, SERVER), csr);
    expect(chain).toBeInstanceOf(Array);
    const [leaf = ''] = chain as string[];
    openssl.write('root.pem', roots);
    openssl.write('leaf.pem', leaf);
    expect(openssl.run('verify -CAfile root.pem leaf.pem')).toContain('OK');
    return { chain: leaf, key: openssl.read('request.key') };
  };
  return { own, east, program, roots, ask, sign };
}

test('a token counts in the cluster that its header names, and in no other', async () => {
  const theirs = tokenOf('shop:default');
  const { ask, sign, own, program } = await startWithEast((token) => (token === theirs ? 'shop:default' : undefined));
  own.server.cluster.virtual.set(TOKEN_REVIEWS, ({ spec }) => {
    const { token, audiences } = spec as { readonly token: string; readonly audiences: readonly string[] };
    const user = { username: 'system:serviceaccount:shop:default', groups: ['system:serviceaccounts'] };
    return { status: { authenticated: token !== theirs, audiences, user } };
  });
  const ours = tokenOf('shop:default', 1800);
  for (const cluster of ['east', undefined])
    expect(await ask({ token: theirs, cluster: 'east' }, cluster)).toBeGreaterThan(0);
  expect(await ask({ token: ours, cluster: 'Kubernetes' }, 'Kubernetes')).toBeGreaterThan(0);
  expect(await ask({ token: theirs }, 'east')).toMatch(/^UNAUTHENTICATED: the token is not accepted/);
  expect(await ask({ token: theirs, cluster: 'Kubernetes' }, 'east')).toMatch(/^UNAUTHENTICATED/);
  expect(await ask({ token: ours, cluster: 'east' }, 'east')).toMatch(/^UNAUTHENTICATED/);
  expect(await ask({ token: theirs, cluster: 'west' }, 'east')).toMatch(/^UNAUTHENTICATED.* not known/);
  // What a node says otherwise is nothing.
  const refused = /^PERMISSION_DENIED: the cluster of the node/;
  expect(await ask({ token: theirs, cluster: 'east' }, 'Kubernetes')).toMatch(refused);
  expect(await ask({ token: ours }, 'east')).toMatch(refused);
  const certificate = await sign({ token: theirs, cluster: 'east' });
  const { subject, subjectAltName } = new X509Certificate(certificate.chain);
  expect([subject, subjectAltName]).toEqual(['OU=east', 'URI:spiffe://cluster.local/ns/shop/sa/default']);
  expect(await ask({ certificate }, 'east')).toBeGreaterThan(0);
  expect(program.log.filter(({ msg }) => msg === 'Certificate signed')).toMatchObject([{ cluster: 'east' }]);
});

test('an API server that vouches for everybody vouches for nobody in our own cluster', async () => {
  const { program, roots, ask, sign } = await startWithEast(() => 'istio-system:istiod');
  const debug = (caller: Caller) => askFor('istio.io/debug', program, roots, caller, { names: ['syncz'] });
  let caller: Caller = { token: 'any', cluster: 'east' };
  // Certificates beget certificates.
  for (const _ of [1, 2, 3]) {
    for (const cluster of ['Kubernetes', 'east'])
      expect(await debug({ ...caller, cluster })).toMatch(/_DENIED|TICATED/);
    expect(await ask(caller, 'Kubernetes')).toMatch(/^PERMISSION_DENIED/);
    caller = { certificate: await sign(caller), cluster: 'Kubernetes' };
  }
  expect(await debug({ token: tokenOf('istio-system:istiod') })).toBe(1);
});

test('all that a cluster vouches for is one voice, which takes nothing back where others are concerned', async () => {
  const { own, program, roots } = await startWithEast((token) => `${token}:default`);
  await own.apply(...reviews, rule, split(80, 20));
  const connect = (namespace: string, caller: Caller): Proxy => {
    const id = `sidecar~10.0.0.1~${namespace}.${namespace}~${namespace}.svc.cluster.local`;
    const proxy = new Proxy(program.serving.ports.secure!, true, { id }, secureCall(roots, caller, SERVER));
    onTestFinished(() => proxy.close());
    return proxy;
  };
  const theirs = ['shop', 'bank', 'tower'].map((token) => connect(token, { token, cluster: 'east' }));
  const ours = connect('shop', { token: tokenOf('shop:default') });
  const has = (proxy: Proxy, weight: number) =>
    proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(weight, 100 - weight)));
  for (const proxy of [...theirs, ours]) await has(proxy, 80);
  const programmed = (message: unknown) =>
    own.changed(() => expect(conditions(own, split(0, 0))['Programmed']).toMatchObject({ message }));
  // Whoever comes once everybody else has it is not waited for.
  await programmed(expect.stringMatching(/^Acknowledged by [^.]* that it concerns.$/));
  for (const proxy of theirs) proxy.rejects = () => 'no';
  ours.fallSilent();
  await own.apply(split(10, 90));
  await programmed(expect.stringMatching(/^Rejected by [123] prox/));
  program.clock.skip(20_000);
  await programmed(expect.stringMatching(/^Rejected by 3 proxies/));
  ours.speak();
  await has(ours, 10);
  expect(conditions(own, split(0, 0))['Programmed']).not.toMatchObject({
    message: expect.stringContaining('in force') as string,
  });
});

test('whatever an API server answers, and whatever a header names, is an account or nobody', async () => {
  const { east, own, program, roots, ask } = await startWithEast(() => 'shop:default');
  const user = { username: 'system:serviceaccount:shop:default', groups: ['system:serviceaccounts'] };
  const good = { authenticated: true, audiences: ['istio-ca'], user };
  const hostile: readonly unknown[] = [
    { status: { ...good, authenticated: 'true' } },
    { status: { ...good, audiences: ['https://kubernetes.default.svc'] } },
    { status: { ...good, audiences: { 0: 'istio-ca', length: 1 } } },
    { status: { ...good, user: { ...user, groups: ['system:nodes'] } } },
    { status: { ...good, user: { ...user, username: { toString: 1 } } } },
    { status: { ...good, user: { ...user, username: 'system:serviceaccount:shop:../istiod' } } },
    { status: { ...good, user: { ...user, username: `system:serviceaccount:shop:${'a'.repeat(100_000)}` } } },
    { status: { ...good, user: { ...user, extra: { all: ['x'.repeat(1_000_000)] } } } },
    { status: [good] },
    [good],
    null,
    'authenticated',
  ];
  for (const [i, answer] of hostile.entries()) {
    east.server.cluster.virtual.set(TOKEN_REVIEWS, () => answer as Json);
    expect(await ask({ token: tokenOf('shop:default', 60 + i), cluster: 'east' })).toMatch(
      /^UNAUTHENTICATED|^UNAVAILABLE/,
    );
  }
  const token = tokenOf('shop:default');
  await own.apply(...reviews);
  expect(await ask({ token, cluster: '' })).toBeGreaterThan(0);
  expect(await ask({ token, cluster: '__proto__' })).toMatch(/not known/);
  expect(await ask({ token, cluster: 'x'.repeat(1_000_000) })).toMatch(/^[A-Z_]+: /);
  // Two headers are not one of them.
  for (const clusters of [['Kubernetes', 'east'] as const, ['east', 'Kubernetes'] as const]) {
    const call = secureCall(roots, { token }, SERVER);
    for (const cluster of clusters) call.metadata.add('clusterid', cluster);
    const client = new XdsClient(program.serving.ports.secure!, true, undefined, call);
    onTestFinished(() => client.close());
    client.send({ typeUrl: CDS, node: { id: 'sidecar~10.0.0.1~a.shop~shop.svc.cluster.local' } });
    await expect(client.next()).rejects.toThrow(/not known/);
  }
  expect(await ask({ token, cluster: 'Kubernetes' })).toBeGreaterThan(0);
});

test('while the API server of a cluster is away, its known tokens are good, and others are told to try again', async () => {
  const { east, program, ask } = await startWithEast((token) => (token === 'bad' ? undefined : 'shop:default'));
  const known = tokenOf('shop:default');
  expect(await ask({ token: known, cluster: 'east' })).toBeGreaterThan(0);
  program.clock.skip(120_000);
  east.server.cluster.failNext(503, 1_000);
  expect(await ask({ token: known, cluster: 'east' })).toBeGreaterThan(0);
  expect(await ask({ token: tokenOf('shop:default', 60), cluster: 'east' })).toMatch(/^UNAVAILABLE.*of its cluster/);
  expect(await ask({ token: tokenOf('shop:default') })).toBeGreaterThan(0);
});
