import { expect, test } from 'vitest';
import type { Secret } from '../api/core.ts';
import { MOST_CLUSTERS, readRemoteSecret, type RemoteClusters, remoteClusters } from './remote-secrets.ts';

function kubeconfig(server: string, user: object = { token: 't' }): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}

function secret(name: string, second: number, entries: Readonly<Record<string, string>>): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace: 'istio-system',
      name,
      uid: `uid-${name}`,
      creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
    },
    data: Object.fromEntries(Object.entries(entries).map(([id, text]) => [id, Buffer.from(text).toString('base64')])),
  };
}

function decide(...secrets: readonly Secret[]): RemoteClusters {
  return remoteClusters(
    secrets.map((each) => readRemoteSecret(each, { allowInsecure: false })),
    'home',
  );
}

/** Cluster -> Secret and server. */
function shown({ clusters }: RemoteClusters): Record<string, string> {
  return Object.fromEntries(
    Array.from(
      clusters,
      ([
        id,
        {
          secret: { name },
          access,
        },
      ]) => [id, `${name} ${access?.server ?? 'refused'}`],
    ),
  );
}

const said = ({ refusals }: RemoteClusters): string[] =>
  refusals.map(({ secret: { name }, field, message }) => `${name} ${field} ${message}`);

test('a Secret may name several clusters', () => {
  const found = decide(secret('a', 1, { east: kubeconfig('https://east'), west: kubeconfig('https://west') }));
  expect(shown(found)).toEqual({ east: 'a https://east', west: 'a https://west' });
  expect(found.refusals).toEqual([]);
  expect(found.clusters.get('east')?.secret).toEqual({ namespace: 'istio-system', name: 'a', uid: 'uid-a' });
});

test('the cluster of this control plane is ignored, and that is said', () => {
  const found = decide(secret('a', 1, { home: kubeconfig('https://home') }));
  expect(shown(found)).toEqual({});
  expect(said(found)).toEqual([
    'a data[home] is the cluster of this control plane, which needs no Secret; it is ignored',
  ]);
});

test('of two Secrets with one cluster, the older one has it, and the other one is told, until the first goes', () => {
  const older = secret('z', 1, { east: kubeconfig('https://z') });
  const newer = secret('a', 2, { east: kubeconfig('https://a'), west: kubeconfig('https://west') });
  for (const secrets of [
    [older, newer],
    [newer, older],
  ]) {
    const found = decide(...secrets);
    expect(shown(found)).toEqual({ east: 'z https://z', west: 'a https://west' });
    expect(said(found)).toEqual([
      'a data[east] is ignored: the older Secret istio-system/z has this cluster; delete one of them',
    ]);
  }
  expect(shown(decide(newer))).toEqual({ east: 'a https://a', west: 'a https://west' });
});

test('Secrets of the same second are taken in the order of their names', () => {
  const a = secret('a', 1, { east: kubeconfig('https://a') });
  const b = secret('b', 1, { east: kubeconfig('https://b') });
  expect(shown(decide(b, a))).toEqual({ east: 'a https://a' });
});

test('a refused kubeconfig keeps its cluster from other Secrets, and hurts no other entry', () => {
  const broken = secret('a', 1, { east: kubeconfig('https://x', { tokenFile: '/x' }), west: kubeconfig('https://w') });
  const found = decide(broken, secret('b', 2, { east: kubeconfig('https://b') }));
  expect(shown(found)).toEqual({ east: 'a refused', west: 'a https://w' });
  expect(said(found)).toEqual([
    'a data[east].users[0].user.tokenFile names a file; use token',
    'b data[east] is ignored: the older Secret istio-system/a has this cluster; delete one of them',
  ]);
});

test('there are at most 100 clusters, the oldest ones', () => {
  const many = Array.from({ length: MOST_CLUSTERS }, (_, i) =>
    secret(`s${i}`, i, { [`c${i}`]: kubeconfig('https://x') }),
  );
  const found = decide(secret('late', 200, { late: kubeconfig('https://late') }), ...many);
  expect(found.clusters.size).toBe(MOST_CLUSTERS);
  expect(found.clusters.has('late')).toBe(false);
  expect(said(found)).toEqual([
    'late data[late] is ignored: there are more than 100 clusters; delete Secrets of others',
  ]);
});

test('of a Secret with more entries than that, the rest is counted only', () => {
  const entries = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`c${i}`, 'x']));
  const { refusals } = decide(secret('a', 1, entries));
  expect(refusals).toHaveLength(MOST_CLUSTERS + 1);
  expect(refusals.at(-1)).toMatchObject({
    field: 'data',
    message: expect.stringMatching(/^has 900 entries/) as string,
  });
});
