import { expect, onTestFinished, test } from 'vitest';
import { Kubeconfigs, type OwnerContent } from './kubeconfigs.ts';
import { printOwner } from './owner.ts';

const kubeconfig = (server: string, cluster = 'c'): string =>
  JSON.stringify({
    clusters: [{ name: cluster, cluster: { server } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster, user: 'u' } }],
    'current-context': 'x',
  });

const secret = (name: string, entries: Readonly<Record<string, string>>): OwnerContent => ({
  owner: { kind: 'Secret', namespace: 'n', name, uid: '' },
  created: '',
  kubeconfigs: Object.entries(entries).map(([id, text]) => ({
    ...{ id, text: Buffer.from(text).toString('base64') },
    encoding: 'base64',
  })),
});

const file = (path: string, text: string): OwnerContent => ({
  owner: { kind: 'File', path },
  created: '',
  kubeconfigs: [{ text, encoding: 'utf8' }],
});

/** What is known after each change: `owner cluster server`. */
function start(): { readonly kubeconfigs: Kubeconfigs; readonly seen: (readonly string[])[] } {
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const seen: (readonly string[])[] = [];
  const kubeconfigs = new Kubeconfigs({
    rules: { allowInsecure: false },
    changed: () => seen.push(shown(kubeconfigs)),
    signal: ending.signal,
  });
  return { kubeconfigs, seen };
}

function shown(kubeconfigs: Kubeconfigs): readonly string[] {
  return kubeconfigs
    .all()
    .flatMap(({ owner, kubeconfigs: all }) =>
      Array.from(all, ([id, each]) =>
        [printOwner(owner), id, 'access' in each ? each.access.server : each.refused.message].join(' '),
      ),
    )
    .sort();
}

test('a cluster that moves from one Secret to another is never without one', async () => {
  const { kubeconfigs, seen } = start();
  kubeconfigs.replace([secret('a', { east: kubeconfig('https://s1') }), secret('b', {})]);
  await kubeconfigs.idle();
  kubeconfigs.put(secret('a', {}));
  kubeconfigs.put(secret('b', { east: kubeconfig('https://s2') }));
  await kubeconfigs.idle();
  expect(seen).toEqual([['n/a east https://s1'], ['n/b east https://s2']]);
});

test('a list takes away what it lacks, also what has not been read yet', async () => {
  const { kubeconfigs, seen } = start();
  kubeconfigs.put(secret('a', { east: kubeconfig('https://s1') }));
  kubeconfigs.replace([secret('b', { west: kubeconfig('https://s2') })]);
  await kubeconfigs.idle();
  expect(seen).toEqual([['n/b west https://s2']]);
  kubeconfigs.replace([]);
  await kubeconfigs.idle();
  expect(seen.at(-1)).toEqual([]);
});

test('what comes while others are being read is read next, and the newest counts', async () => {
  const { kubeconfigs, seen } = start();
  kubeconfigs.put(secret('a', { east: kubeconfig('https://s1'), west: kubeconfig('https://s1') }));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  kubeconfigs.put(secret('a', { east: kubeconfig('https://s2') }));
  kubeconfigs.put(secret('a', { east: kubeconfig('https://s3') }));
  await kubeconfigs.idle();
  expect(seen.at(-1)).toEqual(['n/a east https://s3']);
  expect(seen.flat()).not.toContain('n/a east https://s2');
});

test('a file is about the cluster that its current context names, and about no other while it cannot be read', async () => {
  const { kubeconfigs } = start();
  const becomes = async (text: string): Promise<readonly string[]> => {
    kubeconfigs.put(file('/f', text));
    await kubeconfigs.idle();
    return shown(kubeconfigs);
  };
  expect(await becomes('{')).toEqual(['/f  is not valid YAML: see line 1']);
  expect(await becomes(kubeconfig('https://s1', 'east'))).toEqual(['/f east https://s1']);
  expect(await becomes('')).toEqual(['/f east is not a kubeconfig; create it with "istioctl create-remote-secret"']);
  expect(await becomes(kubeconfig('http://s1', 'east'))).toEqual(['/f east is not encrypted; use https://']);
  expect(await becomes(kubeconfig('https://s1', 'west'))).toEqual(['/f west https://s1']);
});

test('what has not changed is not read again', async () => {
  const { kubeconfigs } = start();
  const before = secret('a', { east: kubeconfig('https://s1'), west: kubeconfig('https://s1') });
  kubeconfigs.put(before);
  await kubeconfigs.idle();
  const [first] = kubeconfigs.all();
  kubeconfigs.put(secret('a', { east: kubeconfig('https://s1'), west: kubeconfig('https://s2') }));
  await kubeconfigs.idle();
  const [second] = kubeconfigs.all();
  expect(second?.kubeconfigs.get('east')).toBe(first?.kubeconfigs.get('east'));
  expect(second?.kubeconfigs.get('west')).not.toBe(first?.kubeconfigs.get('west'));
});

test('of an owner with more than 100, the rest is counted only', async () => {
  const { kubeconfigs } = start();
  kubeconfigs.put(secret('a', Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`c${i}`, 'x']))));
  await kubeconfigs.idle();
  const [{ kubeconfigs: all, ignored } = { kubeconfigs: new Map(), ignored: 0 }] = kubeconfigs.all();
  expect([all.size, ignored]).toEqual([100, 900]);
});
