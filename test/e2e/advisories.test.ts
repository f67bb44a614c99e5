import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { destinationRule, gateway, meshConfig, object, serviceEntry, virtualService } from '../features/objects.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { withPeers } from '../peers/with-peers.ts';
import { jwks, startEcho, tokenOf } from './callers.ts';
import { SecuredMesh, authorizationPolicy, peerAuthentication, requestAuthentication } from './secured-mesh.ts';

const allow = (...rules: object[]) => authorizationPolicy('rules', { rules });
const deny = (...rules: object[]) => authorizationPolicy('rules', { action: 'DENY', rules });
const from = (source: object) => ({ from: [{ source }] });
const to = (operation: object) => ({ to: [{ operation }] });

/** What was possible once in Istio or Envoy; the name of each test begins with where one can read of it. */
withPeers(['envoy'], 'an advisory, tried on a real Envoy', () => {
  const onEnd = afterSuite();
  let mesh: SecuredMesh;
  let workload: Awaited<ReturnType<SecuredMesh['workload']>>;
  beforeAll(async () => {
    mesh = await SecuredMesh.start(onEnd);
    workload = await mesh.workload();
  });
  afterEach(() => mesh.reset());

  test('CVE-2021-31920: slashes that are repeated or escaped are other paths, unless the mesh config merges them', async () => {
    await mesh.apply(deny(to({ paths: ['/admin', '/admin/*'] })));
    const [repeated, escaped] = [{ path: '//admin' }, { path: '/x%2f..%2fadmin' }];
    const always: [object, number][] = [
      [{ path: '/admin' }, 403],
      [{ path: '/x/../admin' }, 403],
      [{ path: '/./admin' }, 403],
      [{ path: '/%61dmin' }, 403],
      [{}, 200],
    ];
    await workload.http.answers([...always, [repeated, 200], [escaped, 200]]);
    await mesh.apply(meshConfig('pathNormalization: {normalization: MERGE_SLASHES}\n'));
    await workload.http.answers([...always, [repeated, 403], [escaped, 200]]);
    await mesh.apply(meshConfig('pathNormalization: {normalization: DECODE_AND_MERGE_SLASHES}\n'));
    await workload.http.answers([...always, [repeated, 403], [escaped, 403]]);
  });

  test('CVE-2020-8595, CVE-2021-39156: a query or a fragment is not part of the path', async () => {
    await mesh.apply(deny(to({ paths: ['/admin'] })));
    await workload.http.answers([
      [{ path: '/admin?x' }, 403],
      [{ path: '/admin#x' }, 403],
      [{ path: '/admin?x#/public' }, 403],
      [{ path: '/public?/admin' }, 200],
    ]);
    await mesh.apply(allow(to({ paths: ['/public', '*.css'] })));
    await workload.http.answers([
      [{ path: '/public?x' }, 200],
      [{ path: '/admin?x.css' }, 403],
      [{ path: '/admin#x.css' }, 403],
    ]);
  });

  test('CVE-2023-27487: no header says what the path was', async () => {
    const bob = { headers: { 'x-envoy-original-path': '/public' } };
    await mesh.apply(
      requestAuthentication('tokens', { jwtRules: [{ issuer: 'issuer', jwks }] }),
      deny({ ...from({ notRequestPrincipals: ['*'] }), ...to({ notPaths: ['/public'] }) }),
    );
    await workload.http.answers([
      [{ path: '/public' }, 200],
      [{ path: '/admin' }, 403],
      [{ path: '/admin', ...bob }, 403],
      [{ path: '/admin', headers: { ...bob.headers, authorization: 'Bearer x' } }, 401],
    ]);
  });

  test('CVE-2021-39155: a host is the same in any case, and a path is not', async () => {
    await mesh.apply(deny(to({ hosts: ['Bank.example.com', '*.inner.example.com'] }), to({ paths: ['/admin'] })));
    await workload.http.answers([
      [{ host: 'bank.example.com' }, 403],
      [{ host: 'BANK.EXAMPLE.COM' }, 403],
      [{ host: 'a.INNER.example.com' }, 403],
      [{ host: 'shop.example.com' }, 200],
      [{ path: '/Admin' }, 200],
    ]);
  });

  test('ISTIO-SECURITY-2021-008: a host with a port or a trailing dot is another one, and can be named', async () => {
    const hosts = ['bank.example.com'];
    await mesh.apply(deny(to({ hosts })));
    await workload.http.answers([
      [{ host: 'bank.example.com' }, 403],
      [{ host: 'bank.example.com:80' }, 200],
      [{ host: 'bank.example.com.' }, 200],
    ]);
    await mesh.apply(deny(to({ hosts: [...hosts, 'bank.example.com:*', 'bank.example.com.'] })));
    await workload.http.answers([
      [{ host: 'bank.example.com:80' }, 403],
      [{ host: 'bank.example.com.' }, 403],
      [{ host: 'shop.example.com' }, 200],
    ]);
  });

  test('CVE-2026-39350: a dot in a name is a dot', async () => {
    const secrets = {
      dotted: await mesh.ca.certify('sh.op', 'cli.ent'),
      similar: await mesh.ca.certify('sh-op', 'cli-ent'),
    };
    for (const source of [
      { serviceAccounts: ['sh.op/cli.ent'] },
      { namespaces: ['sh.op'] },
      { namespaces: ['s*.op'] },
      { principals: ['*/sa/cli.ent'] },
      { trustDomains: ['*.local'], principals: ['*.ent'] },
    ]) {
      await mesh.apply(allow(from(source)));
      await workload.http.answers([
        [{ secrets: secrets.dotted }, 200],
        [{ secrets: secrets.similar }, 403],
      ]);
    }
  });

  test('ISTIO-SECURITY-2021-004: who is nobody is not one of those that are excepted, unless mutual TLS is demanded', async () => {
    for (const source of [
      { notPrincipals: ['cluster.local/ns/other/sa/client'] },
      { notNamespaces: ['other'] },
      { notServiceAccounts: ['other/client'] },
    ]) {
      await mesh.apply(allow(from(source)));
      await workload.http.answers([
        [{ as: 'client' }, 200],
        [{ as: 'stranger' }, 403],
        [{}, 200],
      ]);
    }
    await mesh.apply(peerAuthentication('default', { mtls: { mode: 'STRICT' } }));
    await workload.http.answers([
      [{ as: 'client' }, 200],
      [{}, 'closed'],
    ]);
  });

  test('ISTIO-SECURITY-2021-001: with several issuers, a token of another one is not taken for none', async () => {
    const rule = (issuer: string) => ({ issuer, jwks });
    const bearer = (iss: string) => ({ headers: { authorization: `Bearer ${tokenOf({ iss, sub: 'a' })}` } });
    await mesh.apply(requestAuthentication('tokens', { jwtRules: [rule('one'), rule('two')] }));
    await workload.http.answers([
      [bearer('one'), 200],
      [bearer('two'), 200],
      [bearer('three'), 401],
      [{}, 200],
    ]);
  });

  test('CVE-2026-26308: each line of a repeated header is compared, and a list in one line is one value', async () => {
    const role = (value: string | string[]) => ({ headers: { 'x-role': value } });
    const when = (value: string) => ({ when: [{ key: 'request.headers[x-role]', values: [value] }] });
    await mesh.apply(deny(when('guest')));
    await workload.http.answers([
      [role('guest'), 403],
      [role(['admin', 'guest']), 403],
      [role(['guest', 'admin']), 403],
      [role('admin,guest'), 200],
      [role('admin'), 200],
    ]);
  });

  test('CVE-2025-46821: a star in a path is matched by a template like any other character', async () => {
    await mesh.apply(deny(to({ paths: ['/files/{*}/secret', '/private/{**}'] })));
    await workload.http.answers([
      [{ path: '/files/a/secret' }, 403],
      [{ path: '/files/a*b/secret' }, 403],
      [{ path: '/private/a/*' }, 403],
      [{ path: '/files/a/b/secret' }, 200],
    ]);
  });

  test('CVE-2026-73553, CVE-2026-73511: parameters of a path are part of it', async () => {
    await mesh.apply(deny(to({ paths: ['/admin'] })));
    await workload.http.answers([
      [{ path: '/admin' }, 403],
      [{ path: '/admin;x=y' }, 200],
    ]);
    await mesh.apply(deny(to({ paths: ['/admin', '/admin;*'] })));
    await workload.http.answers([[{ path: '/admin;x=y' }, 403]]);
  });

  test('CVE-2019-12243: policies are on every port, and on connections to ports that nobody named', async () => {
    await mesh.apply(authorizationPolicy('nothing', {}, 'istio-system'));
    await workload.http.answers([[{ as: 'client' }, 403]]);
    await workload.detected.answers([[{ as: 'client' }, 403]]);
    await workload.tcp.answers([[{ as: 'client' }, 'closed']]);
    const [inbound, outbound] = await freePorts(2);
    await mesh.apply(meshConfig(`proxyInboundListenPort: ${inbound}\nproxyListenPort: ${outbound}\n`));
    const envoy = await mesh.redirected('other');
    const { listeners } = await envoy.configDump();
    const { filter_chains: chains } = listeners.find(({ name }) => name === 'virtualInbound')!
      .resource as unknown as Listener;
    const guards = chains
      .filter(({ name }) => name !== 'virtualInbound-blackhole')
      .map(({ filters }) => /envoy\.filters\.(http|network)\.rbac/.exec(JSON.stringify(filters))?.[1]);
    expect(new Set(guards)).toEqual(new Set(['http', 'network']));
    await envoy.stop();
  });

  describe('on a gateway', () => {
    let router: Awaited<ReturnType<SecuredMesh['router']>>;
    let [web, secure, tcp]: number[] = [];
    beforeAll(async () => {
      [web, secure, tcp] = await freePorts(3);
      router = await mesh.router();
    });

    const to = (host: string) => [{ destination: { host: `${host}.example.com`, port: { number: 80 } } }];
    const served = (...servers: object[]): KubernetesObject[] => [
      gateway('public', { selector: { istio: 'ingress' }, servers }, 'edge'),
      virtualService(
        'http',
        {
          hosts: ['*'],
          gateways: ['public'],
          http: [
            {
              match: [{ uri: { exact: '/admin' } }],
              route: to('mirror'),
              headers: { request: { set: { 'x-admin': 'chosen' } } },
            },
            { route: to('mirror') },
          ],
        },
        'edge',
      ),
      virtualService(
        'tcp',
        { hosts: ['*'], gateways: ['public'], tcp: [{ match: [{ port: tcp }], route: to('echo') }] },
        'edge',
      ),
    ];
    const server = (number: number, protocol: string, tls?: object) => ({
      port: { number, name: protocol.toLowerCase(), protocol },
      hosts: ['*'],
      ...(tls && { tls }),
    });
    const policy = (spec: object) => authorizationPolicy('edge', spec, 'edge');

    test('CVE-2021-31920: paths are normalized as they are for workloads', async () => {
      await mesh.apply(
        ...served(server(web!, 'HTTP')),
        policy({ action: 'DENY', rules: [{ to: [{ operation: { paths: ['/admin'] } }] }] }),
      );
      const { answers } = router.http(web!);
      await answers([
        [{ path: '/admin' }, 403],
        [{ path: '/x/../admin?x' }, 403],
        [{ path: '//admin' }, 200],
      ]);
      await mesh.apply(meshConfig('pathNormalization: {normalization: DECODE_AND_MERGE_SLASHES}\n'));
      await answers([
        [{ path: '//admin' }, 403],
        [{ path: '/x%2f..%2fadmin' }, 403],
      ]);
    });

    test('CVE-2026-73511: routes heed the parameters of a path, as policies do', async () => {
      await mesh.apply(...served(server(web!, 'HTTP')));
      const { received, answers } = router.http(web!);
      await answers([[{ path: '/admin' }, 200]]);
      expect((await received({ path: '/admin' })).headers['x-admin']).toBe('chosen');
      expect((await received({ path: '/admin;x=y' })).headers['x-admin']).toBeUndefined();
    });

    test('CVE-2020-16844: the end of a principal is that of an identity of the mesh, and not of any URI', async () => {
      const openssl = new OpenSsl();
      openssl.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
      const certify = (uri: string) => {
        openssl.request('ec -pkeyopt ec_paramgen_curve:P-256');
        openssl.write('leaf.ext', `subjectAltName=URI:${uri}\n`);
        openssl.run('x509 -req -in request.pem -CA ca.pem -CAkey ca.key -days 5 -extfile leaf.ext -out leaf.pem');
        return { certificate: openssl.read('leaf.pem') + openssl.read('ca.pem'), key: openssl.read('request.key') };
      };
      const [own, other] = [certify('spiffe://partner/ns/a/sa/b'), certify('https://partner/ns/a/sa/b')];
      const secret = (name: string, stringData: object) => object('v1', 'Secret', name, { stringData }, 'edge');
      await mesh.apply(
        secret('web', { 'tls.crt': own.certificate, 'tls.key': own.key, 'ca.crt': openssl.read('root.pem') }),
        ...served(server(secure!, 'HTTPS', { mode: 'MUTUAL', credentialName: 'web' })),
      );
      const { answers } = router.http(secure!);
      await answers([
        [{ secrets: own }, 200],
        [{ secrets: other }, 200],
      ]);
      await mesh.apply(policy({ rules: [{ from: [{ source: { principals: ['*/ns/a/sa/b'] } }] }] }));
      await answers([
        [{ secrets: own }, 200],
        [{ secrets: other }, 403],
      ]);
    });

    test('ISTIO-SECURITY-2021-002: a port is the one that the router listens on, and not that of its Service', async () => {
      const ports = [{ name: 'http', port: 80, targetPort: web }];
      const service = object(
        'v1',
        'Service',
        'ingress',
        { spec: { clusterIP: '10.96.0.9', selector: { istio: 'ingress' }, ports } },
        'edge',
      );
      const onPort = (port: number) =>
        policy({ action: 'DENY', rules: [{ to: [{ operation: { ports: [String(port)] } }] }] });
      await mesh.apply(service, ...served(server(80, 'HTTP')), onPort(80));
      const { answers } = router.http(web!);
      await answers([[{}, 200]]);
      await mesh.apply(onPort(web!));
      await answers([[{}, 403]]);
    });

    test('ISTIO-SECURITY-2020-011: with the PROXY protocol, ipBlocks are of who connects, and remoteIpBlocks of who it says', async () => {
      const behind = (address: string) => ({ preface: `PROXY TCP4 ${address} 127.0.0.1 1000 ${tcp}\r\n` });
      const only = (source: object) => policy({ rules: [{ from: [{ source }] }] });
      await mesh.apply(
        meshConfig('defaultConfig: {gatewayTopology: {proxyProtocol: {}}}\n'),
        ...served(server(tcp!, 'TCP')),
        only({ ipBlocks: ['10.1.0.0/16'] }),
      );
      const { answers } = router.tcp(tcp!);
      await answers([[behind('10.1.2.3'), 'closed']]);
      await mesh.apply(only({ ipBlocks: ['127.0.0.1'] }));
      await answers([[behind('10.1.2.3'), 'echoed']]);
      await mesh.apply(only({ remoteIpBlocks: ['10.1.0.0/16'] }));
      await answers([
        [behind('10.1.2.3'), 'echoed'],
        [behind('10.2.2.3'), 'closed'],
      ]);
    });

    test('CVE-2021-31921: by AUTO_PASSTHROUGH, only what speaks mutual TLS is reached, and only by who does', async () => {
      const echo = await startEcho(onEnd, await mesh.ca.certify('shop', 'server'));
      const entry = (name: string, more: object, labels: object = {}) =>
        serviceEntry(
          name,
          {
            hosts: [`${name}.example.com`],
            ports: [{ number: 80, name: 'tcp', protocol: 'TCP' }],
            resolution: 'STATIC',
            location: 'MESH_INTERNAL',
            endpoints: [{ address: '127.0.0.1', ports: { tcp: echo }, labels }],
            ...more,
          },
          'edge',
        );
      const secured = { 'security.istio.io/tlsMode': 'istio' };
      await mesh.apply(
        entry('secured', {}, secured),
        entry('plain', {}),
        destinationRule('secured', { host: 'secured.example.com', subsets: [{ name: 'V1', labels: secured }] }, 'edge'),
        entry('external', { location: 'MESH_EXTERNAL' }, secured),
        ...served(server(web!, 'HTTP'), server(secure!, 'TLS', { mode: 'AUTO_PASSTHROUGH' })),
      );
      await router.http(web!).answers([[{}, 200]]);
      const named = (host: string) => ({ as: 'client' as const, servername: `outbound_.80_._.${host}.example.com` });
      await router.tcp(secure!).answers([
        [named('secured'), 'echoed'],
        [{ as: 'client', servername: 'outbound_.80_.V1_.secured.example.com' }, 'echoed'],
        [{ ...named('secured'), alpn: ['h2'] }, 'closed'],
        [{}, 'closed'],
        [named('plain'), 'closed'],
        [named('external'), 'closed'],
      ]);
    });
  });
});

interface Listener {
  readonly filter_chains: readonly { readonly name: string; readonly filters: readonly object[] }[];
}
