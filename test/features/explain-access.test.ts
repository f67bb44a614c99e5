import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { explainAccess as run } from './explaining.ts';
import { Cluster, Directory } from './sources.ts';

const object = (kind: string, path: string, content: object, labels?: object): KubernetesObject => {
  const [namespace, name] = path.split('/');
  const group = /Policy$|Authentication$/.test(kind) ? 'security.istio.io/v1' : 'networking.istio.io/v1';
  const apiVersion = ['Pod', 'Service', 'ConfigMap'].includes(kind) ? 'v1' : group;
  const metadata = { name, namespace, ...(labels && { labels }) };
  return { apiVersion, kind, metadata, ...content } as unknown as KubernetesObject;
};

const labels = { app: 'server', 'security.istio.io/tlsMode': 'istio', 'pod-template-hash': 'abc' };
const pod = object(
  'Pod',
  'shop/server-abc-1',
  { spec: { serviceAccountName: 'server', containers: [] }, status: { podIP: '10.1.0.1', phase: 'Running' } },
  labels,
);
Object.assign(pod.metadata, {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'server-abc', uid: 'u', controller: true }],
});
const service = object('Service', 'shop/web', {
  spec: { clusterIP: '10.0.0.1', selector: { app: 'server' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
});
const policy = (name: string, spec: object) => object('AuthorizationPolicy', `shop/${name}`, { spec });
const readers = policy('readers', {
  rules: [
    { from: [{ source: { namespaces: ['nobody'] } }] },
    {
      from: [{ source: { principals: ['cluster.local/ns/shop/sa/client'] } }],
      to: [{ operation: { methods: ['GET'] } }],
    },
  ],
});

const sources = {
  directory: async (objects: readonly KubernetesObject[]) => {
    const directory = await Directory.create();
    await directory.apply(...objects);
    return ['--directory', directory.path];
  },
  cluster: async (objects: readonly KubernetesObject[]) => {
    const cluster = await Cluster.create();
    await cluster.apply(...objects);
    return ['--kubeconfig', cluster.kubeconfig];
  },
};

const client = ['--from', 'shop/client', '--to', 'shop/server'];

describe.each(Object.entries(sources))('in a %s', (source, open) => {
  const place = (text: string) =>
    source === 'directory' ? expect.stringMatching(`[.]yaml:[0-9]+: ${text}`) : expect.stringContaining(`  ${text}`);
  const serve = (...objects: readonly KubernetesObject[]) => open([pod, service, ...objects]);

  test('a rule that allows a request is named, and so are policies of which no rule does', async () => {
    const where = await serve(readers);
    const allowed = await run(where, ...client);
    expect(allowed).toMatchObject({ code: 0, err: '' });
    expect(allowed.out.split('\n')).toEqual([
      'allowed: a rule allows it, and none denies it',
      place(
        'AuthorizationPolicy/shop/readers: spec\\.rules\\[1\\]'.replaceAll('\\', source === 'directory' ? '\\' : ''),
      ),
      'note: using Pod/shop/server-abc-1 for shop/server',
      '',
    ]);
    const denied = await run(where, ...client, '--method', 'POST');
    expect(denied.code).toBe(1);
    expect(denied.out).toMatch(
      /^denied with 403: no rule of the ALLOW policies matches\n.*AuthorizationPolicy\/shop\/readers/,
    );
    // In plaintext, there is no identity.
    expect(await run(where, '--to', 'shop/server')).toMatchObject({ code: 1 });
  });

  test('the Pod, its workload and its Service are the same', async () => {
    const where = await serve(readers);
    for (const name of ['server-abc-1', 'server', 'web'])
      expect(
        await run(where, '--from', 'spiffe://cluster.local/ns/shop/sa/client', '--to', `shop/${name}`),
      ).toMatchObject({ code: 0 });
    const { code, err } = await run(where, '--to', 'shop/other');
    expect(code).toBe(2);
    expect(err).toBe(
      'error: --to: no Pod, workload, WorkloadEntry or Service other in namespace shop: the namespace has server-abc-1\n',
    );
  });

  test('the mode of mutual TLS counts, and is named', async () => {
    const strict = object('PeerAuthentication', 'shop/default', { spec: { mtls: { mode: 'STRICT' } } });
    const { code, out } = await run(await serve(strict), '--to', 'shop/server');
    expect(code).toBe(1);
    expect(out).toMatch(
      /^denied: the connection is closed: .* in plaintext\n.*PeerAuthentication\/shop\/default: spec\.mtls\.mode\n/,
    );
    const off = object('PeerAuthentication', 'shop/default', { spec: { mtls: { mode: 'DISABLE' } } });
    const without = await run(await serve(off, readers), ...client);
    expect(without.code).toBe(1);
    expect(without.out).toContain('note: port 8080 does not accept mutual TLS, so the request has no identity\n');
  });

  test('what cannot be said is not guessed', async () => {
    const where = await serve(
      policy('office', {
        rules: [{ from: [{ source: { ipBlocks: ['10.2.0.0/16'] } }], to: [{ operation: { paths: ['/a'] } }] }],
      }),
    );
    const unknown = await run(where, ...client, '--path', '/a');
    expect(unknown).toMatchObject({ code: 2 });
    expect(unknown.out).toMatch(/^unknown: it depends on the address of the client, which --source-ip specifies\n/);
    expect(await run(where, ...client, '--path', '/a', '--source-ip', '10.2.0.1')).toMatchObject({ code: 0 });
    // Whatever the address is.
    expect(await run(where, ...client, '--path', '/b')).toMatchObject({ code: 1 });
  });

  test('audits, dry runs and providers are told', async () => {
    const mesh = JSON.stringify({
      extensionProviders: [{ name: 'authz', envoyExtAuthzHttp: { service: 'web.shop.svc.cluster.local', port: 80 } }],
    });
    const dry = policy('dry', { rules: [{ to: [{ operation: { paths: ['/none'] } }] }] });
    Object.assign(dry.metadata, { annotations: { 'istio.io/dry-run': 'true' } });
    const { code, out } = await run(
      await serve(
        object('ConfigMap', 'istio-system/istio', { data: { mesh } }),
        policy('ask', { action: 'CUSTOM', provider: { name: 'authz' }, rules: [{}] }),
        policy('audit', { action: 'AUDIT', rules: [{}] }),
        dry,
      ),
      ...client,
    );
    expect(code).toBe(0);
    expect(out).toMatch(
      /note: asks the extension provider authz, which may deny it: .*AuthorizationPolicy\/shop\/ask: spec\.rules\[0\]\n/,
    );
    expect(out).toMatch(/note: is audited: .*AuthorizationPolicy\/shop\/audit/);
    expect(out).toContain('note: a dry run denies it\n');
  });

  test('tokens are verified with keys that are inline, or fetched', async () => {
    const key = { kty: 'oct', kid: 'a', k: Buffer.from('secret of the issuer').toString('base64url') };
    const jwks = JSON.stringify({ keys: [key] });
    const server = createServer((_, response) => response.end(jwks)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const jwksUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const users = policy('users', { rules: [{ from: [{ source: { requestPrincipals: ['*/alice'] } }] }] });
    const alice = await tokenFile({ sub: 'alice' });
    for (const [keys, ...more] of [
      [{ jwks }],
      [{ jwksUri, fromHeaders: [{ name: 'x-jwt' }] }, '--jwks-allowed-networks', '127.0.0.0/8'],
    ] as const) {
      const tokens = object('RequestAuthentication', 'shop/tokens', {
        spec: { jwtRules: [{ issuer: 'issuer', ...keys }] },
      });
      const where = [...(await serve(tokens, users)), ...more];
      expect(await run(where, ...client)).toMatchObject({ code: 1 });
      expect(await run(where, ...client, '--jwt', alice)).toMatchObject({ code: 0 });
      expect(await run(where, ...client, '--jwt', await tokenFile({ sub: 'bob' }))).toMatchObject({ code: 1 });
      const expired = await run(where, ...client, '--jwt', await tokenFile({ sub: 'alice', exp: 1 }));
      expect(expired.code).toBe(1);
      expect(expired.out).toMatch(
        /^denied with 401: the token has expired\n.*RequestAuthentication\/shop\/tokens: spec\.jwtRules\[0\]\n/,
      );
      const forged = await run(where, ...client, '--jwt', await tokenFile({ sub: 'alice' }, 'another secret'));
      expect(forged.out).toMatch(/^denied with 401: the token's signature/);
    }
    const tokens = object('RequestAuthentication', 'shop/tokens', {
      spec: { jwtRules: [{ issuer: 'issuer', jwksUri }] },
    });
    const notFetched = await run(await serve(tokens), ...client, '--jwt', alice);
    expect(notFetched.code).toBe(1);
    expect(notFetched.out).toMatch(/could not be fetched \(.*\); a running server may have them/);
  });

  test('a policy with errors is in force, and its owner is told', async () => {
    const { code, err } = await run(
      await serve(policy('typo', { rules: [{ when: [{ key: 'source.nme', values: ['a'] }] }] })),
      ...client,
    );
    expect(code).toBe(1);
    expect(err).toMatch(
      /AuthorizationPolicy\/shop\/typo: spec\.rules\[0\]\.when\[0\]\.key: "source\.nme" is not a known attribute/,
    );
  });

  describe('at a gateway', () => {
    const router = (more: object = {}) => ({
      ...object(
        'Pod',
        'edge/in-1',
        { spec: { serviceAccountName: 'in', containers: [] }, status: { podIP: '10.1.0.2', phase: 'Running' } },
        { istio: 'ingress', 'gateway.networking.k8s.io/gateway-name': 'in' },
      ),
      ...more,
    });
    const front = object('Service', 'edge/in', {
      spec: {
        clusterIP: '10.0.0.2',
        selector: { istio: 'ingress' },
        ports: [
          { name: 'http', port: 80, targetPort: 8080 },
          { name: 'https', port: 443, targetPort: 8443 },
        ],
      },
    });
    const gateway = (...servers: readonly object[]) =>
      object('Gateway', 'edge/in', { spec: { selector: { istio: 'ingress' }, servers } });
    const server = (number: number, protocol: string, more: object = {}) => ({
      port: { number, name: `p${number}`, protocol },
      hosts: ['*'],
      ...more,
    });
    const ingress = (name: string, spec: object, namespace = 'edge') =>
      object('AuthorizationPolicy', `${namespace}/${name}`, {
        spec: { selector: { matchLabels: { istio: 'ingress' } }, ...spec },
      });
    const serveAtEdge = (...objects: readonly KubernetesObject[]) => open([router(), front, ...objects]);
    const to = ['--to', 'edge/in'];

    test.each([
      ['a selector', { selector: { matchLabels: { istio: 'ingress' } } }],
      ['targetRefs', { targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'in' }] }],
    ])('policies with %s decide, and the ports are those of its servers', async (_, target) => {
      const policy = object('AuthorizationPolicy', 'edge/bank', {
        spec: {
          ...target,
          action: 'DENY',
          rules: [{ to: [{ operation: { hosts: ['bank.example.com', 'bank.example.com:*'], ports: ['8080'] } }] }],
        },
      });
      const where = await serveAtEdge(gateway(server(80, 'HTTP')), policy);
      const shop = await run(where, ...to, '--host', 'shop.example.com');
      expect(shop.out).toMatch(/^allowed: no policy denies it\n/);
      expect(shop).toMatchObject({ code: 0, err: '' });
      // By the port of the Service, which is that of the server, or by that of the workload.
      for (const port of [[], ['--port', '80'], ['--port', '8080']]) {
        const bank = await run(where, ...to, ...port, '--host', 'bank.example.com');
        expect(bank.out).toMatch(
          /^denied with 403: a rule denies it\n.*AuthorizationPolicy\/edge\/bank: spec\.rules\[0\]/,
        );
      }
      expect(await run(where, ...to)).toMatchObject({
        code: 2,
        out: expect.stringMatching(/^unknown: it depends on the host, which --host specifies\n/),
      });
      const other = await run(where, ...to, '--port', '9090');
      expect(other.out).toMatch(
        /^denied: the connection is closed: the workload does not accept connections on the port/,
      );
    });

    test('policies for others do not count: of another namespace, another Gateway, or for mutual TLS', async () => {
      const deny = { action: 'DENY', rules: [{}] };
      const refs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'out' }];
      const where = await serveAtEdge(
        gateway(server(80, 'HTTP')),
        ingress('foreign', deny, 'shop'),
        object('AuthorizationPolicy', 'edge/out', { spec: { targetRefs: refs, ...deny } }),
        object('PeerAuthentication', 'edge/default', { spec: { mtls: { mode: 'STRICT' } } }),
      );
      expect(await run(where, ...to)).toMatchObject({ code: 0 });
      // With one of the root namespace, nothing passes.
      const all = await serveAtEdge(gateway(server(80, 'HTTP')), ingress('all', deny, 'istio-system'));
      expect(await run(all, ...to)).toMatchObject({ code: 1 });
    });

    test('tokens are verified', async () => {
      const jwks = JSON.stringify({
        keys: [{ kty: 'oct', kid: 'a', k: Buffer.from('secret of the issuer').toString('base64url') }],
      });
      const tokens = object('RequestAuthentication', 'edge/tokens', {
        spec: { selector: { matchLabels: { istio: 'ingress' } }, jwtRules: [{ issuer: 'issuer', jwks }] },
      });
      const users = ingress('users', { rules: [{ from: [{ source: { requestPrincipals: ['*/alice'] } }] }] });
      const where = await serveAtEdge(gateway(server(80, 'HTTP')), tokens, users);
      expect(await run(where, ...to)).toMatchObject({ code: 1 });
      expect(await run(where, ...to, '--jwt', await tokenFile({ sub: 'alice' }))).toMatchObject({ code: 0 });
      const forged = await run(where, ...to, '--jwt', await tokenFile({ sub: 'alice' }, 'another secret'));
      expect(forged.out).toMatch(/^denied with 401: the token's signature.*\n.*RequestAuthentication\/edge\/tokens/);
    });

    test('clients have an identity only where the server asks for certificates', async () => {
      const tls = (mode: string) => server(8443, 'HTTPS', { tls: { mode, credentialName: 'pair' } });
      const mesh = server(8443, 'HTTPS', { tls: { mode: 'ISTIO_MUTUAL' } });
      const policy = ingress('clients', {
        rules: [
          {
            from: [{ source: { principals: ['cluster.local/ns/shop/sa/client'] } }],
            to: [{ operation: { paths: ['/a'] } }],
          },
        ],
      });
      const ask = async (servers: object, ...args: readonly string[]) =>
        (await run(await serveAtEdge(gateway(servers), policy), ...to, '--path', '/a', ...args)).out;
      const from = ['--from', 'shop/client'];
      expect(await ask(mesh, ...from)).toMatch(/^allowed: /);
      expect(await ask(mesh, '--from', 'shop/other')).toMatch(/^denied with 403/);
      expect(await ask(mesh)).toMatch(
        /^denied: the connection is closed: the server requires a certificate of the mesh.*\n.*Gateway\/edge\/in: spec\.servers\n/,
      );
      expect(await ask(mesh, '--from', 'spiffe://far/ns/shop/sa/client')).toMatch(/^unknown: .* trust domain\n/);
      expect(await ask(tls('SIMPLE'), ...from)).toMatch(
        /^denied with 403[^]*note: .* so the request has no identity\n/,
      );
      expect(await ask(tls('MUTUAL'), ...from)).toMatch(
        /^allowed[^]*note: assuming a client certificate for spiffe:\/\/cluster\.local\/ns\/shop\/sa\/client that the server accepts/,
      );
      expect(await ask(tls('MUTUAL'))).toMatch(/^unknown: it depends on the identity in the client's certificate/);
      // Whoever it is.
      expect(await ask(tls('MUTUAL'), '--path', '/b')).toMatch(/^denied with 403/);
      expect(await ask(tls('OPTIONAL_MUTUAL'))).toMatch(/^denied with 403/);
      expect(await ask(server(8443, 'HTTP'), ...from)).toMatch(/^denied with 403[^]*so the request has no identity\n/);
      // Where the Service's port is that of no server.
      expect(await ask(mesh, ...from, '--port', '443')).toMatch(
        /^allowed[^]*note: port 443 of the Service in front of the gateway is port 8443 of the workload\n/,
      );
    });

    test('server names choose the server, and connections that are forwarded have no requests', async () => {
      const routes = object('VirtualService', 'edge/bank', {
        spec: {
          hosts: ['*.example.com'],
          gateways: ['in'],
          tls: [{ match: [{ sniHosts: ['bank.example.com'] }], route: [{ destination: { host: 'in' } }] }],
        },
      });
      const where = await serveAtEdge(
        gateway(
          server(8443, 'HTTPS', { hosts: ['*.shop.com'], tls: { mode: 'SIMPLE', credentialName: 'pair' } }),
          server(8443, 'TLS', {
            port: { number: 8443, name: 'tls', protocol: 'TLS' },
            hosts: ['*.example.com'],
            tls: { mode: 'PASSTHROUGH' },
          }),
        ),
        routes,
        ingress('get', { rules: [{ to: [{ operation: { methods: ['GET'] } }] }] }),
        ingress('names', { action: 'DENY', rules: [{ when: [{ key: 'connection.sni', values: ['old.shop.com'] }] }] }),
      );
      const ask = async (...args: readonly string[]) => (await run(where, ...to, ...args)).out;
      expect(await ask('--host', 'new.shop.com:8443')).toMatch(/^allowed: a rule allows it/);
      expect(await ask('--host', 'old.shop.com')).toMatch(/^denied with 403: a rule denies it/);
      expect(await ask('--host', 'bank.example.com')).toMatch(
        /^denied: the connection is closed: no rule of the ALLOW/,
      );
      expect(await ask('--host', 'far.example.com')).toMatch(
        /^denied: the connection is closed: no server of the port/,
      );
      expect(await ask()).toMatch(
        /^unknown: it depends on the server name in the TLS handshake, for which --host stands\n/,
      );
    });

    test('proxies that are trusted say who is behind them', async () => {
      const policy = ingress('office', { rules: [{ from: [{ source: { remoteIpBlocks: ['10.2.0.0/16'] } }] }] });
      const annotations = { 'proxy.istio.io/config': 'gatewayTopology: {numTrustedProxies: 2}' };
      const trusting = router();
      const config = { ...trusting, metadata: { ...trusting.metadata, annotations } };
      const forwarded = ['--header', 'x-forwarded-for: 10.2.0.1, 10.3.0.1', '--source-ip', '10.4.0.1'];
      const objects = [front, gateway(server(80, 'HTTP')), policy];
      expect(await run(await open([router(), ...objects]), ...to, ...forwarded)).toMatchObject({ code: 1 });
      expect(await run(await open([config, ...objects]), ...to, ...forwarded)).toMatchObject({ code: 0 });
    });

    test('what it opens is told if there is not one port', async () => {
      const two = await run(await serveAtEdge(gateway(server(80, 'HTTP'), server(8443, 'HTTP'))), ...to);
      expect(two).toMatchObject({ code: 2, err: 'error: specify --port: it opens 8080, 8443\n' });
      const none = await run(await serveAtEdge(), ...to);
      expect(none.err).toBe('error: specify --port: no server of a Gateway opens a port of the workload\n');
    });
  });
});

test('a cluster that does not answer is an error that says so', async () => {
  const cluster = await Cluster.create();
  await cluster.server.stop();
  const { code, err } = await run(['--kubeconfig', cluster.kubeconfig], ...client);
  expect(code).toBe(2);
  expect(err).toMatch(/^error: the cluster cannot be read: .*ECONNREFUSED.*; check --kubeconfig/);
});

async function tokenFile(claims: object, secret = 'secret of the issuer'): Promise<string> {
  const part = (json: object): string => Buffer.from(JSON.stringify(json)).toString('base64url');
  const signed = `${part({ alg: 'HS256', kid: 'a' })}.${part({ iss: 'issuer', exp: 4_000_000_000, ...claims })}`;
  const file = join(await temporaryDirectory(), 'token');
  await writeFile(file, `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}\n`);
  return file;
}
