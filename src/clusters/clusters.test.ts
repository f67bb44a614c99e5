import { describe, expect, test } from 'vitest';
import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import type { RemoteSource } from './connection.ts';
import { Clusters, type WantedCluster } from './clusters.ts';

const kinds = ['Pod', 'Service'] as const;

const object = (name: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'a', name },
});

/** What a sink holds, and how often it was told anything. */
class Held implements ObjectSink {
  readonly names = new Map<SourceKindName, Set<string>>();
  isServed = false;

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    this.names.set(kind, new Set(objects.map(({ metadata }) => metadata.name)));
  }

  upsert(kind: SourceKindName, { metadata }: KubernetesObject): void {
    this.names.set(kind, (this.names.get(kind) ?? new Set()).add(metadata.name));
  }

  delete(kind: SourceKindName, _: string, name: string): void {
    this.names.get(kind)?.delete(name);
  }

  get pods(): string[] {
    return [...(this.names.get('Pod') ?? [])].sort();
  }
}

/** A source under the test's control. */
class Source {
  readonly sink: ObjectSink;
  readonly signal: AbortSignal;
  readonly ready = Promise.withResolvers<void>();
  readonly ended = Promise.withResolvers<void>();
  trouble: { reason: string; since: Date } | undefined;
  missingRights: readonly string[] | undefined;

  constructor(sink: ObjectSink, signal: AbortSignal) {
    this.sink = sink;
    this.signal = signal;
    signal.addEventListener('abort', () => this.ended.resolve());
  }

  async read(...pods: readonly string[]): Promise<void> {
    this.sink.replace('Pod', pods.map(object));
    this.sink.replace('Service', []);
    this.ready.resolve();
    await Promise.resolve();
  }
}

function lab() {
  const clock = new FakeClock();
  const sinks = new Map<string, Held>();
  const sources: (Source & { readonly id: string; readonly access: string })[] = [];
  const log: string[] = [];
  let holds = 0;
  const clusters = new Clusters<string, RemoteSource & { readonly access: string }>({
    start(id, access, sink, signal) {
      const source = Object.assign(new Source(sink, signal), { id, access });
      sources.push(source);
      return {
        ready: source.ready.promise,
        ended: source.ended.promise,
        trouble: () => source.trouble,
        figures: () => ({
          objects: { [access]: 1 },
          stalenessSeconds: 0,
          ...(source.missingRights && { missingRights: source.missingRights }),
        }),
        access,
      };
    },
    sinkOf(id) {
      const held = new Held();
      sinks.set(id, held);
      return held;
    },
    served(id, isServed) {
      expect(holds).toBe(1);
      sinks.get(id)!.isServed = isServed;
      log.push(`${id} ${isServed ? 'served' : 'gone'}`);
    },
    kinds,
    hold() {
      holds++;
      return () => void holds--;
    },
    clock,
    random: () => 1,
  });
  const want = (wanted: Readonly<Record<string, string | undefined>>, owner = 'secret'): void =>
    clusters.want(
      new Map(
        Object.entries(wanted).map(([id, access]): [string, WantedCluster<string>] => [
          id,
          { owner, ...(access !== undefined && { access }) },
        ]),
      ),
    );
  const phases = () => Object.fromEntries(clusters.statuses().map(({ id, phase }) => [id, phase]));
  return { clock, sinks, sources, clusters, log, want, phases };
}

describe('a cluster that is wanted', () => {
  test('is what readiness waits for, with the rights that its account lacks', async () => {
    const { sources, want, clusters } = lab();
    want({ east: 'a' });
    sources[0]!.trouble = { reason: 'Pod: being read', since: new Date(0) };
    sources[0]!.missingRights = ['proxies cannot ...: allow ...'];
    expect(clusters.waitingFor()).toEqual(['cluster east (Pod: being read; proxies cannot ...: allow ...)']);
    await sources[0]!.read('p');
    expect(clusters.waitingFor()).toEqual([]);
  });

  test('is asked over the connection that serves it, and over none before', async () => {
    const { sources, want, clusters } = lab();
    const asked = () => {
      const source = clusters.sourceOf('east');
      return typeof source === 'object' ? source.access : source;
    };
    expect(asked()).toBe('unknown');
    want({ east: 'a' });
    expect(asked()).toBeUndefined();
    await sources[0]!.read('p');
    expect(asked()).toBe('a');
    want({ east: 'b' });
    expect(asked()).toBe('a');
    await sources[1]!.read('p');
    expect(asked()).toBe('b');
    want({});
    expect(asked()).toBe('unknown');
  });

  test('is served once everything of it was read, and not before', async () => {
    const { clock, sinks, sources, want, phases, log, clusters } = lab();
    want({ east: 'a' });
    expect([phases(), clusters.ready()]).toEqual([{ east: 'connecting' }, false]);
    sources[0]!.sink.replace('Pod', [object('x')]);
    sources[0]!.sink.upsert('Pod', object('y'));
    sources[0]!.sink.delete('Pod', 'a', 'x');
    expect([phases(), sinks.get('east')!.pods, log]).toEqual([{ east: 'syncing' }, [], []]);
    sources[0]!.ready.resolve();
    await clock.settle();
    expect([phases(), sinks.get('east')!.pods, log]).toEqual([{ east: 'synced' }, ['y'], ['east served']]);
    sources[0]!.sink.upsert('Pod', object('z'));
    expect(sinks.get('east')!.pods).toEqual(['y', 'z']);
  });

  test('is read again, less and less often, until that works', async () => {
    const { clock, sinks, sources, want, clusters } = lab();
    want({ east: 'a' });
    sources[0]!.sink.replace('Pod', [object('half')]);
    sources[0]!.ready.reject(new Error('no'));
    await clock.settle();
    expect(clusters.statuses()).toMatchObject([{ phase: 'connecting', trouble: { reason: 'no' } }]);
    await clock.advance(999);
    expect(sources).toHaveLength(1);
    await clock.advance(1);
    expect(sources).toHaveLength(2);
    sources[1]!.ready.reject(new Error('no'));
    await clock.advance(1_999);
    expect(sources).toHaveLength(2);
    await clock.advance(1);
    await sources[2]!.read('whole');
    await clock.settle();
    expect(sinks.get('east')!.pods).toEqual(['whole']);
    expect(clusters.statuses()[0]).not.toHaveProperty('trouble');
  });

  test('holds up the start for 30 seconds at most, and is served whenever it has been read', async () => {
    const { clock, sinks, sources, want, phases, clusters } = lab();
    want({ east: 'a', west: 'b' });
    await sources[1]!.read('w');
    let isReady = false;
    const { signal } = new AbortController();
    void clusters.whenReady({ named: Promise.resolve(), signal }).then(() => (isReady = true));
    await clock.advance(29_999);
    expect([isReady, clusters.ready()]).toEqual([false, false]);
    await clock.advance(1);
    expect([isReady, clusters.ready(), clusters.syncTimeouts]).toEqual([true, true, 1]);
    expect(phases()).toEqual({ east: 'timed out', west: 'synced' });
    expect(clusters.statuses().map(({ figures }) => figures?.objects)).toEqual([{ a: 1 }, { b: 1 }]);
    await sources[0]!.read('e');
    await clock.settle();
    expect([phases(), sinks.get('east')!.pods]).toEqual([{ east: 'synced', west: 'synced' }, ['e']]);
  });
});

describe('a change of access', () => {
  test('swaps once the new source was read whole; the old one serves until then, and nothing of it comes later', async () => {
    const { clock, sinks, sources, want, phases, log } = lab();
    want({ east: 'a' });
    await sources[0]!.read('old', 'both');
    await clock.settle();
    want({ east: 'b' });
    sources[1]!.sink.replace('Pod', [object('new'), object('both')]);
    sources[0]!.sink.upsert('Pod', object('later'));
    expect([phases(), sinks.get('east')!.pods]).toEqual([{ east: 'swapping' }, ['both', 'later', 'old']]);
    expect(sources[0]!.signal.aborted).toBe(false);
    sources[1]!.ready.resolve();
    await clock.settle();
    expect([phases(), sinks.get('east')!.pods]).toEqual([{ east: 'synced' }, ['both', 'new']]);
    expect(sources[0]!.signal.aborted).toBe(true);
    sources[0]!.sink.upsert('Pod', object('late'));
    sources[0]!.sink.replace('Pod', []);
    expect([sinks.get('east')!.pods, log]).toEqual([['both', 'new'], ['east served']]);
  });

  test('that does not work leaves the old one, however long, and says why', async () => {
    const { clock, sinks, sources, want, clusters } = lab();
    want({ east: 'a' });
    await sources[0]!.read('old');
    await clock.settle();
    want({ east: 'b' });
    sources[1]!.ready.reject(new Error('401'));
    await clock.advance(3_600_000);
    expect(sinks.get('east')!.pods).toEqual(['old']);
    expect(clusters.statuses()).toMatchObject([{ phase: 'swapping', trouble: { reason: '401' } }]);
    expect(clusters.ready()).toBe(true);
  });

  test('that is taken back ends the new source and leaves the old one', async () => {
    const { clock, sinks, sources, want, phases } = lab();
    want({ east: 'a' });
    await sources[0]!.read('old');
    await clock.settle();
    want({ east: 'b' });
    want({ east: 'a' });
    expect(sources.map(({ signal }) => signal.aborted)).toEqual([false, true]);
    await sources[1]!.read('new');
    await clock.settle();
    expect([phases(), sinks.get('east')!.pods]).toEqual([{ east: 'synced' }, ['old']]);
  });

  test('to something that is refused leaves the old one, unless the cluster has another owner now', async () => {
    const { clock, sinks, sources, want } = lab();
    want({ east: 'a' });
    await sources[0]!.read('old');
    await clock.settle();
    want({ east: undefined });
    expect([sinks.get('east')!.pods, sources[0]!.signal.aborted]).toEqual([['old'], false]);
    want({ east: undefined }, 'another secret');
    expect([sinks.get('east')!.pods, sources[0]!.signal.aborted]).toEqual([[], true]);
  });
});

describe('a cluster that is no longer wanted', () => {
  test('loses everything at once, and is seen until its source has ended', async () => {
    const { clock, sinks, sources, want, phases, log } = lab();
    want({ east: 'a', west: 'b' });
    for (const source of sources) await source.read('x');
    await clock.settle();
    want({ west: 'b' });
    expect([sinks.get('east')!.pods, sinks.get('west')!.pods]).toEqual([[], ['x']]);
    expect(log).toEqual(['east served', 'west served', 'east gone']);
    expect(phases()).toEqual({ west: 'synced', east: 'closing' });
    await clock.settle();
    expect(phases()).toEqual({ west: 'synced' });
  });

  test('is not served if it is read in the end', async () => {
    const { clock, sinks, sources, want, log, clusters } = lab();
    want({ east: 'a' });
    want({});
    await sources[0]!.read('x');
    await clock.settle();
    expect([sinks.get('east')!.pods, log, clusters.ready(), clock.pending]).toEqual([[], [], true, 0]);
  });
});

test('at the end, everything stops, and what was known stays', async () => {
  const { clock, sinks, sources, want, clusters } = lab();
  want({ east: 'a', west: 'b' });
  await sources[0]!.read('x');
  await clock.settle();
  let hasEnded = false;
  void clusters.end().then(() => (hasEnded = true));
  await clock.settle();
  expect([hasEnded, sources.every(({ signal }) => signal.aborted), clock.pending]).toEqual([true, true, 0]);
  expect(sinks.get('east')!.pods).toEqual(['x']);
});
