import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import { EventQueue } from './event-queue.ts';
import { FakeClock } from './testing/fake-clock.ts';
import { RecordingLog } from './testing/recording-log.ts';

const object = (name: string): KubernetesObject =>
  ({ apiVersion: 'v1', kind: 'Thing', metadata: { name, uid: name, resourceVersion: '1' } }) as KubernetesObject;

test('nothing is left lying, whenever it comes while the last handler ends', async () => {
  for (let microtasks = 0; microtasks < 10; microtasks++) {
    const handled: string[] = [];
    const queue = new EventQueue({
      types: { Added: 'ADDED', Modified: 'MODIFIED', Deleted: 'DELETED' },
      metaOf: ({ metadata }) => ({ name: metadata.name }) as never,
      onEvent: ({ meta }) => {
        handled.push(meta.name);
        if (meta.name === 'a') void later(() => queue.upsert(object('b')));
        return Promise.resolve();
      },
      clock: new FakeClock(),
      random: () => 0,
      log: new RecordingLog(),
      signal: new AbortController().signal,
    });
    const later = async (act: () => void): Promise<void> => {
      for (let i = 0; i < microtasks; i++) await Promise.resolve();
      act();
    };
    queue.upsert(object('a'));
    await setImmediate();
    expect(handled, `after ${microtasks} microtasks`).toEqual(['a', 'b']);
  }
});

test('a handler that fails is called ever more slowly, however often its object changes meanwhile', async () => {
  const clock = new FakeClock();
  let calls = 0;
  const queue = new EventQueue({
    types: { Added: 'ADDED', Modified: 'MODIFIED', Deleted: 'DELETED' },
    metaOf: ({ metadata }) => ({ name: metadata.name }) as never,
    onEvent: () => Promise.reject(new Error(`no ${++calls}`)),
    clock,
    random: () => 0,
    log: new RecordingLog(),
    signal: new AbortController().signal,
  });
  for (let i = 0; i < 20; i++) {
    queue.upsert(object('a'));
    await clock.advance(1);
  }
  calls = 0;
  await clock.advance(600_000);
  expect(calls).toBeLessThan(30);
});
