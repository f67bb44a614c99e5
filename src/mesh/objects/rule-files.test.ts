import { expect, test } from 'vitest';
import { objectOf } from '../../../test/harness/lab.ts';
import { TestMesh, connectedProxy } from '../../../test/harness/mesh.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { MeshOptions } from '../inputs.ts';
import { mostNamed, mostNamedForOthers } from '../../model/named-limits.ts';

const hostOf = (namespace: string): string => `api.${namespace}.example`;

const entry = (namespace: string) =>
  objectOf('ServiceEntry', `${namespace}/api`, {
    spec: {
      hosts: [hostOf(namespace)],
      ports: [{ number: 443, name: 'tls', protocol: 'TLS' }],
      resolution: 'STATIC',
      endpoints: [{ address: '192.0.2.1' }],
    },
  });

/** A subset for each file of authorities. */
const rule = (path: string, files: readonly string[], spec: object = {}) =>
  objectOf('DestinationRule', path, {
    spec: {
      host: hostOf(path.split('/')[0]!),
      subsets: files.map((caCertificates, i) => ({
        name: `s${i}`,
        labels: { v: `${i}` },
        trafficPolicy: { tls: { mode: 'SIMPLE', subjectAltNames: ['x'], caCertificates } },
      })),
      ...spec,
    },
  });

const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `/certs/${i}.pem`);

function meshOf(objects: readonly KubernetesObject[], options: Partial<MeshOptions> = {}) {
  const mesh = new TestMesh({ mesh: options });
  for (const [namespace, type] of Object.entries({ evil: 'sidecar', shop: 'sidecar', edge: 'router' })) {
    const id = `${type}~10.0.0.1~p.${namespace}~${namespace}.svc.cluster.local`;
    mesh.connect(connectedProxy(namespace, { id, metadata: { NAMESPACE: namespace, ISTIO_VERSION: '1.32.0' } }));
  }
  mesh.apply(objects);
  /** The secrets that clusters of a proxy name, by cluster and each once. */
  const secrets = (namespace: string): Readonly<Record<string, string>> =>
    Object.fromEntries(
      (mesh.json(namespace).cds as { readonly name: string }[]).flatMap((cluster) => {
        const name = /"validationContextSdsSecretConfig":\{"name":"([^"]+)"/.exec(JSON.stringify(cluster))?.[1];
        return name === undefined ? [] : [[cluster.name.split('|').slice(2).join('|'), name]];
      }),
    );
  const distinct = (namespace: string): string[] => [...new Set(Object.values(secrets(namespace)))].sort();
  const problems = () =>
    [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) =>
      found.filter(({ message }) => message.startsWith('names files')),
    );
  return { mesh, secrets, distinct, problems };
}

test('clients in other namespaces do not read the files of a rule, and get no connection where it names one', () => {
  const mixed = rule('evil/r', ['/a', '/b'], { trafficPolicy: { tls: { mode: 'SIMPLE' } } });
  const { mesh, secrets, problems } = meshOf([entry('evil'), mixed]);
  const own = { '|api.evil.example': 'file-root:system', 's0|api.evil.example': 'file-root:/a' };
  expect(secrets('evil')).toMatchObject(own);
  for (const other of ['shop', 'edge'])
    expect(secrets(other)).toEqual({
      '|api.evil.example': 'file-root:system',
      's0|api.evil.example': 'withheld',
      's1|api.evil.example': 'withheld',
    });
  expect(problems()).toMatchObject([
    {
      object: { namespace: 'evil', name: 'r' },
      field: 'spec.subsets[0].trafficPolicy.tls',
      reason: 'Ineffective',
      message: expect.stringContaining('set --cross-namespace-files=on') as string,
    },
  ]);
  // Nobody else needs it.
  mesh.apply([rule('evil/r', ['/a', '/b'], { exportTo: ['.'] })]);
  expect(secrets('evil')).toMatchObject({ 's0|api.evil.example': 'file-root:/a' });
  expect(problems()).toEqual([]);
});

test('rules of the own namespace and of the root namespace name files for all their clients', () => {
  const { secrets, problems } = meshOf([
    entry('evil'),
    rule('shop/r', ['/own'], { host: hostOf('evil') }),
    rule('istio-system/r', ['/root'], { host: hostOf('evil') }),
  ]);
  expect(secrets('shop')).toEqual({ 's0|api.evil.example': 'file-root:/own' });
  expect(secrets('edge')).toEqual({ 's0|api.evil.example': 'file-root:/root' });
  expect(problems()).toEqual([]);
});

test('if all namespaces may name files for others, each names only the first few', () => {
  const files = many(mostNamedForOthers + 1);
  const { mesh, secrets, distinct, problems } = meshOf(
    [entry('evil'), entry('shop'), rule('evil/r', files), rule('shop/r', ['/one'])],
    {
      crossNamespaceFiles: true,
    },
  );
  expect(distinct('evil')).toHaveLength(files.length + 1);
  expect(distinct('shop')).toHaveLength(mostNamedForOthers + 2);
  expect(secrets('shop')).toMatchObject({
    's0|api.evil.example': 'file-root:/certs/0.pem',
    's20|api.evil.example': 'withheld',
    's0|api.shop.example': 'file-root:/one',
  });
  expect(problems()).toMatchObject([
    { object: { namespace: 'evil' }, field: 'spec.subsets[20].trafficPolicy.tls', reason: 'Ineffective' },
  ]);
  mesh.apply([rule('evil/r', many(mostNamed + 1), { exportTo: ['.'] })]);
  expect(distinct('evil')).toHaveLength(mostNamed + 2);
  expect(distinct('evil')).toContain('withheld');
});

test('however a file is spelled, proxies ask for it by one name', () => {
  const spellings = Array.from({ length: 900 }, (_, i) => `${'/'.repeat(1 + (i % 30))}certs/${'./'.repeat(i)}ca.pem`);
  const { distinct, problems } = meshOf(
    [
      entry('evil'),
      rule(
        'evil/r',
        spellings.filter((text) => text.length < 1024),
      ),
    ],
    {
      crossNamespaceFiles: true,
    },
  );
  for (const namespace of ['evil', 'shop', 'edge']) expect(distinct(namespace)).toEqual(['file-root:/certs/ca.pem']);
  expect(problems()).toEqual([]);
});
