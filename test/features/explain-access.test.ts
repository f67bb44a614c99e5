import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
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

async function run(where: readonly string[], ...args: readonly string[]) {
  let [out, err] = ['', ''];
  const code = await runCli(['explain', 'access', ...args, ...where], {
    program: () => Promise.resolve(createProgram()),
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env: {},
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

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

  test('a gateway is not a sidecar', async () => {
    const gateway = object('Gateway', 'shop/in', { spec: { selector: { app: 'server' }, servers: [] } });
    expect(await run(await serve(gateway), ...client)).toMatchObject({
      code: 2,
      err: expect.stringContaining('Gateway/shop/in'),
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
