import { expect, onTestFinished, test } from 'vitest';
import { type KubernetesObject, printRef } from '../../src/api/object.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { secureCall } from '../harness/secure-call.ts';
import { CDS, SDS } from './proxy.ts';
import type { Program } from './program.ts';
import { kubeconfigFor, remoteSecret } from './remote-secret.ts';
import { SERVER, secureCluster, startSecure, tokenOf } from './secure-cluster.ts';
import { ACCESS_REVIEWS, type Cluster, SECRETS } from './sources.ts';

/** Service accounts that may list the Secrets of their namespace. */
const ALLOWED = ['shop:router', 'bank:router'];

const gateway = (namespace: string, ...names: readonly string[]): KubernetesObject =>
  ({
    apiVersion: 'networking.istio.io/v1',
    kind: 'Gateway',
    metadata: { name: 'public', namespace },
    spec: {
      selector: { of: namespace },
      servers: names.map((credentialName, i) => ({
        port: { number: 443, name: `https-${i}`, protocol: 'HTTPS' },
        hosts: [`${i}.example`],
        tls: { mode: 'SIMPLE', credentialName },
      })),
    },
  }) as KubernetesObject;

function secretOf(namespace: string, name: string): KubernetesObject {
  const openssl = new OpenSsl();
  openssl.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
  const base64 = (file: string): string => Buffer.from(openssl.read(file)).toString('base64');
  const data = { 'tls.crt': base64('root.pem'), 'tls.key': base64('root.key'), 'ca.crt': base64('root.pem') };
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data } as unknown as KubernetesObject;
}

async function cluster(): Promise<Cluster> {
  const made = await secureCluster();
  made.server.cluster.virtual.set(ACCESS_REVIEWS, ({ spec }) => {
    const { user, resourceAttributes: asked } = spec as { user: string; resourceAttributes: Record<string, string> };
    const account = user.slice('system:serviceaccount:'.length);
    const isOwn = account.startsWith(`${asked['namespace']}:`) && asked['verb'] === 'list';
    return { status: { allowed: isOwn && asked['resource'] === 'secrets' && ALLOWED.includes(account) } };
  });
  return made;
}

/** A proxy of `namespace:account`, or `namespace:account@cluster`, that asks for these secrets; without an account, on the plaintext port. */
function connect(program: Program, roots: string, who: string, type: 'router' | 'sidecar', ...names: string[]) {
  const [account = '', cluster = 'Kubernetes'] = who.split('@');
  const [namespace = ''] = account.split(':');
  const { ports } = program.serving;
  const client = account.includes(':')
    ? new XdsClient(ports.secure!, true, undefined, secureCall(roots, { token: tokenOf(account), cluster }, SERVER))
    : new XdsClient(ports.grpc!, true);
  onTestFinished(() => client.close());
  const node = {
    id: `${type}~10.0.0.1~a.${namespace}~${namespace}.svc.cluster.local`,
    labels: { of: namespace },
    texts: { CLUSTER_ID: cluster },
  };
  client.send({ typeUrl: SDS, node, subscribe: names });
  return client;
}

/** The names that it has, of those that it asked for. */
async function given(program: Program, roots: string, account: string, type: 'router' | 'sidecar', ...names: string[]) {
  const client = connect(program, roots, account, type, ...names);
  const has = new Set<string>();
  // What is not there yet may come later.
  await program.settled();
  for (let rest = new Set(names); rest.size > 0;) {
    const { resources, removed } = await client.next(SDS);
    for (const name of [...resources.keys(), ...removed]) rest.delete(name);
    for (const name of resources.keys()) has.add(name);
  }
  return [...has];
}

test('routers get only the Secrets that Gateways name, in their own namespace, and only if their account may list them', async () => {
  const made = await cluster();
  const names = ['a', 'b', 'unnamed'];
  await made.apply(...names.map((name) => secretOf('shop', name)), secretOf('bank', 'a'));
  await made.apply(gateway('shop', 'a', 'b'), gateway('bank', 'a', 'kubernetes://shop/a'));
  const { program, roots } = await startSecure(made);
  const watching = connect(program, roots, 'shop:router', 'router', 'kubernetes://a');
  const first = await watching.nextWith(SDS, 'kubernetes://a');

  const all = [
    'kubernetes://a',
    'kubernetes://b',
    'kubernetes://unnamed',
    'kubernetes://shop/a',
    'kubernetes://bank/a',
  ];
  await expect
    .poll(() => given(program, roots, 'shop:router', 'router', ...all))
    .toEqual(['kubernetes://a', 'kubernetes://b']);
  await expect.poll(() => given(program, roots, 'bank:router', 'router', ...all)).toEqual(['kubernetes://a']);
  expect(await given(program, roots, 'shop:default', 'router', ...all)).toEqual([]);
  expect(await given(program, roots, 'shop:default', 'sidecar', ...all)).toEqual([]);
  expect(await given(program, roots, 'bank:default', 'sidecar', ...all)).toEqual([]);
  expect(await given(program, roots, 'shop', 'router', ...all)).toEqual([]);

  await made.apply(secretOf('shop', 'a'));
  expect(await watching.nextWith(SDS, 'kubernetes://a')).not.toEqual(first);

  const reads = made.server.cluster.requests.filter(
    ({ path }) => path.startsWith('/api/v1/') && path.endsWith('/secrets'),
  );
  expect([...new Set(reads.map(({ path, query }) => `${path} ${query['fieldSelector'] ?? ''}`))].sort()).toEqual([
    '/api/v1/namespaces/bank/secrets metadata.name=a',
    // The authority makes its own.
    '/api/v1/namespaces/istio-system/secrets ',
    '/api/v1/namespaces/shop/secrets metadata.name=a',
    '/api/v1/namespaces/shop/secrets metadata.name=b',
  ]);
  expect(JSON.stringify(program.log)).not.toMatch(/PRIVATE KEY|LS0tLS1/);
  const leftOut = (why: string): string[] =>
    [0, 1].map((i) => `spec.servers[${i}].tls.credentialName: ${why}; this server is left out.`);
  expect(await program.reported('Gateway/shop/public')).toEqual(
    [
      ...leftOut('Only proxies that connect on the secure port get Secrets'),
      ...leftOut('Service account shop/default must be allowed to list Secrets in namespace shop'),
    ].sort(),
  );
});

test('routers of another cluster get the Secrets that are there, if they may there, and none of ours', async () => {
  const [own, east] = await Promise.all([cluster(), cluster()]);
  await own.apply(gateway('shop', 'a', 'ours'), secretOf('shop', 'a'), secretOf('shop', 'ours'));
  const theirs = secretOf('shop', 'a');
  await east.apply(theirs, secretOf('shop', 'unnamed'));
  own.server.cluster.apply(SECRETS, remoteSecret({ east: kubeconfigFor(east.server.url) }));
  const { program, roots } = await startSecure(own, {}, { insecureRemoteClusters: 'allow' });
  const all = ['kubernetes://a', 'kubernetes://ours', 'kubernetes://unnamed'];
  const a = 'kubernetes://a';
  const certificateIn = (secret: KubernetesObject): string => {
    const { data } = secret as unknown as { readonly data: Readonly<Record<string, string>> };
    return Buffer.from(data['tls.crt']!, 'base64').toString();
  };
  const watching = connect(program, roots, 'shop:router@east', 'router', a);
  const bytesOf = async (): Promise<string> => Buffer.from(await watching.nextWith(SDS, a)).toString();
  expect(await bytesOf()).toContain(certificateIn(theirs));
  await expect.poll(() => given(program, roots, 'shop:router@east', 'router', ...all)).toEqual([a]);
  expect(await given(program, roots, 'shop:default@east', 'router', ...all)).toEqual([]);
  await expect
    .poll(() => program.reported('Gateway/shop/public'))
    .toEqual(
      expect.arrayContaining([
        expect.stringContaining('Secret shop/ours in cluster east does not exist'),
        expect.stringContaining('Service account shop/default in cluster east must be allowed to list Secrets'),
      ]),
    );
  const reads = ({ server }: Cluster) => server.cluster.requests.filter(({ path }) => path.includes('/shop/secrets'));
  expect([reads(own), reads(east).length > 0]).toEqual([[], true]);
  await expect.poll(() => given(program, roots, 'shop:router', 'router', ...all)).toEqual([a, 'kubernetes://ours']);
  // Whoever has another account for the cluster goes on reading there.
  own.server.cluster.apply(SECRETS, remoteSecret({ east: kubeconfigFor(east.server.url, { token: 'other' }) }));
  await expect.poll(() => reads(east).filter(({ query: { watch } }) => watch !== undefined).length).toBeGreaterThan(3);
  const renewed = secretOf('shop', 'a');
  await east.apply(renewed);
  await expect.poll(bytesOf).toContain(certificateIn(renewed));
});

test.each(['on', 'off'])(
  'a Gateway of another namespace needs a grant of the Secret: %s',
  async (gatewaySecretGrants) => {
    const made = await cluster();
    const of = (object: KubernetesObject, metadata: object): KubernetesObject => ({
      ...object,
      metadata: { ...object.metadata, ...metadata },
    });
    const router = { selector: { of: 'shop' } };
    const foreign = ['tenant', 'istio-system'].map((namespace, i) => {
      const { spec, ...rest } = gateway(namespace, 'a') as KubernetesObject & { spec: { servers: object[] } };
      const servers = spec.servers.map((server) => ({ ...server, hosts: [`${i + 1}.example`] }));
      return { ...rest, spec: { ...router, servers } } as KubernetesObject;
    });
    const secret = secretOf('shop', 'a');
    await made.apply(secret, gateway('shop', 'a'), ...foreign);
    const { program, roots } = await startSecure(made, {}, { gatewaySecretGrants });
    connect(program, roots, 'shop:router', 'router', 'kubernetes://a');
    const problems = () =>
      ['shop', 'tenant', 'istio-system'].map((namespace) =>
        [...program.serving.engine.mesh.problems.byObject.entries()]
          .flatMap(([, found]) => found)
          .filter(
            ({ object, field }) => printRef(object) === `Gateway/${namespace}/public` && /credentialName$/.test(field),
          )
          .map(({ field, message }) => `${field}: ${message}`),
      );
    const withheld =
      'spec.servers[0].tls.credentialName: Secret shop/a is not granted to Gateways in namespace tenant; name that namespace in ' +
      'its annotation fairlead.dev/gateways-from, or name a Secret that has it; this server is left out.';
    await expect.poll(problems).toEqual([[], gatewaySecretGrants === 'on' ? [withheld] : [], []]);
    for (const [grants, isGranted] of [
      ['bank, tenant', true],
      ['tenant/other', false],
      ['tenant/public', true],
      ['', false],
      ['*', true],
    ] as const) {
      await made.apply(of(secret, { annotations: { 'fairlead.dev/gateways-from': grants } }));
      await expect.poll(problems).toEqual([[], isGranted || gatewaySecretGrants === 'off' ? [] : [withheld], []]);
    }
  },
);

test('an invalid name gets the same answer as a missing Secret', async () => {
  const made = await cluster();
  await made.apply(secretOf('shop', 'a'), gateway('shop', 'a'));
  const { program, roots } = await startSecure(made);
  const odd = [
    'kubernetes://../a',
    'kubernetes://shop/../a',
    'kubernetes://',
    'a',
    'default',
    'ROOTCA',
    'file:/etc/passwd',
  ];
  const many = Array.from({ length: 10_000 }, (_, i) => `kubernetes://${i}`);
  expect(await given(program, roots, 'shop:router', 'router', ...odd, 'kubernetes://none', ...many)).toEqual([]);
  const read = (): string[] => {
    const paths = new Set(made.server.cluster.requests.map(({ path }) => path));
    return [...paths].filter((path) => path.includes('secret') && !path.startsWith('/api/v1/namespaces/istio-system/'));
  };
  await expect.poll(read).toEqual(['/api/v1/namespaces/shop/secrets']);
  expect(made.server.cluster.object(SECRETS, 'shop', 'a')).toBeDefined();
});

test.each([true, false])('Secrets have a service of their own, without other types (delta: %s)', async (delta) => {
  const made = await cluster();
  await made.apply(secretOf('shop', 'a'), gateway('shop', 'a'));
  const { program, roots } = await startSecure(made);
  const call = secureCall(roots, { token: tokenOf('shop:router') }, SERVER);
  const service = '/envoy.service.secret.v3.SecretDiscoveryService';
  const methods = { stream: `${service}/StreamSecrets`, delta: `${service}/DeltaSecrets` };
  const nameOf = (resource: Uint8Array): string => resource.subarray(2, 2 + resource[1]!).toString();
  const client = new XdsClient(program.serving.ports.secure!, delta, nameOf, call, methods);
  onTestFinished(() => client.close());
  const node = { id: 'router~10.0.0.1~a.shop~shop.svc.cluster.local', labels: { of: 'shop' } };
  const names = ['kubernetes://a'];
  client.send({ typeUrl: CDS, node });
  client.send({ typeUrl: '', ...(delta ? { subscribe: names } : { names }) });
  await client.nextWith(SDS, 'kubernetes://a');
  expect(client.received).toEqual([]);
  expect(program.log.map(({ msg }) => msg)).toContain('Proxy requested an unsupported resource type');
});
