import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { keySet, keys } from '../../src/reconcilers/security/testing/keys.ts';
import { testProtos } from '../harness/mesh.ts';
import { object } from './objects.ts';
import { LDS, type Proxy } from './proxy.ts';
import { reviews } from './shop.ts';
import { Directory } from './sources.ts';

const HOUR = 3_600_000;

/** A server of keys, and what it says. */
async function issuer() {
  const said = { status: 200, body: keySet(keys.p256) };
  const server = createServer((_, response) => response.writeHead(said.status).end(said.body));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { said, jwksUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys` };
}

const policy = (jwksUri: string) =>
  object('security.istio.io/v1', 'RequestAuthentication', 'tokens', {
    spec: { jwtRules: [{ issuer: 'i', jwksUri, presence: 'REQUIRED' }] },
  });

/** All that the proxy's inbound listener says. */
const inbound = (proxy: Proxy): string =>
  JSON.stringify(testProtos().toJson(types.listener, proxy.held(LDS).get('virtualInbound')!));

const x = { old: keys.p256.x!, new: keys.p384.x! };

test('keys are fetched and served; when their server fails, the last ones stay, and the owner reads why', async () => {
  const { said, jwksUri } = await issuer();
  const directory = await Directory.create();
  await directory.apply(...reviews, policy(jwksUri));
  const program = await directory.start({ jwksAllowedNetworks: '127.0.0.0/8' });
  const proxy = await program.connect(true);
  await program.sent(proxy, (p) => expect(inbound(p)).toContain(x.old));

  said.status = 503;
  program.clock.skip(HOUR);
  expect(await program.reported('RequestAuthentication/shop/tokens')).toEqual([
    expect.stringMatching(/^spec\.jwtRules\[0\]\.jwksUri: The keys at .*HTTP status 503.*stay in use/),
  ]);
  expect((await program.reported('RequestAuthentication/shop/tokens')).join()).toContain(jwksUri);
  expect(await program.logged('Object has a problem')).toMatchObject({
    object: 'RequestAuthentication/shop/tokens',
    field: 'spec.jwtRules[0].jwksUri',
    reason: 'RefNotFound',
  });
  await program.settled();
  expect(inbound(proxy)).toContain(x.old);

  Object.assign(said, { status: 200, body: keySet(keys.p384) });
  program.clock.skip(HOUR);
  await program.sent(proxy, (p) => expect(inbound(p)).toContain(x.new));
  expect(inbound(proxy)).not.toContain(x.old);
});

test('an address that is not public is not called unless that is allowed; no token is accepted', async () => {
  const { jwksUri } = await issuer();
  const directory = await Directory.create();
  await directory.apply(...reviews, policy(jwksUri));
  const program = await directory.start();
  const proxy = await program.connect(true);
  expect(await program.reported('RequestAuthentication/shop/tokens')).toEqual([
    expect.stringMatching(/127\.0\.0\.1 is not a public address.*jwks-allowed-networks.*no token of this issuer/),
  ]);
  await program.settled();
  expect(inbound(proxy)).toContain('origins-0');
  expect(inbound(proxy)).not.toContain(x.old);
});
