import { copyFile, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kindOf } from '../../src/api/kinds.ts';
import { createProtos } from '../../src/envoy/encode/proto.ts';
import { startEngine } from '../../src/engine/engine.ts';
import { defaultMeshOptions } from '../../src/mesh/inputs.ts';
import { readObjects } from '../harness/mesh.ts';
import { startEnvoy } from '../peers/envoy.ts';
import { createAuthority } from '../peers/keys.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';

withPeers(['envoy'], 'a router of several tenants', () => {
  let directory = '';
  const path = (name: string) => join(directory, name);
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fairlead-tenants-'));
    const authority = await createAuthority();
    for (const host of ['good', 'other']) {
      const { certificate, key } = await authority.server([`${host}.example.com`]);
      await writeFile(path(`${host}.crt`), certificate);
      await writeFile(path(`${host}.key`), key);
    }
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  test('has the certificate of a mounted Secret that changed', async () => {
    const [port = 0] = await freePorts(1);
    const mount = path('mount');
    const turnTo = async (host: string): Promise<void> => {
      await mkdir(join(mount, `..${host}`), { recursive: true });
      for (const kind of ['crt', 'key'])
        await copyFile(path(`${host}.${kind}`), join(mount, `..${host}`, `tls.${kind}`));
      // As the kubelet does.
      await symlink(`..${host}`, join(mount, '..next'));
      await rename(join(mount, '..next'), join(mount, '..data'));
    };
    await turnTo('good');
    for (const kind of ['crt', 'key']) await symlink(join('..data', `tls.${kind}`), join(mount, `tls.${kind}`));
    const files = `serverCertificate: ${mount}/tls.crt, privateKey: ${mount}/tls.key`;
    await withRouter({ delta: true, first: gateway('mounted', port, files) }, async () => {
      await poll('the first', async () => (await handshake(port, 'mounted.example.com')) === 'good' || undefined);
      await turnTo('other');
      await poll('the second', async () => (await handshake(port, 'mounted.example.com')) === 'other' || undefined);
    });
  });

  test.each([
    { how: 'delta', delta: true },
    { how: 'state of the world', delta: false },
  ])('serves the others at once when the files or the Secret of one are not there ($how)', async ({ delta }) => {
    const [port = 0] = await freePorts(1);
    const files = (certificate: string, key = certificate) =>
      `serverCertificate: ${path(`${certificate}.crt`)}, privateKey: ${path(`${key}.key`)}`;
    const first = [
      gateway('a-no-key', port, files('good', 'nowhere')),
      gateway('b-no-certificate', port, files('nowhere', 'good')),
      gateway('c-other-key', port, files('good', 'other')),
      gateway('d-secret', port, 'credentialName: a-secret'),
      gateway('good', port, files('good')),
      clusterWithSecret,
    ].join('---');
    await withRouter({ delta, first }, async (apply) => {
      // Envoy waits 15 s for what does not come.
      const isServed = (name: string) =>
        poll(`${name} is served`, async () => (await handshake(port, `${name}.example.com`)) || undefined, {
          timeoutMs: 10_000,
        });
      await isServed('good');
      for (const name of ['a-no-key', 'b-no-certificate', 'c-other-key', 'd-secret'])
        expect([name, await handshake(port, `${name}.example.com`)]).toEqual([name, '']);

      // So it is with those that join later.
      apply(gateway('e-late', port, files('late')));
      apply(gateway('f-joins', port, files('other')));
      await isServed('f-joins');
      expect(await handshake(port, 'good.example.com')).toBe('good');
    });
  });
});

interface RouterOptions {
  readonly delta: boolean;
  /** What there is before it connects. */
  readonly first: string;
}

async function withRouter(
  { delta, first }: RouterOptions,
  body: (apply: (yaml: string) => void) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const engine = await startEngine({
    mesh: { ...defaultMeshOptions, crossNamespaceFiles: true },
    protos: createProtos(),
    plaintext: { host: '127.0.0.1', port: 0 },
    batch: { quiet: 50, max: 250 },
    log: { info: () => undefined, warn: () => undefined },
    rejected: () => undefined,
    notAdmitted: () => undefined,
    heapBytes: 2 ** 31,
    signal: stop.signal,
  });
  const apply = (yaml: string): void => {
    for (const object of readObjects(yaml)) engine.objects.upsert(kindOf(object.apiVersion, object.kind)!.name, object);
  };
  apply(first);
  await engine.open();
  const envoy = await startEnvoy({
    adsPort: engine.ads.port!,
    delta,
    node: {
      id: 'router~10.0.0.9~router.edge~edge.svc.cluster.local',
      metadata: { NAMESPACE: 'edge', LABELS: { istio: 'ingress' } },
    },
  });
  try {
    await body(apply);
  } finally {
    await envoy.stop();
    stop.abort();
    await engine.ads.close();
  }
}

const clusterWithSecret = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api, namespace: shop}
spec:
  hosts: [api.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 443, name: https, protocol: HTTPS}]
  endpoints: [{address: 127.0.0.1}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: api, namespace: shop}
spec: {host: api.example.com, trafficPolicy: {tls: {mode: MUTUAL, credentialName: a-secret}}}
`;

function gateway(name: string, port: number, tls: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: ${name}, namespace: ${name}}
spec:
  selector: {istio: ingress}
  servers:
  - {port: {number: ${port}, name: https, protocol: HTTPS}, hosts: [${name}.example.com], tls: {mode: SIMPLE, ${tls}}}
`;
}

/** Whose certificate is shown; empty when none is. */
async function handshake(port: number, servername: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false });
    const end = (shown: () => string) => () => {
      const result = shown();
      socket.destroy();
      resolve(result);
    };
    const names = () => socket.getPeerCertificate().subjectaltname ?? '';
    socket
      .once(
        'secureConnect',
        end(() => /DNS:(\w+)/.exec(names())?.[1] ?? ''),
      )
      .once(
        'error',
        end(() => ''),
      )
      .once(
        'close',
        end(() => ''),
      );
  });
}
