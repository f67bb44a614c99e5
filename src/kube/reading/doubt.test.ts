import { expect, onTestFinished, test } from 'vitest';
import type { KindName } from '../../api/kinds.ts';
import { InformerLab } from '../testing/informer-lab.ts';

const names = (count: number, from = 0): string[] => Array.from({ length: count }, (_, i) => `pod-${from + i}`);

/** An informer that knows these objects. */
async function knowing(pods: readonly string[], doubtsLists = true, kind: KindName = 'Pod') {
  const it = new InformerLab(kind, { ...(doubtsLists && { doubtsLists: true as const }), maxDelay: 1_000 }).install();
  for (const pod of pods) it.put(pod);
  await it.start();
  onTestFinished(() => it.stop());
  return it;
}

/** The server changes while nobody watches, and cannot resume the watches. */
async function relist(it: InformerLab, change: () => void): Promise<void> {
  for (const watch of it.cluster.watches()) watch.mute();
  change();
  it.cluster.compact();
  for (const watch of it.cluster.watches()) watch.finish();
  await it.clock.advance(2_000);
}

const lose = (it: InformerLab, pods: readonly string[]) => (): void => pods.forEach((pod) => it.delete(pod));
const count = (it: InformerLab): number => Object.keys(it.served()).length;

/** As they were: under their own uids. */
function restored(it: InformerLab, pods: readonly string[]): () => void {
  const uids = pods.map((pod) => it.sink.of('Pod').get(`default/${pod}`)?.metadata.uid);
  return () =>
    pods.forEach((name, i) => void it.put(name, name, { metadata: { name, namespace: 'default', uid: uids[i] } }));
}

test('when more than half vanish from a list, all stay until another list, 30 s later, agrees', async () => {
  const it = await knowing(names(20));
  await relist(it, lose(it, names(11)));
  expect(count(it)).toBe(20);
  expect(it.informer.stats().doubted).toBe(11);
  expect(it.log.messages()).toContain('Most objects vanished, keeping them until another list agrees');
  it.requests();
  await it.clock.advance(27_000);
  expect([count(it), it.requests()]).toEqual([20, []]);
  await it.clock.advance(2_000);
  expect([count(it), it.requests()]).toEqual([9, ['list', 'watch']]);
  expect(it.informer.stats().doubted).toBe(0);
});

test('what the second list has again was never gone', async () => {
  const it = await knowing(names(20));
  it.sink.calls.length = 0;
  const restore = restored(it, names(18));
  await relist(it, lose(it, names(20)));
  restore();
  await it.clock.advance(30_000);
  expect(Object.keys(it.served())).toEqual(names(18).sort());
  expect(it.sink.calls.filter((call) => call.startsWith('delete'))).toEqual([]);
  expect(it.sink.calls.filter((call) => call.startsWith('replace'))).toEqual(['replace Pod 20', 'replace Pod 18']);
});

test('half of them go at once, and so do most of a few', async () => {
  const half = await knowing(names(20));
  await relist(half, lose(half, names(10)));
  expect(count(half)).toBe(10);
  const few = await knowing(names(9));
  await relist(few, lose(few, names(9)));
  expect(count(few)).toBe(0);
});

test('kinds that are not asked about are believed', async () => {
  const it = await knowing(names(20), false);
  await relist(it, lose(it, names(20)));
  expect(count(it)).toBe(0);
});

test('while a list is in doubt, watch events are the truth, also about what it lacks', async () => {
  const it = await knowing(names(20));
  await relist(it, lose(it, names(20)));
  it.put('new');
  restored(it, ['pod-3'])();
  it.delete('pod-3');
  await it.clock.settle();
  expect(Object.keys(it.served())).toEqual([...names(20), 'new'].filter((name) => name !== 'pod-3').sort());
});

test('lists that come too early do not confirm, and a server that is away confirms nothing', async () => {
  const it = await knowing(names(20));
  await relist(it, lose(it, names(20)));
  await relist(it, () => undefined);
  expect(count(it)).toBe(20);
  it.cluster.failNext(503, 100);
  for (const watch of it.cluster.watches()) watch.finish();
  await it.clock.advance(40_000);
  expect(count(it)).toBe(20);
  it.cluster.recover();
  await it.clock.advance(2_000);
  expect(count(it)).toBe(0);
});

test('a kind that the server no longer knows is a list without objects', async () => {
  const it = await knowing(names(20), true, 'EndpointSlice');
  for (const watch of it.cluster.watches()) watch.mute();
  it.cluster.uninstall(it.path);
  // The muted watch counts as dead after a while.
  await it.clock.until(() => !it.informer.stats().installed, 200_000);
  await it.clock.advance(20_000);
  expect([it.informer.stats().doubted, count(it)]).toEqual([20, 20]);
  await it.clock.advance(15_000);
  expect(count(it)).toBe(0);
});
