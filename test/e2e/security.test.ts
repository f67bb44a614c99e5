import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { Authority } from '../../src/identity/authority.ts';
import { readRequest } from '../../src/identity/certificate-request.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { readMaterial } from '../../src/identity/signing-material.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Program } from '../features/program.ts';
import { Directory } from '../features/sources.ts';
import { startEnvoy } from '../peers/envoy.ts';
import { freePorts, poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { startAgent, type WorkloadSecrets } from './agent.ts';
import { startBackend } from './traffic.ts';

const SERVER = 'fairlead.istio-system.svc';
const key = { kty: 'oct', kid: 'a', k: Buffer.from('secret of the issuer').toString('base64url') };

/** A CA, and what it signs for service accounts. */
async function createCa() {
  const entries = await selfSigned('cluster.local', new Date());
  const read = readMaterial(entries, new Date());
  if ('problem' in read) throw new Error(read.problem);
  const authority = new Authority(read.material);
  const certify = async (namespace: string, account: string): Promise<WorkloadSecrets> => {
    const openssl = new OpenSsl();
    const identity = `spiffe://cluster.local/ns/${namespace}/sa/${account}`;
    const request = await readRequest(openssl.request('rsa:2048'), identity);
    if ('problem' in request) throw new Error(request.problem);
    const signed = await authority.sign(request.request, identity, 3600, new Date());
    if ('problem' in signed) throw new Error(signed.problem);
    return { certificate: signed.chain[0]!, key: openssl.read('request.key'), roots: entries['root-cert.pem'] };
  };
  return { entries, certify };
}

const object = (kind: string, name: string, spec: object, namespace = 'shop'): KubernetesObject =>
  ({
    apiVersion: kind === 'Sidecar' ? 'networking.istio.io/v1' : 'security.istio.io/v1',
    kind,
    metadata: { name, namespace },
    spec,
  }) as KubernetesObject;

interface Caller {
  readonly secrets?: WorkloadSecrets;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A real Envoy before a backend, configured through the secure port; `ask` says what a client gets. */
async function serve(...policies: readonly KubernetesObject[]) {
  const [ca, other] = [await createCa(), await createCa()];
  const caDirectory = await temporaryDirectory();
  for (const [name, text] of Object.entries(ca.entries)) await writeFile(join(caDirectory, name), text);
  const backend = await startBackend('served');
  onTestFinished(() => backend.close());
  const [port = 0] = await freePorts(1);
  const directory = await Directory.create();
  const ingress = {
    port: { number: port, protocol: 'HTTP', name: 'http' },
    bind: '127.0.0.1',
    captureMode: 'NONE',
    defaultEndpoint: `127.0.0.1:${backend.port}`,
  };
  await directory.apply(
    object('Sidecar', 'default', { ingress: [ingress], egress: [{ hosts: ['./*'] }] }),
    ...policies,
  );
  const program = await directory.start({ caDirectory, secureNames: SERVER });
  await program.logged('Ready');
  await program.logged('Signing certificates');
  const [server, client, stranger, foreign] = [
    await ca.certify('shop', 'server'),
    await ca.certify('shop', 'client'),
    await ca.certify('other', 'client'),
    await other.certify('shop', 'client'),
  ];
  const agent = await startAgent(server);
  onTestFinished(() => agent.close());
  const envoy = await startEnvoy({
    adsPort: program.serving.ports.secure!,
    delta: true,
    tls: { ...server, name: SERVER },
    node: {
      id: 'sidecar~127.0.0.1~server-1.shop~shop.svc.cluster.local',
      metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'server', INTERCEPTION_MODE: 'NONE', ISTIO_VERSION: '1.30.0' },
    },
    extraBootstrap: { staticResources: { clusters: [agent.cluster] } },
  });
  onTestFinished(() => envoy.stop());
  await envoy.ready();
  return {
    directory,
    program,
    envoy,
    client,
    stranger,
    foreign,
    ask: (caller: Caller = {}) => ask(port, caller),
  };
}

/** The status, or `closed`. */
function ask(port: number, { secrets, path = '/', method = 'GET', headers = {} }: Caller): Promise<number | 'closed'> {
  const options = { host: '127.0.0.1', port, path, method, headers: { host: 'server.shop', ...headers }, agent: false };
  return new Promise((resolve) => {
    const call =
      secrets === undefined
        ? requestHttp(options)
        : requestHttps({
            ...options,
            cert: secrets.certificate,
            key: secrets.key,
            // The server is checked by its Envoy's peers, not by this client.
            rejectUnauthorized: false,
            ALPNProtocols: ['istio-http/1.1', 'http/1.1'],
          } as object);
    call.on('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    call.on('error', () => resolve('closed'));
    call.end();
  });
}

function tokenOf(claims: object, secret = 'secret of the issuer'): string {
  const part = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url');
  const signed = `${part({ alg: 'HS256', kid: 'a' })}.${part({ exp: 4_000_000_000, ...claims })}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

async function untilAnswer(program: Program, ask: () => Promise<unknown>, answer: unknown): Promise<void> {
  await poll(`the answer ${String(answer)}`, async () => ((await ask()) === answer ? true : undefined));
  expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
}

withPeers(['envoy'], 'a real Envoy with certificates of the authority', () => {
  test('accepts what the mode of mutual TLS allows, and follows its changes', async () => {
    const mode = (name: string) => object('PeerAuthentication', 'default', { mtls: { mode: name } });
    const { directory, program, client, foreign, ask } = await serve(mode('PERMISSIVE'));
    expect([await ask(), await ask({ secrets: client }), await ask({ secrets: foreign })]).toEqual([
      200,
      200,
      'closed',
    ]);
    await directory.apply(mode('STRICT'));
    await untilAnswer(program, () => ask(), 'closed');
    expect([await ask({ secrets: client }), await ask({ secrets: foreign })]).toEqual([200, 'closed']);
    await directory.apply(mode('DISABLE'));
    await untilAnswer(program, () => ask(), 200);
    expect(await ask({ secrets: client })).toBe('closed');
    await directory.apply(mode('PERMISSIVE'));
    await untilAnswer(program, () => ask({ secrets: client }), 200);
  });

  test('lets in whom the policies allow', async () => {
    const { directory, program, client, stranger, ask } = await serve(
      object('AuthorizationPolicy', 'clients', {
        rules: [
          { from: [{ source: { principals: ['cluster.local/ns/shop/sa/client'] } }] },
          { to: [{ operation: { methods: ['GET'], paths: ['/public/*'] } }] },
        ],
      }),
    );
    expect([await ask(), await ask({ secrets: client }), await ask({ secrets: stranger })]).toEqual([403, 200, 403]);
    expect(await ask({ path: '/public/a' })).toBe(200);
    expect(await ask({ path: '/public/../private' })).toBe(403);
    expect(await ask({ path: '/public/a', method: 'POST' })).toBe(403);
    const deny = object('AuthorizationPolicy', 'deny', {
      action: 'DENY',
      rules: [{ from: [{ source: { namespaces: ['shop'] } }], to: [{ operation: { paths: ['/admin'] } }] }],
    });
    await directory.apply(deny);
    await untilAnswer(program, () => ask({ secrets: client, path: '/admin' }), 403);
    expect(await ask({ secrets: client, path: '/admin?x' })).toBe(403);
    expect(await ask({ secrets: client })).toBe(200);
    await directory.delete(deny);
    await untilAnswer(program, () => ask({ secrets: client, path: '/admin' }), 200);
  });

  test('verifies tokens, and lets in whom they name', async () => {
    const rule = { issuer: 'issuer', jwks: JSON.stringify({ keys: [key] }) };
    const { directory, program, ask } = await serve(
      object('RequestAuthentication', 'tokens', { jwtRules: [rule, { issuer: 'unknown' }] }),
      object('AuthorizationPolicy', 'tokens', {
        rules: [{ from: [{ source: { requestPrincipals: ['issuer/alice'] } }] }],
      }),
    );
    const alice = tokenOf({ iss: 'issuer', sub: 'alice' });
    expect(await ask(bearer(alice))).toBe(200);
    expect(await ask(bearer(tokenOf({ iss: 'issuer', sub: 'bob' })))).toBe(403);
    expect(await ask()).toBe(403);
    expect(await ask(bearer(tokenOf({ iss: 'issuer', sub: 'alice' }, 'another secret')))).toBe(401);
    // An issuer without known keys, and one that no rule names.
    expect(await ask(bearer(tokenOf({ iss: 'unknown', sub: 'alice' })))).toBe(401);
    expect(await ask(bearer(tokenOf({ iss: 'nobody', sub: 'alice' })))).toBe(401);
    await directory.delete(object('AuthorizationPolicy', 'tokens', {}));
    await untilAnswer(program, () => ask(), 200);
    await directory.apply(object('RequestAuthentication', 'tokens', { jwtRules: [{ ...rule, presence: 'REQUIRED' }] }));
    await untilAnswer(program, () => ask(), 401);
    expect(await ask(bearer(alice))).toBe(200);
  });
});
