import { expect, test } from 'vitest';
import { objectOf } from '../../../test/harness/lab.ts';
import { followWanted } from '../../engine/wanted.ts';
import { TestMesh, connectedProxy } from '../../../test/harness/mesh.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { mostNamed, mostNamedForOthers } from '../../model/named-limits.ts';

const rule = (path: string, names: readonly string[]) =>
  objectOf('DestinationRule', path, {
    spec: {
      host: `${path.replace('/', '.')}.example`,
      subsets: names.map((credentialName, i) => ({
        name: `s${i}`,
        labels: { a: `${i}` },
        trafficPolicy: { tls: { mode: 'SIMPLE', credentialName } },
      })),
    },
  });
const gateway = (path: string, names: readonly string[]) =>
  objectOf('Gateway', path, {
    spec: {
      selector: { app: 'router' },
      servers: names.map((name, i) => ({
        port: { number: 443, name: `p${i}`, protocol: 'HTTPS' },
        hosts: [`${name.replace('sds://', '')}.${path.replace('/', '.')}`],
        tls: { mode: 'SIMPLE', credentialName: name },
      })),
    },
  });

const many = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

function meshOf(
  type: 'sidecar' | 'router',
  namespaces: readonly string[],
  objects: readonly KubernetesObject[],
  metadata: object = {},
) {
  const mesh = new TestMesh();
  for (const namespace of namespaces) {
    const node = {
      id: `${type}~10.0.0.1~a.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { app: 'router' }, ...metadata },
    };
    const account = { trustDomain: 'cluster.local', namespace, serviceAccount: 'default' };
    const identity = { ...account, cluster: 'Kubernetes', tenant: namespace };
    mesh.connect({ ...connectedProxy(namespace, node), identity });
    mesh.commit([mesh.mesh.inputs.secretAccess.write(`${namespace}/default`, { allowed: true })]);
  }
  const wanted = new Map<string, readonly string[]>();
  followWanted(mesh.graph, mesh.mesh.wanted.credentials, {
    want: (key, { by }) => wanted.set(key, by),
    unwant: (key) => wanted.delete(key),
  });
  mesh.apply(objects);
  const problems = () =>
    [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) =>
      found.filter(({ message }) => message.startsWith('names credentials beyond')),
    );
  return { mesh, wanted, problems };
}

test('of what a namespace names for all others, only the first few are read for each of these', () => {
  const names = many('c', mostNamedForOthers + 1);
  const { wanted, problems } = meshOf(
    'sidecar',
    ['a', 'b', 'evil'],
    [rule('evil/r', names), rule('shop/r', ['roots'])],
  );
  // Each may be in one of two Secrets.
  const of = (namespace: string): number =>
    [...wanted].filter(([key, by]) => key.startsWith(`Secret/${namespace}/`) && by.includes('evil')).length;
  expect([of('a'), of('b'), of('evil')]).toEqual(
    [mostNamedForOthers, mostNamedForOthers, names.length].map((n) => 2 * n),
  );
  expect(wanted.get('Secret/a/roots')).toEqual(['shop']);
  expect(problems()).toMatchObject([{ object: { namespace: 'evil', name: 'r' }, reason: 'Ineffective' }]);
});

test('what several namespaces name is read for all of them', () => {
  const { mesh, wanted } = meshOf('sidecar', ['a'], [rule('shop/r', ['roots']), rule('bank/r', ['roots'])]);
  expect(wanted.get('Secret/a/roots')).toEqual(['bank', 'shop']);
  mesh.delete([rule('bank/r', ['roots'])]);
  expect(wanted.get('Secret/a/roots')).toEqual(['shop']);
});

test('what Gateways of one namespace name on the routers of another takes no room from others', () => {
  const { wanted, problems } = meshOf(
    'router',
    ['edge'],
    [gateway('evil/g', many('c', mostNamed + 1)), gateway('edge/g', ['own', 'c0'])],
  );
  expect(wanted.size).toBe(mostNamed + 1);
  expect(wanted.get('Secret/edge/own')).toEqual(['edge']);
  expect(wanted.get('Secret/edge/c0')).toEqual(['edge', 'evil']);
  expect(problems()).toMatchObject([{ object: { namespace: 'evil' }, field: 'spec.servers', reason: 'Ineffective' }]);
});

test('what a provider of secrets has is not read: of servers, and of clients with one in their Pod', () => {
  const named = ['sds://a', 'b'];
  const read = (...args: Parameters<typeof meshOf>): string[] => [...meshOf(...args).wanted.keys()].sort();
  const socket = { credential: 'true' };
  const meshConfig = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'istio', namespace: 'istio-system' },
    data: { mesh: 'extensionProviders: [{name: v, sds: {name: v, service: v.example, port: 443}}]' },
  } as KubernetesObject;
  const servers = [gateway('edge/g', named)];
  expect(read('router', ['edge'], servers)).toEqual(['Secret/edge/a', 'Secret/edge/b']);
  expect(read('router', ['edge'], [...servers, meshConfig])).toEqual(['Secret/edge/b']);
  expect(read('router', ['edge'], servers, socket)).toEqual(['Secret/edge/b']);
  const clients = [rule('edge/r', named)];
  const ofB = ['Secret/edge/b', 'Secret/edge/b-cacert'];
  expect(read('sidecar', ['edge'], clients)).toEqual(['Secret/edge/a', 'Secret/edge/a-cacert', ...ofB]);
  expect(read('sidecar', ['edge'], clients, socket)).toEqual(ofB);
  // Only servers ask that of the mesh config, as in Istio.
  expect(read('sidecar', ['edge'], [...clients, meshConfig])).toEqual([
    'Secret/edge/a',
    'Secret/edge/a-cacert',
    ...ofB,
  ]);
});
