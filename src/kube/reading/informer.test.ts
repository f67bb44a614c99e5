import { afterEach, describe, expect, test } from 'vitest';
import type { KindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { InformerOptions } from './informer.ts';
import { InformerLab } from '../testing/informer-lab.ts';

const labs: InformerLab[] = [];
afterEach(async () => {
  await Promise.all(labs.splice(0).map((lab) => lab.stop()));
});

function lab(kind: KindName = 'VirtualService', options: Partial<InformerOptions> = {}): InformerLab {
  const made = new InformerLab(kind, options);
  labs.push(made);
  return made;
}

/** A lab with objects `a` and `b`, listed and watched. */
async function started(): Promise<InformerLab> {
  const made = lab().install();
  made.put('a');
  made.put('b');
  await made.start();
  made.requests();
  made.sink.calls.length = 0;
  return made;
}

describe('what goes well', () => {
  test('a collection is listed in pages and then watched', async () => {
    const it = lab('VirtualService', { pageSize: 2 }).install();
    for (const name of ['a', 'b', 'c', 'd', 'e']) it.put(name);
    await it.start();
    expect(it.served()).toEqual({ a: 'a', b: 'b', c: 'c', d: 'd', e: 'e' });
    expect(it.sink.calls).toEqual(['replace VirtualService 5']);
    expect(it.requests()).toEqual(['list', 'next page', 'next page', 'watch']);
    expect(it.informer.synced).toBe(true);
  });

  test('changes and deletes arrive one by one', async () => {
    const it = await started();
    it.put('a', 'changed');
    it.put('c');
    it.delete('b');
    await it.clock.settle();
    expect(it.sink.calls).toEqual([
      'upsert VirtualService default/a',
      'upsert VirtualService default/c',
      'delete VirtualService default/b',
    ]);
    expect(it.served()).toEqual({ a: 'changed', c: 'c' });
    expect(it.requests()).toEqual([]);
  });

  test('a bookmark says that the sink was told everything', async () => {
    const it = await started();
    it.put('a', 'changed');
    it.cluster.bookmark();
    await it.clock.settle();
    expect(it.sink.calls).toEqual(['upsert VirtualService default/a', 'caught up VirtualService']);
  });

  test('an object of the same name with another uid is a delete and an add', async () => {
    const it = await started();
    const [watch] = it.cluster.watches();
    it.cluster.apply(
      it.path,
      { metadata: { name: 'a', namespace: 'default' }, spec: { hosts: ['a'] } },
      { anew: true },
    );
    await it.clock.settle();
    expect(it.sink.calls).toEqual(['delete VirtualService default/a', 'upsert VirtualService default/a']);
    it.sink.calls.length = 0;
    // The delete was never seen.
    const metadata = { name: 'b', namespace: 'default', uid: 'another', resourceVersion: '900' };
    watch?.send(JSON.stringify({ type: 'MODIFIED', object: { metadata, spec: { hosts: ['b'] } } }));
    await it.clock.settle();
    expect(it.sink.calls).toEqual(['delete VirtualService default/b', 'upsert VirtualService default/b']);
  });

  test('who is told that an object was touched finds it changed, also after a list', async () => {
    const it = await started();
    const seen: unknown[] = [];
    it.onTouched = ({ metadata: { name } }) => {
      const latest = it.informer.latest('default', name) as { status?: unknown } | undefined;
      seen.push([name, latest && (latest.status ?? 'no status')]);
    };
    const status = { conditions: [{ type: 'Accepted', status: 'True' }] };
    it.put('a', 'changed', { status });
    it.delete('b');
    await it.clock.settle();
    expect(seen.splice(0)).toEqual([
      ['a', status],
      ['b', undefined],
    ]);
    for (const watch of it.cluster.watches()) watch.mute();
    it.put('a', 'again', { status: {} });
    it.cluster.compact();
    for (const watch of it.cluster.watches()) watch.finish();
    await it.clock.advance(2_000);
    expect(seen).toEqual([['a', 'no status']]);
  });

  test('what only writes the status is not told to the sink, but is the latest', async () => {
    const it = await started();
    const conditions = [{ type: 'Accepted', status: 'True' }];
    it.put('a', 'a', { status: { conditions } });
    await it.clock.settle();
    expect(it.sink.calls).toEqual([]);
    expect(it.touched.map((object) => object.metadata.name)).toEqual(['a']);
    expect(it.informer.latest('default', 'a')).toMatchObject({ status: { conditions } });
  });
});

describe('a watch that ends', () => {
  test('is resumed where it ended, with nothing lost and nothing listed', async () => {
    const it = await started();
    await it.clock.advance(5_000);
    for (const watch of it.cluster.watches()) watch.finish();
    it.delete('b');
    it.put('a', 'changed');
    await it.clock.advance(1_000);
    expect(it.served()).toEqual({ a: 'changed' });
    expect(it.requests()).toEqual(['watch']);
  });

  test('at once after what was known already, is resumed ever more slowly', async () => {
    const it = await started();
    it.cluster.onRequest = () =>
      queueMicrotask(() => {
        if (it.cluster.requests.length > 100) return;
        it.cluster.bookmark();
        for (const watch of it.cluster.watches()) watch.finish();
      });
    for (const watch of it.cluster.watches()) watch.finish();
    await it.clock.advance(60_000);
    expect(it.requests().length).toBeLessThan(20);
  });

  test('by a reset is resumed after a delay', async () => {
    const it = await started();
    for (const watch of it.cluster.watches()) watch.fail(new Error('ECONNRESET'));
    it.delete('b');
    await it.clock.settle();
    expect(it.served()).toEqual({ a: 'a', b: 'b' });
    await it.clock.advance(1_000);
    expect(it.served()).toEqual({ a: 'a' });
    expect(it.requests()).toEqual(['watch']);
  });

  test('resumes from the last bookmark', async () => {
    const it = await started();
    it.cluster.install('/api/v1/pods', 'Pod');
    for (let i = 0; i < 3; i++) it.cluster.apply('/api/v1/pods', { metadata: { name: `x${i}` } });
    it.cluster.bookmark();
    await it.clock.settle();
    it.cluster.compact();
    for (const watch of it.cluster.watches()) watch.finish();
    await it.clock.advance(1_000);
    expect(it.requests()).toEqual(['watch']);
  });

  test('at once again and again is opened ever more slowly', async () => {
    const it = await started();
    it.cluster.onRequest = () => queueMicrotask(() => it.cluster.watches().forEach((watch) => watch.finish()));
    for (const watch of it.cluster.watches()) watch.finish();
    await it.clock.advance(60_000);
    expect(it.requests().length).toBeLessThan(20);
  });

  test('silently is noticed by the idle timer and resumed', async () => {
    const it = await started();
    for (const watch of it.cluster.watches()) watch.mute();
    it.delete('b');
    it.put('c');
    await it.clock.advance(149_000);
    expect(it.served()).toEqual({ a: 'a', b: 'b' });
    expect(it.informer.stats().stalenessSeconds).toBe(149);
    await it.clock.advance(2_000);
    expect(it.served()).toEqual({ a: 'a', c: 'c' });
    expect(it.requests()).toEqual(['probe', 'watch']);
  });

  test('is not taken for dead while bookmarks come', async () => {
    const it = await started();
    for (let minute = 0; minute < 5; minute++) {
      await it.clock.advance(60_000);
      it.cluster.bookmark();
    }
    await it.clock.settle();
    expect(it.requests()).toEqual([]);
  });
});

describe('a server that cannot resume', () => {
  test('is listed again, and the difference is delivered at once', async () => {
    const it = await started();
    for (const watch of it.cluster.watches()) watch.mute();
    it.delete('b');
    it.put('a', 'changed');
    it.put('c');
    it.cluster.compact();
    for (const watch of it.cluster.watches()) watch.finish();
    await it.clock.advance(2_000);
    expect(it.sink.calls).toEqual(['replace VirtualService 2']);
    expect(it.served()).toEqual({ a: 'changed', c: 'c' });
    expect(it.requests()).toEqual(['watch', 'list', 'watch']);
    expect(it.informer.stats().lists).toBe(2);
  });

  test('may say so in an event of the stream', async () => {
    const it = await started();
    const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
    for (const watch of it.cluster.watches()) watch.send(JSON.stringify({ type: 'ERROR', object: status }));
    await it.clock.advance(2_000);
    expect(it.requests()).toEqual(['list', 'watch']);
  });

  test('keeps the store as it was until the list is complete', async () => {
    const it = await started();
    it.cluster.compact();
    it.put('c');
    it.cluster.compact();
    it.cluster.onRequest = ({ query }) => {
      if (query['watch'] === undefined) it.cluster.failNext(500);
    };
    for (const watch of it.cluster.watches()) watch.mute();
    for (const watch of it.cluster.watches()) watch.finish();
    it.delete('a');
    await it.clock.advance(30_000);
    expect(it.sink.calls.filter((call) => call.startsWith('replace'))).toEqual([]);
    it.cluster.onRequest = () => undefined;
    it.cluster.recover();
    await it.clock.advance(30_000);
    expect(it.served()).toEqual({ b: 'b', c: 'c' });
  });

  test('because it was restored from a backup is found out by asking when the watch is silent', async () => {
    const it = await started();
    it.cluster.restore(50);
    for (const watch of it.cluster.watches()) watch.mute();
    it.put('c');
    it.delete('a');
    await it.clock.advance(152_000);
    expect(it.served()).toEqual({ b: 'b', c: 'c' });
    expect(it.requests()).toEqual(['probe', 'list', 'watch']);
  });

  test('between two pages is listed in one piece', async () => {
    const it = lab('VirtualService', { pageSize: 2 }).install();
    for (const name of ['a', 'b', 'c', 'd', 'e']) it.put(name);
    it.cluster.onRequest = ({ query }) => {
      if (query['continue'] !== undefined) {
        it.put('f');
        it.delete('a');
        it.cluster.compact();
      }
    };
    await it.start();
    expect(it.requests()).toEqual(['list', 'next page', 'list', 'watch']);
    expect(Object.keys(it.served())).toEqual(['b', 'c', 'd', 'e', 'f']);
    expect(it.sink.calls[0]).toBe('replace VirtualService 5');
  });
});

describe('a page that is too large to be read', () => {
  /** Limits of the lists since the last call, with a plus where a list goes on. */
  const pages = (it: InformerLab): string[] =>
    it.cluster.requests
      .splice(0)
      .flatMap(({ query: { watch, limit, continue: token } }) =>
        watch === undefined ? [`${token === undefined ? '' : '+'}${limit}`] : [],
      );

  const listAgain = async (it: InformerLab): Promise<void> => {
    const watch = it.cluster.watches().at(-1)!;
    watch.mute();
    it.put('a', 'x');
    it.cluster.compact();
    watch.fail(new Error('reset'));
    await it.clock.advance(10_000);
  };

  test('is read again as smaller ones, and so are later lists', async () => {
    const it = lab('VirtualService', { pageSize: 4 }).install();
    for (const name of ['a', 'b', 'c', 'd', 'e']) it.put(name, name.repeat(300));
    it.cluster.largest = 1_500;
    await it.start();
    expect(pages(it)).toEqual(['4', '2', '+2', '+2']);
    expect(Object.keys(it.served())).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(it.sink.calls).toEqual(['replace VirtualService 5']);
    expect(it.log.lines).toEqual([
      {
        level: 'warn',
        message: 'List page too large, reading smaller pages',
        fields: { kind: 'VirtualService', pageSize: 2 },
      },
    ]);
    await listAgain(it);
    expect(pages(it)).toEqual(['2', '+2', '+2']);
  });

  test('does not make pages small for ever: after a list without one they are twice as large again', async () => {
    const it = lab('VirtualService', { pageSize: 4 }).install();
    for (const name of ['a', 'b', 'c', 'd', 'e']) it.put(name, name.repeat(1_000));
    it.cluster.largest = 1_500;
    await it.start();
    expect(pages(it)).toEqual(['4', '2', '1', '+1', '+1', '+1', '+1']);
    for (const name of ['a', 'b', 'c', 'd', 'e']) it.put(name);
    await listAgain(it);
    expect(pages(it)).toEqual(['1', '+1', '+1', '+1', '+1']);
    for (const size of ['2', '4', '4']) {
      await listAgain(it);
      expect(pages(it)[0]).toBe(size);
    }
  });

  test('in the middle of a list takes nothing from the pages before it', async () => {
    const it = lab('VirtualService', { pageSize: 2 }).install();
    for (const [name, length] of [
      ['a', 1],
      ['b', 1],
      ['c', 300],
      ['d', 300],
    ] as const)
      it.put(name, name.repeat(length));
    it.cluster.largest = 900;
    await it.start();
    expect(pages(it)).toEqual(['2', '+2', '+1', '+1']);
    expect(Object.keys(it.served())).toEqual(['a', 'b', 'c', 'd']);
  });

  test('with one object in it is an error that names the kind and the page, and is tried again', async () => {
    const it = lab('VirtualService', { pageSize: 4 }).install();
    it.put('a', 'a'.repeat(2_000));
    it.cluster.largest = 1_000;
    await it.start();
    expect(pages(it)).toEqual(['4', '2', '1']);
    expect(it.log.lines.at(-1)).toMatchObject({
      level: 'warn',
      message: 'API server: sending responses that are too long, retrying until it works',
      fields: { err: { message: expect.stringMatching(/virtualservices, a page of 1: too long/) as string } },
    });
    expect(it.informer.synced).toBe(false);
    it.put('a', 'small');
    await it.clock.advance(1_000);
    expect(it.served()).toEqual({ a: 'small' });
  });
});

describe('trouble', () => {
  test('of any sort never ends the informer, is said once, and its end too', async () => {
    const it = lab().install();
    it.put('a');
    it.cluster.failNext(503, 10);
    await it.start();
    expect(it.informer.synced).toBe(false);
    await it.clock.advance(120_000);
    expect(it.informer.synced).toBe(true);
    expect(it.served()).toEqual({ a: 'a' });
    expect(it.log.messages()).toEqual([
      'API server: unavailable, retrying until it works',
      'API server: no longer unavailable',
    ]);
  });

  test('is over when a watch holds, even if nothing happens', async () => {
    const it = await started();
    for (const watch of it.cluster.watches()) watch.fail(new Error('reset'));
    await it.clock.advance(5_000);
    expect(it.log.messages()).toEqual(['API server: unreachable, retrying until it works']);
    await it.clock.advance(1_000);
    expect(it.log.messages().at(-1)).toBe('API server: no longer unreachable');
  });

  test('is not over while the server takes a watch and does not answer', async () => {
    const it = await started();
    it.cluster.stream = (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    for (const watch of it.cluster.watches()) watch.fail(new Error('reset'));
    await it.clock.advance(60_000);
    expect(it.log.messages()).toEqual(['API server: unreachable, retrying until it works']);
  });

  test('is followed by the list that the server asks for without a long delay', async () => {
    const it = await started();
    it.cluster.failNext(503, 10);
    for (const watch of it.cluster.watches()) watch.fail(new Error('reset'));
    it.put('c');
    it.cluster.compact();
    await it.clock.until(() => it.requests().includes('list'), 200_000);
    const waited = it.clock.now();
    await it.clock.until(() => 'c' in it.served(), 20_000);
    expect(it.served()).toEqual({ a: 'a', b: 'b', c: 'c' });
    expect(it.clock.now() - waited).toBeLessThan(1_000);
  });

  test('changes nothing of what was delivered', async () => {
    const it = await started();
    it.cluster.failNext(500, 3);
    it.cluster.failNext(403, 3, { kind: 'Status', code: 403, reason: 'Forbidden', message: 'not allowed' });
    it.cluster.failNext(404, 2, '404 page not found');
    it.cluster.failNext(200, 1, 'proxy says hello');
    for (const watch of it.cluster.watches()) watch.fail(new Error('reset'));
    await it.clock.advance(300_000);
    expect(it.served()).toEqual({ a: 'a', b: 'b' });
    expect(it.informer.synced).toBe(true);
    it.delete('a');
    await it.clock.settle();
    expect(it.served()).toEqual({ b: 'b' });
  });
});

test('a sink that throws is said to be the culprit, and gets again what it did not take', async () => {
  const it = await started();
  const upsert = it.sink.upsert.bind(it.sink);
  it.sink.upsert = () => {
    it.sink.upsert = upsert;
    throw new Error('a bug');
  };
  it.put('c');
  await it.clock.advance(10_000);
  expect(it.served()).toEqual({ a: 'a', b: 'b', c: 'c' });
  expect(it.log.messages()).toEqual([
    'API server: sending objects that Fairlead fails to process, retrying until it works',
    'API server: no longer sending objects that Fairlead fails to process',
  ]);
});

test('objects that are too deep to be compared hold up no others', async () => {
  const it = lab('VirtualService', {
    shape: {
      trim: (raw) => raw as unknown as KubernetesObject,
      same: () => {
        throw new RangeError('Maximum call stack size exceeded');
      },
    },
  }).install();
  it.put('a');
  await it.start();
  it.put('a', 'changed');
  it.put('b');
  await it.clock.advance(1_000);
  expect(it.served()).toEqual({ a: 'changed', b: 'b' });
  expect(it.log.messages()).toEqual([]);
});

describe('a malformed object', () => {
  test('in the stream is skipped and counted, and costs no list', async () => {
    const it = await started();
    for (const watch of it.cluster.watches()) {
      watch.send(JSON.stringify({ type: 'ADDED', object: { metadata: {}, spec: {} } }));
      watch.send(JSON.stringify({ type: 'ADDED', object: { metadata: { name: 7 } } }));
    }
    it.put('c');
    await it.clock.advance(1_000);
    expect(it.served()).toEqual({ a: 'a', b: 'b', c: 'c' });
    expect(it.informer.stats().malformed).toBe(2);
    expect(it.requests()).toEqual([]);
    expect(it.log.messages()).toHaveLength(1);
  });

  test('in the list is skipped', async () => {
    const it = lab().install();
    it.cluster.failNext(200, 1, {
      metadata: { resourceVersion: '100' },
      items: [null, 7, {}, { metadata: { name: 'a', namespace: 'default' }, spec: { hosts: ['a'] } }],
    });
    await it.start();
    expect(it.served()).toEqual({ a: 'a' });
    expect(it.informer.stats().malformed).toBe(3);
  });

  test('that was broken on its way is asked for again', async () => {
    const it = await started();
    for (const watch of it.cluster.watches()) watch.corrupt();
    it.delete('a');
    await it.clock.advance(1_000);
    expect(it.served()).toEqual({ b: 'b' });
    expect(it.informer.stats().malformed).toBe(0);
    expect(it.requests()).toEqual(['watch']);
  });

  test('that stays a broken line is skipped', async () => {
    const it = await started();
    it.cluster.onRequest = () =>
      queueMicrotask(() => it.cluster.watches().forEach((watch) => watch.send('{"type":"DEL')));
    for (const watch of it.cluster.watches()) watch.send('{"type":"DEL');
    await it.clock.advance(1_000);
    it.delete('a');
    await it.clock.advance(1_000);
    expect(it.served()).toEqual({ b: 'b' });
    expect(it.informer.stats().malformed).toBe(1);
    expect(it.requests()).toEqual(['watch']);
  });
});

describe('a kind that is not installed', () => {
  test('is empty and synced, said once, and picked up when it appears', async () => {
    const it = await lab().start();
    expect(it.informer.synced).toBe(true);
    expect(it.sink.calls).toEqual(['replace VirtualService 0']);
    await it.clock.advance(120_000);
    expect(it.sink.calls).toEqual(['replace VirtualService 0']);
    expect(it.log.messages()).toEqual(['Kind is not installed, checking for it periodically']);
    it.install().put('a');
    await it.clock.advance(10_000);
    expect(it.served()).toEqual({ a: 'a' });
    expect(it.log.messages()).toEqual(['Kind is not installed, checking for it periodically', 'Kind is now installed']);
  });

  test('any more is empty, and comes back', async () => {
    const it = await started();
    it.cluster.uninstall(it.path);
    await it.clock.advance(5_000);
    expect(it.served()).toEqual({});
    expect(it.informer.stats().installed).toBe(false);
    it.install().put('z');
    await it.clock.advance(10_000);
    expect(it.served()).toEqual({ z: 'z' });
  });

  test('in the first version is read in another one, and again in the first when that is gone', async () => {
    const it = lab();
    const older = it.path.replace('/v1/', '/v1alpha3/');
    it.cluster.install(older, 'VirtualService');
    const put = (path: string, name: string) =>
      it.cluster.apply(path, { metadata: { name, namespace: 'default' }, spec: { hosts: [name] } });
    put(older, 'a');
    await it.start();
    await it.clock.advance(1_000);
    expect(it.served()).toEqual({ a: 'a' });
    expect(it.informer.latest('default', 'a')?.apiVersion).toBe('networking.istio.io/v1alpha3');
    expect(it.log.messages()).toEqual([]);
    put(older, 'b');
    await it.clock.settle();
    expect(it.served()).toEqual({ a: 'a', b: 'b' });
    it.install();
    put(it.path, 'b');
    put(it.path, 'c');
    it.cluster.uninstall(older);
    await it.clock.advance(10_000);
    expect(it.served()).toEqual({ b: 'b', c: 'c' });
    expect(it.informer.latest('default', 'c')?.apiVersion).toBe('networking.istio.io/v1');
  });

  test('is not concluded from a 404 of something that stands before the server', async () => {
    const it = await started();
    for (const watch of it.cluster.watches()) watch.mute();
    it.cluster.onRequest = () => it.cluster.failNext(404, 1, 'no backend');
    for (const watch of it.cluster.watches()) watch.finish();
    await it.clock.advance(60_000);
    expect(it.served()).toEqual({ a: 'a', b: 'b' });
    it.cluster.onRequest = () => undefined;
    it.cluster.recover();
    it.delete('a');
    await it.clock.advance(20_000);
    expect(it.served()).toEqual({ b: 'b' });
  });
});
