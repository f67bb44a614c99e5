import { afterEach, beforeAll, expect, test } from 'vitest';
import { afterSuite } from '../../src/testing/on-end.ts';
import { meshConfig } from '../features/objects.ts';
import { withPeers } from '../peers/with-peers.ts';
import { jwks, tokenOf } from './callers.ts';
import { SecuredMesh, authorizationPolicy, peerAuthentication, requestAuthentication } from './secured-mesh.ts';

const tokens = (...jwtRules: object[]) => requestAuthentication('tokens', { jwtRules });
const issuer = { issuer: 'issuer', jwks };
const alice = { iss: 'issuer', sub: 'alice' };
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

withPeers(['envoy'], 'authentication before a real Envoy', () => {
  const onEnd = afterSuite();
  let mesh: SecuredMesh;
  let workload: Awaited<ReturnType<SecuredMesh['workload']>>;
  beforeAll(async () => {
    mesh = await SecuredMesh.start(onEnd);
    workload = await mesh.workload();
  });
  afterEach(() => mesh.reset());

  /** Who gets through to each port. */
  const modes = async (expected: Readonly<Record<'http' | 'admin', 'both' | 'mutual' | 'plaintext'>>) => {
    for (const port of ['http', 'admin'] as const)
      await workload[port].answers([
        [{}, expected[port] === 'mutual' ? 'closed' : 200],
        [{ as: 'client' }, expected[port] === 'plaintext' ? 'closed' : 200],
      ]);
  };

  test('the mode of a port wins over that of its workload, its namespace and the mesh', async () => {
    const selector = { matchLabels: { app: 'server' } };
    const mtls = (mode: string) => ({ mtls: { mode } });
    const ofMesh = (mode: string) => peerAuthentication('default', mtls(mode), 'istio-system');
    const ofNamespace = (mode: string) => peerAuthentication('default', mtls(mode));
    const ofWorkload = (mode: string, ports = {}) =>
      peerAuthentication('server', { selector, ...mtls(mode), portLevelMtls: ports });
    await modes({ http: 'both', admin: 'both' });
    await mesh.apply(ofMesh('STRICT'));
    await modes({ http: 'mutual', admin: 'mutual' });
    await mesh.apply(ofNamespace('UNSET'));
    await modes({ http: 'mutual', admin: 'mutual' });
    await mesh.apply(ofNamespace('PERMISSIVE'));
    await modes({ http: 'both', admin: 'both' });
    await mesh.apply(ofWorkload('STRICT'));
    await modes({ http: 'mutual', admin: 'mutual' });
    await mesh.apply(ofWorkload('STRICT', { [workload.ports.admin]: mtls('DISABLE').mtls }));
    await modes({ http: 'mutual', admin: 'plaintext' });
    await mesh.apply(ofWorkload('UNSET', { [workload.ports.admin]: mtls('STRICT').mtls }));
    await modes({ http: 'both', admin: 'mutual' });
    await mesh.delete(ofWorkload(''));
    await modes({ http: 'both', admin: 'both' });
    await mesh.delete(ofNamespace(''));
    await modes({ http: 'mutual', admin: 'mutual' });
    await mesh.delete(ofMesh(''));
    // One that selects workloads is only for its own namespace.
    await mesh.apply(peerAuthentication('server', { selector, ...mtls('STRICT') }, 'istio-system'));
    await modes({ http: 'both', admin: 'both' });
  });

  test('a token is verified if there is one, and demanded by a policy or a rule', async () => {
    const { http } = workload;
    const good = bearer(tokenOf(alice));
    await mesh.apply(tokens(issuer, { issuer: 'keyless' }));
    await http.answers([
      [{}, 200],
      [good, 200],
      [bearer(tokenOf(alice, 'another secret')), 401],
      [bearer(tokenOf({ ...alice, exp: 1_000_000_000 })), 401],
      [bearer(tokenOf({ ...alice, nbf: 3_900_000_000 })), 401],
      [bearer('no token'), 401],
      [bearer(tokenOf({ iss: 'nobody', sub: 'alice' })), 401],
      [bearer(tokenOf({ iss: 'keyless', sub: 'alice' })), 401],
      // Not a token.
      [{ headers: { authorization: 'Basic YWxpY2U6c2VjcmV0' } }, 200],
    ]);
    const demanding = (operation: object) =>
      authorizationPolicy('tokens', {
        action: 'DENY',
        rules: [{ from: [{ source: { notRequestPrincipals: ['*'] } }], to: [{ operation }] }],
      });
    await mesh.apply(demanding({ notPaths: ['/health'] }));
    await http.answers([
      [{}, 403],
      [good, 200],
      [{ path: '/health' }, 200],
      [{ path: '/health/../' }, 403],
      [{ ...bearer(tokenOf(alice, 'another secret')), path: '/health' }, 401],
    ]);
    await mesh.apply(demanding({ paths: ['/account*'] }));
    await http.answers([
      [{}, 200],
      [{ path: '/account' }, 403],
      [{ path: '/account?token=1' }, 403],
      [{ ...good, path: '/account' }, 200],
    ]);
    await mesh.delete(demanding({}));
    await mesh.apply(tokens({ ...issuer, presence: 'REQUIRED' }));
    await http.answers([
      [{}, 401],
      [good, 200],
    ]);
    await mesh.apply(tokens({ ...issuer, audiences: ['shop'] }));
    await http.answers([
      [good, 403],
      [bearer(tokenOf({ ...alice, aud: 'bank' })), 403],
      [bearer(tokenOf({ ...alice, aud: ['bank', 'shop'] })), 200],
    ]);
  });

  test('a token is looked for where the rule says', async () => {
    const { http } = workload;
    const token = tokenOf(alice);
    const required = authorizationPolicy('tokens', { rules: [{ from: [{ source: { requestPrincipals: ['*'] } }] }] });
    const places = {
      bearer: bearer(token),
      header: { headers: { 'x-token': `JWT ${token}` } },
      cookie: { headers: { cookie: `a=b; session=${token}` } },
      param: { path: `/?session=${token}` },
      default: { path: `/?access_token=${token}` },
    };
    const found = (...names: (keyof typeof places)[]) =>
      http.answers(
        (Object.keys(places) as (keyof typeof places)[]).map((name) => [
          places[name],
          names.includes(name) ? 200 : 403,
        ]),
      );
    await mesh.apply(required, tokens(issuer));
    await found('bearer', 'default');
    await mesh.apply(tokens({ ...issuer, fromHeaders: [{ name: 'x-token', prefix: 'JWT ' }] }));
    await found('header');
    await mesh.apply(tokens({ ...issuer, fromCookies: ['session'] }));
    await found('cookie');
    await mesh.apply(tokens({ ...issuer, fromParams: ['session'] }));
    await found('param');
    await mesh.apply(
      tokens({ ...issuer, fromHeaders: [{ name: 'x-token', prefix: 'JWT ' }], fromCookies: ['session'] }),
    );
    await found('header', 'cookie');
  });

  test('the workload gets the claims that it is to have, and nobody forges them', async () => {
    const { received } = workload.http;
    const token = tokenOf({ ...alice, shop: { role: 'owner' } });
    await mesh.apply(
      tokens({
        ...issuer,
        outputPayloadToHeader: 'x-payload',
        outputClaimToHeaders: [
          { header: 'x-subject', claim: 'sub' },
          { header: 'x-role', claim: 'shop.role' },
          { header: 'x-absent', claim: 'absent' },
        ],
      }),
    );
    await workload.http.answers([[bearer('no token'), 401]]);
    const forged = {
      ...{ 'x-subject': 'root', 'x-role': 'root', 'x-absent': 'root', 'x-payload': 'root' },
      // To CGI and WSGI, these are the same.
      ...{ x_subject: 'root', X_ROLE: 'root', x_payload: 'root' },
    };
    const { headers } = await received({ headers: { ...bearer(token).headers, ...forged } });
    expect(headers).toMatchObject({ 'x-subject': 'alice', 'x-role': 'owner' });
    expect(JSON.parse(Buffer.from(String(headers['x-payload']), 'base64url').toString())).toMatchObject(alice);
    for (const name of ['x-absent', 'x_subject', 'x_role', 'x_payload']) expect(headers).not.toHaveProperty(name);
    const preflight = {
      method: 'OPTIONS',
      headers: { ...forged, origin: 'http://a', 'access-control-request-method': 'GET' },
    };
    expect(Object.keys((await received(preflight)).headers).filter((name) => /^x[-_](su|ro|ab|pa)/.test(name))).toEqual(
      [],
    );
    // Others are those of the application.
    expect((await received({ headers: { x_request: 'own' } })).headers).toHaveProperty('x_request', 'own');
    // The token itself stays with the proxy.
    expect(headers.authorization).toBeUndefined();
    const without = (await received({ headers: forged })).headers;
    for (const name of Object.keys(forged)) expect([name, without[name.toLowerCase()]]).toEqual([name, undefined]);

    await mesh.apply(tokens({ ...issuer, forwardOriginalToken: true }));
    await workload.http.answers([[bearer(token), 200]]);
    expect((await received(bearer(token))).headers.authorization).toBe(`Bearer ${token}`);
  });

  test('no request gets past a rule in disguise where the protocol is detected', async () => {
    const { detected } = workload;
    const disguises = [
      // Servers skip an empty line before a request (RFC 9112, 2.2); to Envoy, it is not HTTP.
      () => detected.disguised('\r\n'),
      () => detected.disguised('', { as: 'client', alpn: ['istio'] }),
    ];
    const answers = async () => [await disguises[0]!(), await disguises[1]!()];
    await mesh.apply(tokens({ ...issuer, presence: 'REQUIRED' }));
    await detected.answers([
      [{}, 401],
      [bearer(tokenOf(alice)), 200],
      [{ as: 'client' }, 401],
    ]);
    expect(await answers()).toEqual(['closed', 'closed']);
    await mesh.apply(tokens({ ...issuer, outputClaimToHeaders: [{ header: 'x-subject', claim: 'sub' }] }));
    await detected.answers([[{}, 200]]);
    expect(await answers()).toEqual(['closed', 'closed']);
    // Whoever may come without a token need not disguise anything.
    await mesh.apply(tokens(issuer));
    await detected.answers([[{}, 200]]);
    expect(await answers()).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 200 OK']);
  });

  test('a token of one issuer does not cover a forged one of another', async () => {
    const { http } = workload;
    const subject = { outputClaimToHeaders: [{ header: 'x-subject', claim: 'sub' }] };
    const partner = { issuer: 'partner', jwks, fromHeaders: [{ name: 'x-partner' }], forwardOriginalToken: true };
    const bob = { iss: 'partner', sub: 'bob' };
    const both = (own: string, other: string) => ({ headers: { ...bearer(own).headers, 'x-partner': other } });
    await mesh.apply(tokens({ ...issuer, ...subject }, { ...partner, ...subject }));
    await http.answers([
      [{}, 200],
      [bearer(tokenOf(alice)), 200],
      [both(tokenOf(alice), tokenOf(bob)), 200],
      [both(tokenOf(alice), tokenOf(bob, 'another secret')), 401],
      [both(tokenOf(alice), 'no token'), 401],
      [both(tokenOf(alice, 'another secret'), tokenOf(bob)), 401],
      [{ headers: { 'x-partner': tokenOf(alice) } }, 401],
    ]);
    // What one issuer's token says is not lost where another issuer has none.
    expect((await http.received(bearer(tokenOf(alice)))).headers['x-subject']).toBe('alice');
    expect((await http.received({ headers: { 'x-partner': tokenOf(bob) } })).headers['x-subject']).toBe('bob');
    await mesh.apply(tokens({ ...issuer, presence: 'REQUIRED' }, partner));
    await http.answers([
      [bearer(tokenOf(alice)), 200],
      [both(tokenOf(alice), tokenOf(bob)), 200],
      [both(tokenOf(alice), tokenOf(bob, 'another secret')), 401],
      [{ headers: { 'x-partner': tokenOf(bob) } }, 401],
    ]);
    // Both look for tokens in the same header, and one in another, too.
    await mesh.apply(
      tokens(issuer, {
        ...partner,
        fromHeaders: [{ name: 'authorization', prefix: 'Bearer ' }, ...partner.fromHeaders],
      }),
    );
    await http.answers([
      [bearer(tokenOf(alice)), 200],
      [bearer(tokenOf(bob)), 200],
      [both(tokenOf(alice), tokenOf(bob)), 200],
      [both(tokenOf(alice), tokenOf(bob, 'another secret')), 401],
      [{ ...bearer(tokenOf(alice)), path: '/?access_token=forged' }, 401],
    ]);
  });

  test('tokens of several issuers are verified, each with its own keys', async () => {
    const other = JSON.stringify({
      keys: [{ kty: 'oct', kid: 'a', k: Buffer.from('another secret').toString('base64url') }],
    });
    await mesh.apply(
      tokens(issuer, { issuer: 'partner', jwks: other }),
      authorizationPolicy('tokens', {
        rules: [{ from: [{ source: { requestPrincipals: ['issuer/*', 'partner/bob'] } }] }],
      }),
    );
    await workload.http.answers([
      [bearer(tokenOf(alice)), 200],
      [bearer(tokenOf({ iss: 'partner', sub: 'bob' }, 'another secret')), 200],
      [bearer(tokenOf({ iss: 'partner', sub: 'alice' }, 'another secret')), 403],
      [bearer(tokenOf({ iss: 'partner', sub: 'bob' })), 401],
      [bearer(tokenOf(alice, 'another secret')), 401],
      [{}, 403],
    ]);
  });

  test('versions of TLS before 1.3 are refused where the mesh demands it', async () => {
    await mesh.apply(meshConfig('meshMTLS: {minProtocolVersion: TLSV1_3}\n'));
    await workload.http.answers([
      [{ as: 'client', maxVersion: 'TLSv1.2' }, 'closed'],
      [{ as: 'client' }, 200],
    ]);
  });
});
