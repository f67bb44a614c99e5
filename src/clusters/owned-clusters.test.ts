import { expect, test } from 'vitest';
import { readKubeconfig } from './kubeconfig.ts';
import { MOST_CLUSTERS, type OwnedClusters, type OwnedKubeconfigs, ownedClusters } from './owned-clusters.ts';
import { printOwner } from './owner.ts';

function kubeconfig(server: string, user: object = { token: 't' }): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}

const read = (text: string) => readKubeconfig(text, { allowInsecure: false });

function secret(name: string, second: number, entries: Readonly<Record<string, string>>): OwnedKubeconfigs {
  return {
    owner: { kind: 'Secret', namespace: 'istio-system', name, uid: `uid-${name}` },
    created: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
    kubeconfigs: new Map(Object.entries(entries).map(([id, text]) => [id, read(text)])),
    ignored: 0,
  };
}

function file(path: string, id: string, text: string): OwnedKubeconfigs {
  return { owner: { kind: 'File', path }, created: '', kubeconfigs: new Map([[id, read(text)]]), ignored: 0 };
}

const decide = (...owned: readonly OwnedKubeconfigs[]): OwnedClusters => ownedClusters(owned, 'home');

/** Cluster -> owner and server. */
function shown({ clusters }: OwnedClusters): Record<string, string> {
  return Object.fromEntries(
    Array.from(clusters, ([id, { owner, access }]) => [id, `${nameOf(owner)} ${access?.server ?? 'refused'}`]),
  );
}

const said = ({ refusals }: OwnedClusters): string[] =>
  refusals.map(({ owner, field, message }) => `${nameOf(owner)} ${field} ${message}`);

const nameOf = (owner: Parameters<typeof printOwner>[0]): string => printOwner(owner).replace('istio-system/', '');

test('a Secret may name several clusters', () => {
  const found = decide(secret('a', 1, { east: kubeconfig('https://east'), west: kubeconfig('https://west') }));
  expect(shown(found)).toEqual({ east: 'a https://east', west: 'a https://west' });
  expect(found.refusals).toEqual([]);
  expect(found.clusters.get('east')?.owner).toEqual({
    kind: 'Secret',
    namespace: 'istio-system',
    name: 'a',
    uid: 'uid-a',
  });
});

test('the cluster of this control plane is ignored, and that is said', () => {
  const found = decide(secret('a', 1, { home: kubeconfig('https://home') }));
  expect(shown(found)).toEqual({});
  expect(said(found)).toEqual([
    'a data[home] is the cluster of this control plane, which needs no kubeconfig; it is ignored',
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
  expect(said(found)).toEqual(['late data[late] is ignored: there are more than 100 clusters; delete others']);
});

test('what was not read is counted', () => {
  expect(said(decide({ ...secret('a', 1, {}), ignored: 900 }))).toEqual([
    'a data has 900 entries more than the 100 that are read; they are ignored',
  ]);
});

test('a file that has another cluster does not take one from the file that has it', () => {
  const b = file('/b', 'west', kubeconfig('https://b'));
  const first = ownedClusters([file('/a', 'east', kubeconfig('https://a')), b], 'home');
  const after = ownedClusters([file('/a', 'west', kubeconfig('https://a')), b], 'home', first.clusters);
  expect([...after.clusters.values()].map(({ id, owner }) => [id, printOwner(owner)])).toEqual([['west', '/b']]);
});

test('of two files with one cluster, the one that has it keeps it; at first it is that which comes first by name', () => {
  const a = file('/a', 'east', kubeconfig('https://a'));
  const b = file('/b', 'east', kubeconfig('https://b'));
  const first = decide(b, a);
  expect(shown(first)).toEqual({ east: '/a https://a' });
  expect(said(first)).toEqual(['/b  is ignored: the file /a has this cluster; delete one of them']);
  const alone = ownedClusters([b], 'home', first.clusters);
  expect(shown(alone)).toEqual({ east: '/b https://b' });
  const again = ownedClusters([a, b], 'home', alone.clusters);
  expect(shown(again)).toEqual({ east: '/b https://b' });
  expect(said(again)).toEqual(['/a  is ignored: the file /b has this cluster; delete one of them']);
});

test.each(['arn:aws:eks:eu-1:1:cluster/east', 'a b', 'x'.repeat(254), 'cilium:east'])(
  'a name that cannot be part of a key is refused: %s',
  (id) => {
    const found = decide(file('/a', id, kubeconfig('https://a')));
    expect(shown(found)).toEqual({});
    expect(said(found)[0]).toContain('is not a name for a cluster');
  },
);
