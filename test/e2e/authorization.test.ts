import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { judgeAtGateway } from '../../src/settle/access/gateway.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { runs } from '../../src/testing/runs.ts';
import { gateway, meshConfig, virtualService } from '../features/objects.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { startGrpcAuthorizer, startHttpAuthorizer } from './authorizers.ts';
import { type Received, jwks, startEcho, tokenOf } from './callers.ts';
import { anyClaim, pathsLike, readingOf } from './hostile-requests.ts';
import { askByHttp2 } from './http2-caller.ts';
import { type Caller, SecuredMesh, authorizationPolicy, requestAuthentication, staticEntry } from './secured-mesh.ts';

const CLIENT = 'cluster.local/ns/shop/sa/client';

const allow = (name: string, ...rules: object[]) => authorizationPolicy(name, { rules });
const deny = (name: string, ...rules: object[]) => authorizationPolicy(name, { action: 'DENY', rules });
const from = (source: object) => ({ from: [{ source }] });
const to = (operation: object) => ({ to: [{ operation }] });
const bearer = (claims: object) => ({ headers: { authorization: `Bearer ${tokenOf(claims)}` } });

/** The operator's tasks that everyone does with AuthorizationPolicies, with the answers that they promise. */
withPeers(['envoy'], 'AuthorizationPolicies before a real Envoy', () => {
  const onEnd = afterSuite();
  let mesh: SecuredMesh;
  let workload: Awaited<ReturnType<SecuredMesh['workload']>>;
  beforeAll(async () => {
    mesh = await SecuredMesh.start(onEnd);
    workload = await mesh.workload();
  });
  afterEach(() => mesh.reset());

  test('allow nothing, then reading, then orders of one account', async () => {
    const { http } = workload;
    const order = { method: 'POST', path: '/orders/7' };
    await http.answers([[{}, 200]]);
    await mesh.apply(authorizationPolicy('nothing', {}));
    await http.answers([
      [{}, 403],
      [{ as: 'client' }, 403],
    ]);
    expect(await http.reply({})).toMatchObject({ body: 'RBAC: access denied' });

    await mesh.apply(allow('reading', to({ methods: ['GET'] })));
    await http.answers([
      [{}, 200],
      [{ path: '/orders/7' }, 200],
      [{ ...order, as: 'client' }, 403],
    ]);

    await mesh.apply(
      allow('orders', { ...from({ principals: [CLIENT] }), ...to({ methods: ['POST'], paths: ['/orders/*'] }) }),
    );
    await http.answers([
      [{ ...order, as: 'client' }, 200],
      [{ ...order, as: 'stranger' }, 403],
      [order, 403],
      [{ ...order, as: 'client', path: '/orders' }, 403],
      [{ ...order, as: 'client', path: '/orders/../admin' }, 403],
      [{ ...order, as: 'client', method: 'PUT' }, 403],
    ]);

    await mesh.apply(allow('everything', {}));
    await http.answers([[order, 200]]);
  });

  test.each([
    ['principals', { principals: [CLIENT] }],
    ['principals by their end', { principals: ['*/ns/shop/sa/client'] }],
    ['namespaces', { namespaces: ['shop'] }],
    ['serviceAccounts', { serviceAccounts: ['client'] }],
    ['all but some principals', { principals: ['*'], notPrincipals: ['cluster.local/ns/other/sa/client'] }],
    ['all but some namespaces', { principals: ['*'], notNamespaces: ['other'] }],
  ])('a caller is known by %s', async (_, source) => {
    await mesh.apply(allow('known', from(source)));
    await workload.http.answers([
      [{ as: 'client' }, 200],
      [{ as: 'stranger' }, 403],
      [{}, 403],
    ]);
    await workload.tcp.answers([
      [{ as: 'client' }, 'echoed'],
      [{ as: 'stranger' }, 'closed'],
      [{}, 'closed'],
    ]);
  });

  test('conditions are about the connection and the request', async () => {
    const { http, ports } = workload;
    const sni = 'server.shop.svc.cluster.local';
    const from = { as: 'client', servername: sni, headers: { 'x-forwarded-for': '10.1.2.3' } } as const;
    const matches = async (key: string, ...values: string[]): Promise<void> => {
      await mesh.apply(allow('condition', { when: [{ key, values }] }));
      await http.answers([[from, 200]]);
      await mesh.apply(allow('condition', { when: [{ key, notValues: values }] }));
      await http.answers([[from, 403]]);
    };
    await matches('source.ip', '127.0.0.0/8');
    // A workload believes who connects, which is a proxy of the mesh or a gateway.
    await matches('remote.ip', '10.1.2.3');
    await matches('source.principal', CLIENT);
    await matches('source.namespace', 'shop');
    await matches('source.serviceAccount', 'shop/client');
    await matches('source.trustDomain', 'cluster.local');
    await matches('destination.ip', '127.0.0.1');
    await matches('destination.port', String(ports.http));
    await matches('connection.sni', sni);
    await matches('request.headers[x-forwarded-for]', '10.1.*');
  });

  test('a TCP port has ports, addresses and accounts, and nothing of HTTP', async () => {
    const { http, admin, tcp, ports } = workload;
    const onPort = (...some: number[]) => ({ ports: some.map(String) });
    await mesh.apply(allow('ports', to(onPort(ports.tcp, ports.http))));
    await tcp.answers([[{}, 'echoed']]);
    await http.answers([[{}, 200]]);
    await admin.answers([[{}, 403]]);

    // On TCP, a rule that allows requests with a method allows nothing.
    await mesh.apply(allow('ports', to({ ...onPort(ports.tcp, ports.http), methods: ['GET'] })));
    await tcp.answers([[{}, 'closed']]);
    await http.answers([
      [{}, 200],
      [{ method: 'POST' }, 403],
    ]);
    await mesh.delete(allow('ports'));

    // One that denies them denies everything on its ports.
    await mesh.apply(deny('ports', to({ ...onPort(ports.tcp, ports.http), methods: ['GET'] })));
    await tcp.answers([
      [{}, 'closed'],
      [{ as: 'client' }, 'closed'],
    ]);
    await http.answers([
      [{}, 403],
      [{ method: 'POST' }, 200],
    ]);
    await admin.answers([[{}, 200]]);

    await mesh.apply(deny('ports', { ...from({ principals: [CLIENT] }), ...to(onPort(ports.tcp)) }));
    await tcp.answers([
      [{ as: 'client' }, 'closed'],
      [{ as: 'stranger' }, 'echoed'],
    ]);
    await http.answers([[{ as: 'client' }, 200]]);
  });

  test('tokens are asked for their subject and their claims', async () => {
    const { http } = workload;
    const claims = (key: string, ...values: string[]) => ({ when: [{ key: `request.auth.claims[${key}]`, values }] });
    const alice = { iss: 'issuer', sub: 'alice' };
    await mesh.apply(
      requestAuthentication('tokens', { jwtRules: [{ issuer: 'issuer', jwks }] }),
      allow('tokens', from({ requestPrincipals: ['issuer/alice'] })),
    );
    await http.answers([
      [bearer(alice), 200],
      [bearer({ ...alice, sub: 'bob' }), 403],
      [{}, 403],
    ]);
    await mesh.apply(
      allow('tokens', {
        ...from({ requestPrincipals: ['issuer/*'] }),
        ...claims('groups', 'staff', 'editor*'),
      }),
    );
    await http.answers([
      [bearer({ ...alice, groups: ['readers', 'staff'] }), 200],
      [bearer({ ...alice, groups: 'staff' }), 200],
      [bearer({ ...alice, groups: ['editors'] }), 200],
      [bearer({ ...alice, groups: ['readers'] }), 403],
      [bearer(alice), 403],
    ]);
    await mesh.apply(allow('tokens', claims('shop][role', 'owner')));
    await http.answers([
      [bearer({ ...alice, shop: { role: 'owner' } }), 200],
      [bearer({ ...alice, shop: { role: 'guest' } }), 403],
      [bearer({ ...alice, 'shop.role': 'owner' }), 403],
    ]);
    // In a token, a scope is a list of words.
    await mesh.apply(allow('tokens', claims('scope', 'write')));
    await http.answers([
      [bearer({ ...alice, scope: 'read write' }), 200],
      [bearer({ ...alice, scope: 'read overwrite' }), 403],
    ]);
    await mesh.apply(allow('tokens', { when: [{ key: 'request.auth.audiences', values: ['shop'] }] }));
    await http.answers([
      [bearer({ ...alice, aud: 'shop' }), 200],
      [bearer({ ...alice, aud: ['bank', 'shop'] }), 200],
      [bearer({ ...alice, aud: 'bank' }), 403],
    ]);
  });

  test('a request principal may have slashes in its subject', async () => {
    const { http } = workload;
    const ci = 'https://ci.example';
    const main = { iss: ci, sub: 'repo:acme/site:ref:refs/heads/main' };
    const fork = { iss: ci, sub: 'repo:fork/site:ref:refs/heads/main' };
    const named = ['repo:acme/site:ref:refs/heads/main', 'repo:acme/*'].map((subject) => `${ci}/${subject}`);
    await mesh.apply(
      requestAuthentication('tokens', {
        jwtRules: [
          { issuer: ci, jwks },
          { issuer: 'issuer', jwks },
        ],
      }),
    );
    for (const principal of named) {
      const rule = from({ requestPrincipals: [principal] });
      await mesh.apply(allow('ci', rule));
      await http.answers([
        [bearer(main), 200],
        [bearer(fork), 403],
        [bearer({ ...main, iss: 'issuer' }), 403],
      ]);
      await mesh.apply(deny('ci', rule));
      await http.answers([
        [bearer(main), 403],
        [bearer(fork), 200],
      ]);
    }
    await mesh.apply(allow('ci', from({ requestPrincipals: ['*heads/main'] })));
    await http.answers([
      [bearer(main), 200],
      [bearer({ iss: ci, sub: 'main' }), 403],
    ]);
  });

  test('what is denied is denied in every spelling', async () => {
    const { http } = workload;
    await mesh.apply(deny('robots', from({ principals: [`spiffe://${CLIENT}`] })));
    await http.answers([
      [{ as: 'client' }, 403],
      [{ as: 'stranger' }, 200],
    ]);
    await mesh.apply(deny('robots', to({ paths: ['/users/{*}/delete', '/all/{**}'] })));
    const segments = ['1', '[', ']', 'a[b', '"', '<>', '^', '{*}', '|', '%5B', '`'];
    await http.answers([
      ...segments.map((segment) => [{ path: `/users/${segment}/delete` }, 403] as const),
      [{ path: '/all/a/[/b' }, 403],
      [{ path: '/users/[/more/delete' }, 200],
    ]);
    const controls = [...Array.from({ length: 32 }, (_, code) => code), 127].map((code) => String.fromCharCode(code));
    await Promise.all(
      controls.map(async (control) => {
        const answer = await askByHttp2(workload.ports.http, { ':path': `/users/${control}/delete` });
        expect(answer, JSON.stringify(control)).not.toMatchObject({ status: 200 });
      }),
    );
    await mesh.apply(deny('robots', to({ notPaths: ['/users/{*}'] })));
    await http.answers([
      [{ path: '/users/[' }, 200],
      [{ path: '/users/[/a' }, 403],
    ]);
    await mesh.apply(
      requestAuthentication('tokens', { jwtRules: [{ issuer: 'issuer', jwks }] }),
      deny('robots', from({ requestPrincipals: ['*'] })),
    );
    const subjects = ['a', 'a\nb', 'a/b', ''];
    await http.answers([
      ...subjects.map((sub) => [bearer({ iss: 'issuer', sub }), 403] as const),
      [bearer({ iss: 'issuer' }), 403],
      [{}, 200],
    ]);
    const role = (value: unknown) => bearer({ iss: 'issuer', sub: 'a', role: value });
    const denied = (...values: string[]) => deny('robots', { when: [{ key: 'request.auth.claims[role]', values }] });
    await mesh.apply(denied('*'));
    const values = ['x', 'a\nb', 5, true, false, { a: 1 }, [5], ['x'], [], '', null];
    await http.answers([
      ...values.map((value) => [role(value), 403] as const),
      [bearer({ iss: 'issuer', sub: 'a' }), 200],
    ]);
    await mesh.apply(denied('5', 'tr*'));
    await http.answers([
      ...[5, '5', [5], true, 'true', [true]].map((value) => [role(value), 403] as const),
      ...[6, false, 'false', [6]].map((value) => [role(value), 200] as const),
    ]);
    // What is allowed is a text, as in Istio.
    await mesh.apply(
      authorizationPolicy('robots', { rules: [{ when: [{ key: 'request.auth.claims[role]', values: ['*'] }] }] }),
    );
    await http.answers([
      ...['x', ['x']].map((value) => [role(value), 200] as const),
      ...[5, true, '', null].map((value) => [role(value), 403] as const),
    ]);
  });

  // What the workload reads must not be.
  const templates = [
    { key: 'paths', template: '/users/{*}/delete', denied: /^\/users\/[^/]+\/delete$/, path: '/users/1/delete' },
    { key: 'paths', template: '/all/{**}', denied: /^\/all\//, path: '/all/1' },
    { key: 'paths', template: '/{*}/delete/{**}', denied: /^\/[^/]+\/delete\//, path: '/users/delete/1' },
    { key: 'notPaths', template: '/users/{*}', denied: /^(?!\/users\/[^/]+$)/, path: '/users/1/2' },
  ];
  test.each(
    ['DEFAULT', 'DECODE_AND_MERGE_SLASHES'].flatMap((mode) => templates.map((template) => ({ mode, ...template }))),
  )('with paths as $mode, no spelling gets past $key $template', async ({ mode, key, template, denied, path }) => {
    const { http, ports } = workload;
    await mesh.apply(
      meshConfig(`pathNormalization: {normalization: ${mode}}\n`),
      deny('robots', to({ [key]: [template] })),
    );
    const control = [
      [{ path }, 403],
      [{ path: '/users/1' }, 200],
    ] as const;
    await http.answers(control);
    await fc.assert(
      fc.asyncProperty(pathsLike(template), async (spelled) => {
        const answers = [
          await askByHttp2(ports.http, { ':path': spelled, ':authority': 'server.shop' }),
          await http.reply({ path: spelled }),
        ];
        for (const answer of answers) {
          if (answer === 'closed' || answer.status !== 200) {
            expect(['closed', 400, 403]).toContain(answer === 'closed' ? answer : answer.status);
            continue;
          }
          const { url } = JSON.parse(answer.body) as Received;
          expect(readingOf(url, mode !== 'DEFAULT'), url).not.toMatch(denied);
        }
      }),
      { numRuns: runs(160) },
    );
    await http.answers(control);
  });

  test('no subject and no claim gets past a star', async () => {
    const { http } = workload;
    const statusOf = async (claims: object): Promise<unknown> => {
      const answer = await http.reply(bearer({ iss: 'issuer', sub: 'a', ...claims }));
      return answer === 'closed' ? answer : answer.status;
    };
    const when = (key: string) => ({ when: [{ key: `request.auth.claims${key}`, values: ['*'] }] });
    await mesh.apply(
      requestAuthentication('tokens', { jwtRules: [{ issuer: 'issuer', jwks }] }),
      deny('robots', when('[role]'), when('[shop][role]')),
    );
    await http.answers([
      [bearer({ iss: 'issuer', role: 'a' }), 403],
      [bearer({ iss: 'issuer' }), 200],
    ]);
    await fc.assert(
      fc.asyncProperty(anyClaim, async (value) => {
        const undenied = await statusOf({ other: value });
        // What Envoy does not take for JSON is not a valid token.
        const denied = undenied === 200 ? 403 : 401;
        expect(await statusOf({ role: value })).toBe(denied);
        expect(await statusOf({ shop: { role: value } })).toBe(denied);
      }),
      { numRuns: runs(160) },
    );
    await mesh.apply(deny('robots', from({ requestPrincipals: ['*'] })));
    await http.answers([
      [bearer({ iss: 'issuer' }), 403],
      [{}, 200],
    ]);
    await fc.assert(
      fc.asyncProperty(anyClaim, async (sub) => {
        expect([401, 403]).toContain(await statusOf({ sub }));
      }),
      { numRuns: runs(160) },
    );
    await http.answers([[{}, 200]]);
  });

  test('what is denied is not allowed, whatever else is', async () => {
    const { http } = workload;
    const role = (value: string) => ({ headers: { 'x-role': value } });
    await mesh.apply(
      allow('reading', to({ methods: ['GET'] })),
      deny('others', {
        ...to({ paths: ['/admin*'] }),
        when: [{ key: 'request.headers[x-role]', notValues: ['admin'] }],
      }),
    );
    await http.answers([
      [{}, 200],
      [{ path: '/admin' }, 403],
      [{ path: '/admin?x=/' }, 403],
      [{ path: '/admin', ...role('admin') }, 200],
      [{ path: '/admin', ...role('user') }, 403],
      // Not denied, but not allowed, either.
      [{ path: '/admin', ...role('admin'), method: 'POST' }, 403],
    ]);
    await mesh.apply(deny('everything', {}));
    await http.answers([
      [{}, 403],
      [{ path: '/admin', ...role('admin') }, 403],
    ]);
  });

  test('a policy is for the workloads that it selects, in its namespace, or in all from the root namespace', async () => {
    const { http } = workload;
    const nothing = (namespace: string, app: string) =>
      authorizationPolicy('selected', { selector: { matchLabels: { app } } }, namespace);
    await mesh.apply(nothing('shop', 'another'), nothing('elsewhere', 'server'));
    await http.answers([[{}, 200]]);
    await mesh.apply(nothing('shop', 'server'));
    await http.answers([[{}, 403]]);
    await mesh.delete(nothing('shop', 'server'));
    await http.answers([[{}, 200]]);
    await mesh.apply(nothing('istio-system', 'server'));
    await http.answers([[{}, 403]]);
  });

  test('a dry run counts what it would deny, and denies nothing', async () => {
    const { http, envoy } = workload;
    const dry = (name: string, spec: object) => authorizationPolicy(name, spec, 'shop', { 'istio.io/dry-run': 'true' });
    const counts = async () => {
      const stats = Object.entries(await envoy.stats('istio_dry_run'));
      const of = (name: string): number =>
        stats.filter(([stat]) => stat.endsWith(name)).reduce((sum, [, value]) => sum + value, 0);
      const [wouldDeny, wouldNot] = [of('_deny_.shadow_denied'), of('_deny_.shadow_allowed')];
      return {
        wouldDeny,
        wouldNot,
        wouldNotAllow: of('_allow_.shadow_denied'),
        wouldAllow: of('_allow_.shadow_allowed'),
      };
    };
    await mesh.apply(
      dry('reading', { rules: [to({ methods: ['GET'] })] }),
      dry('no-admin', { action: 'DENY', rules: [to({ paths: ['/admin'] })] }),
    );
    const before = await poll('the first count', async () => {
      await http.answers([[{ path: '/admin' }, 200]]);
      const found = await counts();
      return found.wouldDeny > 0 ? found : undefined;
    });
    expect(before).toMatchObject({ wouldNot: 0, wouldNotAllow: 0 });
    await http.answers([[{ path: '/public', method: 'POST' }, 200]]);
    expect(await counts()).toEqual({ ...before, wouldNot: 1, wouldNotAllow: 1 });

    await mesh.apply(deny('no-admin', to({ paths: ['/admin'] })));
    await http.answers([
      [{ path: '/public' }, 200],
      [{ path: '/admin' }, 403],
    ]);
  });

  test('an audit marks requests for the access log, and denies nothing', async () => {
    const log = join(await temporaryDirectory(), 'access.log');
    await mesh.apply(
      meshConfig(
        `accessLogFile: ${log}\naccessLogFormat: "%REQ(:path)%: %DYNAMIC_METADATA(envoy.common:access_log_hint)%\\n"\n`,
      ),
      authorizationPolicy('audit', { action: 'AUDIT', rules: [to({ paths: ['/marked'] })] }),
    );
    await workload.http.answers([
      [{ path: '/marked' }, 200],
      [{ path: '/other' }, 200],
    ]);
    await workload.envoy.admin('/reopen_logs', 'POST');
    const text = await poll('the log', async () => {
      const written = await readFile(log, 'utf8');
      return written.includes('/other') ? written : undefined;
    });
    expect(text).toContain('/marked: true');
    expect(text).not.toContain('/other: true');
  });

  test('a certificate of the trust domain from before is one of ours, and policies for it are', async () => {
    const { http } = workload;
    const policy = (domain: string) => allow('client', from({ principals: [`${domain}/ns/shop/sa/client`] }));
    const old = { secrets: await mesh.ca.certify('shop', 'client', 'old.example') };
    await mesh.apply(policy('old.example'));
    await http.answers([
      [{ as: 'client' }, 403],
      [old, 'closed'],
      [{}, 403],
    ]);
    await mesh.apply(meshConfig('trustDomainAliases: [old.example]\n'));
    await http.answers([
      [{ as: 'client' }, 200],
      [old, 200],
      [{ as: 'stranger' }, 403],
      [{}, 403],
    ]);
    await mesh.apply(policy('cluster.local'));
    await http.answers([
      [{ as: 'client' }, 200],
      [old, 200],
      [{ as: 'stranger' }, 403],
    ]);
    await mesh.apply(meshConfig(''));
    await http.answers([
      [{ as: 'client' }, 200],
      [old, 'closed'],
    ]);
  });

  describe('with an external authorizer', () => {
    let entries: readonly ReturnType<typeof staticEntry>[];
    beforeAll(async () => {
      entries = [
        staticEntry('authz-http', await startHttpAuthorizer(onEnd), 'HTTP'),
        staticEntry('authz-grpc', await startGrpcAuthorizer(onEnd), 'GRPC'),
        staticEntry('authz-down', (await freePorts(1))[0]!, 'HTTP'),
      ];
    });

    const http = (host: string, more = '') =>
      `- {name: ${host}, envoyExtAuthzHttp: {service: ${host}.example.com, port: 80${more}}}\n`;
    const providers = (...some: string[]) => meshConfig(`extensionProviders:\n${some.join('')}`);
    const ask = (provider: string, ...rules: object[]) =>
      authorizationPolicy('ask', { action: 'CUSTOM', provider: { name: provider }, rules });
    const pass = { headers: { 'x-pass': 'yes' } };

    test('it is asked about what the rules match, over HTTP', async () => {
      await mesh.apply(
        ...entries,
        providers(
          http(
            'authz-http',
            ', includeRequestHeadersInCheck: [x-pass], includeAdditionalHeadersInCheck: {x-from: proxy}, headersToUpstreamOnAllow: [x-asked], headersToDownstreamOnDeny: [x-reason]',
          ),
        ),
        ask('authz-http', to({ paths: ['/private/*'] })),
      );
      await workload.http.answers([
        [{}, 200],
        [{ path: '/private/a' }, 403],
        [{ path: '/private/a', headers: { 'x-pass': 'no' } }, 403],
        [{ path: '/private/a', ...pass }, 200],
      ]);
      const { headers } = await workload.http.received({
        path: '/private/a',
        headers: { 'x-pass': 'yes', 'x-secret': 'a', 'x-asked': 'forged' },
      });
      expect(headers['x-asked']).toBe('yes undefined proxy');
      const refused = await workload.http.reply({ path: '/private/a' });
      expect(refused).toMatchObject({ headers: { 'x-reason': 'no pass' } });
      expect(refused).not.toHaveProperty('headers.x-asked');

      // It cannot be asked about connections: a rule that matches them denies them.
      await workload.tcp.answers([[{}, 'closed']]);

      // What it allows may still be denied, and what is denied is asked about nevertheless.
      await mesh.apply(deny('no-a', to({ paths: ['/private/a'] })));
      await workload.http.answers([
        [{ path: '/private/a', ...pass }, 403],
        [{ path: '/private/b', ...pass }, 200],
        [{ path: '/private/b' }, 403],
      ]);
    });

    test('it is asked about requests and connections, over gRPC', async () => {
      await mesh.apply(
        ...entries,
        providers('- {name: grpc, envoyExtAuthzGrpc: {service: authz-grpc.example.com, port: 80}}\n'),
        ask('grpc', {}),
      );
      await workload.http.answers([
        [{ as: 'client' }, 200],
        [{ as: 'stranger' }, 403],
        [{}, 403],
      ]);
      await workload.tcp.answers([
        [{ as: 'client' }, 'echoed'],
        [{ as: 'stranger' }, 'closed'],
        [{}, 'closed'],
      ]);
      await mesh.apply(ask('grpc', to({ ports: [String(workload.ports.tcp)] })));
      await workload.http.answers([[{}, 200]]);
      await workload.tcp.answers([
        [{ as: 'client' }, 'echoed'],
        [{}, 'closed'],
      ]);
    });

    test('one that does not answer denies, unless its owner says otherwise', async () => {
      const answers = (status: number) =>
        workload.http.answers([
          [{ path: '/private', ...pass }, status],
          [{ path: '/public' }, 200],
        ]);
      await mesh.apply(...entries, providers(http('authz-down')), ask('authz-down', to({ paths: ['/private'] })));
      await answers(403);
      await mesh.apply(providers(http('authz-down', ', statusOnError: "503"')));
      await answers(503);
      await mesh.apply(providers(http('authz-down', ', failOpen: true')));
      await answers(200);
      // Nobody to ask.
      await mesh.apply(ask('unknown', to({ paths: ['/private'] })));
      await answers(403);
    });
  });

  describe('on a gateway', () => {
    let router: Awaited<ReturnType<SecuredMesh['router']>>;
    let port = 0;
    beforeAll(async () => {
      [port = 0] = await freePorts(1);
      router = await mesh.router();
    });

    const served = () => [
      gateway(
        'public',
        {
          selector: { istio: 'ingress' },
          servers: [{ port: { number: port, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
        },
        'edge',
      ),
      virtualService(
        'shop',
        {
          hosts: ['shop.example.com', 'bank.example.com'],
          gateways: ['public'],
          http: [
            {
              match: [{ headers: { '@request.auth.claims.groups': { exact: 'testers' } } }],
              route: [{ destination: { host: 'mirror.example.com' } }],
              headers: { request: { set: { 'x-version': 'new' } } },
            },
            { route: [{ destination: { host: 'mirror.example.com' } }] },
          ],
        },
        'edge',
      ),
    ];
    const ingress = (name: string, spec: object, namespace = 'edge') =>
      authorizationPolicy(name, { selector: { matchLabels: { istio: 'ingress' } }, ...spec }, namespace);
    const forwarded = (...addresses: string[]) => ({ headers: { 'x-forwarded-for': addresses.join(', ') } });

    test.each(['edge', 'istio-system'])('hosts and paths are denied from namespace %s', async (namespace) => {
      await mesh.apply(
        ...served(),
        ingress(
          'bank',
          { action: 'DENY', rules: [to({ hosts: ['bank.example.com', 'bank.example.com:*'], notPaths: ['/login'] })] },
          namespace,
        ),
      );
      await router.http(port).answers([
        [{}, 200],
        [{ host: 'bank.example.com' }, 403],
        [{ host: 'BANK.example.com' }, 403],
        [{ host: `bank.example.com:${port}` }, 403],
        [{ host: 'bank.example.com', path: '/login' }, 200],
        [{ host: 'bank.example.com', path: '/login/../' }, 403],
      ]);
    });

    test('ipBlocks are of who connects, remoteIpBlocks of who is behind as many proxies as are trusted', async () => {
      const { answers } = router.http(port);
      const policy = (source: object) => ingress('addresses', { rules: [from(source)] });
      await mesh.apply(...served(), policy({ ipBlocks: ['10.1.0.0/16'] }));
      await answers([
        [{}, 403],
        [forwarded('10.1.2.3'), 403],
      ]);
      await mesh.apply(policy({ ipBlocks: ['127.0.0.1'] }));
      await answers([
        [{}, 200],
        [forwarded('10.1.2.3'), 200],
      ]);
      // Nobody is trusted to say who is behind it.
      await mesh.apply(policy({ remoteIpBlocks: ['10.1.0.0/16'] }));
      await answers([
        [{}, 403],
        [forwarded('10.1.2.3'), 403],
      ]);
      await mesh.apply(meshConfig('defaultConfig: {gatewayTopology: {numTrustedProxies: 1}}\n'));
      await answers([
        [forwarded('10.1.2.3'), 200],
        [forwarded('10.1.2.3', '10.2.0.1'), 403],
        [forwarded('10.2.0.1', '10.1.2.3'), 200],
        [{}, 403],
      ]);
      await mesh.apply(meshConfig('defaultConfig: {gatewayTopology: {numTrustedProxies: 2}}\n'));
      await answers([
        [forwarded('10.1.2.3', '10.2.0.1'), 200],
        [forwarded('10.1.2.3', '10.2.0.1', '10.2.0.2'), 403],
      ]);
      await mesh.apply(policy({ ipBlocks: ['127.0.0.1'], notRemoteIpBlocks: ['10.1.0.0/16'] }));
      await answers([
        [forwarded('10.1.2.3', '10.2.0.1'), 403],
        [forwarded('10.3.2.3', '10.2.0.1'), 200],
      ]);
    });

    test('connections that are passed through are told apart by their server name', async () => {
      const [secure = 0] = await freePorts(1);
      await mesh.apply(
        staticEntry('secure', await startEcho(onTestFinished, mesh.clients.stranger), 'TLS', 'edge'),
        gateway(
          'secure',
          {
            selector: { istio: 'ingress' },
            servers: [
              { port: { number: secure, name: 'tls', protocol: 'TLS' }, hosts: ['*'], tls: { mode: 'PASSTHROUGH' } },
            ],
          },
          'edge',
        ),
        virtualService(
          'secure',
          {
            hosts: ['*.example.com'],
            gateways: ['secure'],
            tls: [
              {
                match: [{ sniHosts: ['*.example.com'] }],
                route: [{ destination: { host: 'secure.example.com', port: { number: 80 } } }],
              },
            ],
          },
          'edge',
        ),
        ingress('bank', {
          action: 'DENY',
          rules: [{ when: [{ key: 'connection.sni', values: ['bank.example.com'] }] }],
        }),
      );
      const to = (servername: string) => ({ as: 'anybody', servername }) as const;
      await router.tcp(secure).answers([
        [to('shop.example.com'), 'echoed'],
        [to('bank.example.com'), 'closed'],
        [to('shop.example.org'), 'closed'],
      ]);
    });

    test('explain access says what Envoy does: of server names, certificates and proxies in front', async () => {
      const [mutual = 0] = await freePorts(1);
      const server = (name: string, hosts: readonly string[], tls: object) => ({
        port: { number: mutual, name, protocol: 'HTTPS' },
        hosts,
        tls,
      });
      const clients = from({ principals: [CLIENT], remoteIpBlocks: ['10.1.0.0/16'] });
      await mesh.apply(
        ...served(),
        gateway(
          'mutual',
          {
            selector: { istio: 'ingress' },
            servers: [
              server('mesh', ['shop.example.com'], { mode: 'ISTIO_MUTUAL' }),
              server('also', ['*.example.org'], { mode: 'ISTIO_MUTUAL' }),
            ],
          },
          'edge',
        ),
        virtualService(
          'mutual',
          {
            hosts: ['*'],
            gateways: ['mutual'],
            http: [{ route: [{ destination: { host: 'mirror.example.com' } }] }],
          },
          'edge',
        ),
        ingress('clients', { rules: [clients, to({ paths: ['/open'], notHosts: ['a.example.org'] })] }),
        meshConfig('defaultConfig: {gatewayTopology: {numTrustedProxies: 2}}\n'),
      );
      const { engine } = mesh.program.serving;
      const { stream } = engine.ads.streams().find(({ nodeId }) => nodeId.startsWith('router~'))!;
      const access = engine.mesh.access.atGateway(stream)!;
      const judged = (to: number, { as, host, path = '/', headers = {} }: Caller) => {
        const namespace = as === 'client' ? 'shop' : 'other';
        const request = {
          peer: as === 'anybody' ? undefined : `spiffe://cluster.local/ns/${namespace}/sa/client`,
          port: to,
          sourceIp: '127.0.0.1',
          destinationIp: '127.0.0.1',
          http: { method: 'GET', path, host: host!, headers: Object.entries(headers) as [string, string][] },
        };
        const { verdict } = judgeAtGateway(access, request, 0);
        if (verdict.kind === 'unknown') expect.fail(verdict.dependsOn);
        return verdict.kind === 'denied' ? verdict.answer : 200;
      };
      const requests = [{}, { path: '/open' }, forwarded('10.1.2.3', '10.2.0.1'), forwarded('10.1.2.3')];
      const hosts = ['shop.example.com', 'a.example.org', 'b.a.example.org', 'example.org', 'bank.example.com'];
      const callers = (['client', 'stranger', 'anybody'] as const).flatMap((as) =>
        hosts.flatMap((host) => requests.map((request) => ({ as, host, servername: host, ...request }))),
      );
      const secure = callers.map((caller) => [caller, judged(mutual, caller)] as const);
      expect(new Set(secure.map(([, answer]) => answer))).toEqual(new Set([200, 403, 'closed']));
      await router.http(mutual).answers(secure);
      const plain = requests.map((request) => ({ host: 'shop.example.com', ...request }));
      const { answers } = router.http(port);
      await answers(plain.map((caller) => [caller, judged(port, { ...caller, as: 'anybody' })]));
    });

    test('tokens are verified, and choose routes', async () => {
      const { answers, received } = router.http(port);
      await mesh.apply(
        ...served(),
        requestAuthentication(
          'tokens',
          { selector: { matchLabels: { istio: 'ingress' } }, jwtRules: [{ issuer: 'issuer', jwks }] },
          'edge',
        ),
        ingress('tokens', { action: 'DENY', rules: [from({ notRequestPrincipals: ['*'] })] }),
      );
      const alice = { iss: 'issuer', sub: 'alice' };
      await answers([
        [{}, 403],
        [bearer(alice), 200],
        [{ headers: { authorization: `Bearer ${tokenOf(alice, 'another secret')}` } }, 401],
      ]);
      const version = async (claims: object) => (await received(bearer(claims))).headers['x-version'];
      expect(await version({ ...alice, groups: ['testers'] })).toBe('new');
      expect(await version({ ...alice, groups: ['readers'] })).toBeUndefined();
    });
  });
});
