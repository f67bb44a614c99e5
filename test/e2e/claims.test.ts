import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { securePort } from '../features/secure-cluster.ts';
import { Directory } from '../features/sources.ts';
import { startEnvoy } from '../peers/envoy.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';

const key = { kty: 'oct', kid: 'a', k: Buffer.from('secret of the issuer').toString('base64url') };

const object = (group: string, kind: string, name: string, spec: object): KubernetesObject =>
  ({ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name, namespace: 'shop' }, spec }) as KubernetesObject;

const tokens = object('security', 'RequestAuthentication', 'tokens', {
  jwtRules: [{ issuer: 'issuer', jwks: JSON.stringify({ keys: [key] }) }],
});

/** A real Envoy as a router; routes by claims answer with a status of their own. */
async function startRouter(...objects: readonly KubernetesObject[]) {
  const [port = 0] = await freePorts(1);
  const route = (status: number, match?: object) => ({
    ...(match && { match: [match] }),
    directResponse: { status },
  });
  const directory = await Directory.create();
  await directory.apply(
    object('networking', 'Gateway', 'public', {
      servers: [{ port: { number: port, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
    }),
    object('networking', 'VirtualService', 'public', {
      hosts: ['*'],
      gateways: ['public'],
      http: [
        route(201, { headers: { '@request.auth.claims.group': { exact: 'admin' } } }),
        route(202, { headers: { '@request.auth.claims.address.city': { prefix: 'Am' } } }),
        route(203, { headers: { '@request.auth.claims[https://shop.example/role][id]': { regex: '[0-9]+' } } }),
        route(204, { uri: { prefix: '/guests' }, withoutHeaders: { '@request.auth.claims.sub': { exact: 'alice' } } }),
        route(200),
      ],
    }),
    ...objects,
  );
  const { ca, settings } = await securePort();
  const program = await directory.start(settings);
  await program.logged('Ready');
  await program.logged('Signing certificates');
  const envoy = await startEnvoy({
    adsPort: program.serving.ports.secure!,
    delta: true,
    tls: await ca.certify('shop', 'router'),
    node: {
      id: 'router~127.0.0.1~router-1.shop~shop.svc.cluster.local',
      metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'router' },
    },
  });
  onTestFinished(() => envoy.stop());
  await envoy.ready();
  const ask = (claims?: object, path = '/'): Promise<number> => answer(port, path, claims);
  await poll('the router', () => ask().catch(() => undefined));
  return { directory, program, ask };
}

function answer(port: number, path: string, claims?: object): Promise<number> {
  const headers = { host: 'a.example', ...(claims && { authorization: `Bearer ${tokenOf(claims)}` }) };
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}

function tokenOf(claims: object): string {
  const part = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url');
  const signed = `${part({ alg: 'HS256', kid: 'a' })}.${part({ iss: 'issuer', exp: 4_000_000_000, ...claims })}`;
  return `${signed}.${createHmac('sha256', 'secret of the issuer').update(signed).digest('base64url')}`;
}

withPeers(['envoy'], 'a real Envoy as a router', () => {
  test('chooses the route by the claims of a verified token', async () => {
    const { program, ask } = await startRouter(tokens);
    expect(await ask()).toBe(200);
    expect(await ask({ group: 'admin' })).toBe(201);
    expect(await ask({ group: 'administrator' })).toBe(200);
    // One of a list is enough.
    expect(await ask({ group: ['users', 'admin'] })).toBe(201);
    expect(await ask({ group: ['users'] })).toBe(200);
    expect(await ask({ address: { city: 'Amsterdam' } })).toBe(202);
    expect(await ask({ 'address.city': 'Amsterdam' })).toBe(200);
    expect(await ask({ 'https://shop.example/role': { id: '17' } })).toBe(203);
    expect(await ask({ Group: 'admin' })).toBe(200);
    expect([await ask({ sub: 'alice' }, '/guests'), await ask({ sub: 'bob' }, '/guests')]).toEqual([200, 204]);
    expect(await ask(undefined, '/guests')).toBe(204);
    expect(await ask({ iss: 'nobody', group: 'admin' })).toBe(401);
    expect(program.log.filter(({ msg }) => msg === 'Proxy rejected resources')).toEqual([]);
  });

  test('does not believe a token that nothing verifies', async () => {
    const { directory, ask } = await startRouter();
    expect(await ask({ group: 'admin' })).toBe(200);
    await directory.apply(tokens);
    await poll('the claims', async () => ((await ask({ group: 'admin' })) === 201 ? true : undefined));
    await directory.delete(tokens);
    await poll('no claims', async () => ((await ask({ group: 'admin' })) === 200 ? true : undefined));
  });
});
