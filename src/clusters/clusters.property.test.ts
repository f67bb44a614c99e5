import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { Clusters } from './clusters.ts';
import { runs } from '../testing/runs.ts';

const object = (name: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'a', name },
});

/** Another cluster: what is there now. */
type Remote = Set<string>;

interface Source {
  readonly id: string;
  readonly remote: Remote;
  readonly sink: ObjectSink;
  readonly signal: AbortSignal;
  readonly ready: PromiseWithResolvers<void>;
  /** Nothing of it arrives; it tells everything again when it is back. */
  isAway: boolean;
  isRead: boolean;
}

const ids = ['east', 'west'] as const;
const names = ['p', 'q', 'r'] as const;

const step = fc.oneof(
  fc.record({ do: fc.constant('want' as const), id: fc.constantFrom(...ids), access: fc.constantFrom('a', 'b') }),
  fc.record({ do: fc.constant('refuse' as const), id: fc.constantFrom(...ids) }),
  fc.record({ do: fc.constant('drop' as const), id: fc.constantFrom(...ids) }),
  fc.record({ do: fc.constant('read' as const), source: fc.nat(9) }),
  fc.record({ do: fc.constant('fail' as const), source: fc.nat(9) }),
  fc.record({ do: fc.constant('away' as const), source: fc.nat(9) }),
  fc.record({ do: fc.constant('back' as const), source: fc.nat(9) }),
  fc.record({
    do: fc.constant('change' as const),
    access: fc.constantFrom('a', 'b'),
    id: fc.constantFrom(...ids),
    name: fc.constantFrom(...names),
  }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 70_000 }) }),
);

test('whatever happens to clusters, what is served of each is what its last whole source last said', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 60 }), async (steps) => {
      const clock = new FakeClock();
      const served = new Map<string, Set<string>>();
      const remotes = new Map<string, Remote>();
      const sources: Source[] = [];
      /** The source that is served, and what it said last. */
      const expected = new Map<string, { source: Source; said: Set<string> }>();
      const remoteOf = (id: string, access: string): Remote => {
        const key = `${id} ${access}`;
        const found = remotes.get(key) ?? new Set<string>();
        remotes.set(key, found);
        return found;
      };
      const clusters = new Clusters<string>({
        start(id, access, sink, signal) {
          const ready = Promise.withResolvers<void>();
          ready.promise.catch(() => undefined);
          const remote = remoteOf(id, access);
          sources.push({ ...{ id, remote, sink, signal, ready }, isAway: false, isRead: false });
          const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          return {
            ...{ ready: ready.promise, ended, trouble: () => undefined },
            figures: () => ({ objects: {}, stalenessSeconds: 0 }),
          };
        },
        sinkOf(id) {
          const held = new Set<string>();
          served.set(id, held);
          return {
            replace(_, objects) {
              held.clear();
              for (const { metadata } of objects) held.add(metadata.name);
            },
            upsert: (_, { metadata }) => void held.add(metadata.name),
            delete: (_, __, name) => void held.delete(name),
          };
        },
        served: () => undefined,
        kinds: ['Pod'],
        hold: () => () => undefined,
        clock,
        random: () => 0.5,
      });
      const wanted = new Map<string, { owner: string; access?: string }>();
      const live = (at: number): Source | undefined => {
        const open = sources.filter(({ signal }) => !signal.aborted);
        return open.length === 0 ? undefined : open[at % open.length];
      };
      const tell = (source: Source): void => {
        source.sink.replace('Pod', [...source.remote].map(object));
        const now = expected.get(source.id);
        if (now?.source === source) now.said = new Set(source.remote);
      };
      for (const each of steps) {
        const source = 'source' in each ? live(each.source) : undefined;
        if (each.do === 'want') wanted.set(each.id, { owner: 's', access: each.access });
        else if (each.do === 'refuse' && wanted.has(each.id)) wanted.set(each.id, { owner: 's' });
        else if (each.do === 'drop') {
          wanted.delete(each.id);
          expected.delete(each.id);
        } else if (each.do === 'read' && source !== undefined && !source.isAway && !source.isRead) {
          source.isRead = true;
          tell(source);
          expected.set(source.id, { source, said: new Set(source.remote) });
          source.ready.resolve();
        } else if (each.do === 'fail' && source?.isRead === false) {
          // What it has said so far must leave no trace.
          source.sink.upsert('Pod', object('half'));
          source.ready.reject(new Error('no'));
        } else if (each.do === 'away' && source !== undefined) source.isAway = true;
        else if (each.do === 'back' && source?.isAway === true) {
          source.isAway = false;
          if (source.isRead) tell(source);
        } else if (each.do === 'change') {
          const remote = remoteOf(each.id, each.access);
          const isThere = remote.has(each.name);
          if (isThere) remote.delete(each.name);
          else remote.add(each.name);
          for (const one of sources) {
            if (one.remote !== remote || one.isAway || !one.isRead) continue;
            if (isThere) one.sink.delete('Pod', 'a', each.name);
            else one.sink.upsert('Pod', object(each.name));
            const now = expected.get(one.id);
            if (now?.source === one) now.said = new Set(remote);
          }
        } else if (each.do === 'wait') await clock.advance(each.ms);
        if (each.do === 'want' || each.do === 'refuse' || each.do === 'drop') clusters.want(wanted);
        await clock.settle();
        for (const id of ids) {
          const held = served.get(id) ?? new Set();
          expect([id, [...held].sort()]).toEqual([id, [...(expected.get(id)?.said ?? [])].sort()]);
        }
      }
      await clusters.end();
      expect(clock.pending).toBe(0);
      expect(sources.every(({ signal }) => signal.aborted)).toBe(true);
    }),
    { numRuns: runs(300) },
  );
});
