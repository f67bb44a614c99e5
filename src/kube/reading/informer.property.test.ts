import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InformerLab } from '../testing/informer-lab.ts';
import { runs } from '../../testing/runs.ts';

type Step =
  | { readonly do: 'put' | 'recreate' | 'delete'; readonly name: string }
  | { readonly do: 'finish' | 'reset' | 'mute' | 'compact' | 'bookmark' | 'garbage' | 'corrupt' | 'uninstall' }
  | { readonly do: 'fail'; readonly status: number; readonly times: number }
  | { readonly do: 'wait'; readonly ms: number };

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('put', 'recreate', 'delete'), name }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('finish', 'reset', 'mute', 'compact', 'bookmark', 'garbage', 'corrupt'),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'uninstall' } as const) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fail'),
      status: fc.constantFrom(500, 503, 429, 403, 404, 409, 410, 200),
      times: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(0, 10, 500, 5_000, 200_000) }) },
) as fc.Arbitrary<Step>;

test('whatever happens, the store ends as the server has it, and was at no time what the server never had', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 80, size: 'max' }),
      fc.integer({ min: 1, max: 3 }),
      async (steps, pageSize) => {
        const lab = new InformerLab('VirtualService', { pageSize }).install();
        const wanted: Record<string, string> = {};
        const states = new Set([JSON.stringify({})]);
        const delivered = new Map<string, number>();
        let version = 0;
        let noise = 0;

        const { sink } = lab;
        const replace = sink.replace.bind(sink);
        sink.replace = (kind, objects) => {
          replace(kind, objects);
          // A list is never delivered in part.
          expect(states).toContain(JSON.stringify(lab.served()));
        };
        const upsert = sink.upsert.bind(sink);
        sink.upsert = (kind, object) => {
          upsert(kind, object);
          const is = Number(lab.served()[object.metadata.name]);
          expect(is).toBeGreaterThan(delivered.get(object.metadata.name) ?? 0);
          delivered.set(object.metadata.name, is);
        };

        await lab.start();
        for (const s of steps) {
          switch (s.do) {
            case 'put':
            case 'recreate': {
              wanted[s.name] = String(++version);
              const metadata = { name: s.name, namespace: 'default' };
              const object = { metadata, spec: { hosts: [wanted[s.name]] } };
              lab.cluster.apply(lab.path, object, { anew: s.do === 'recreate' });
              break;
            }
            case 'delete':
              if (wanted[s.name] !== undefined) lab.delete(s.name);
              delete wanted[s.name];
              break;
            case 'finish':
              for (const watch of lab.cluster.watches()) watch.finish();
              break;
            case 'reset':
              for (const watch of lab.cluster.watches()) watch.fail(new Error('reset'));
              break;
            case 'mute':
              for (const watch of lab.cluster.watches()) watch.mute();
              break;
            case 'compact':
              lab.cluster.compact();
              break;
            case 'bookmark':
              lab.cluster.bookmark();
              break;
            case 'garbage':
              for (const watch of lab.cluster.watches()) watch.send('{"type":"ADDED","object":{"meta');
              break;
            case 'corrupt':
              for (const watch of lab.cluster.watches()) watch.corrupt(`noise ${++noise}`);
              break;
            case 'uninstall':
              lab.cluster.uninstall(lab.path);
              for (const key of Object.keys(wanted)) delete wanted[key];
              await lab.clock.advance(20_000);
              lab.install();
              break;
            case 'fail':
              lab.cluster.failNext(s.status, s.times, s.status === 404 ? '404 page not found' : '');
              break;
            case 'wait':
              await lab.clock.advance(s.ms);
          }
          states.add(JSON.stringify(sorted(wanted)));
        }
        lab.cluster.recover();
        const same = await lab.clock.until(
          () => JSON.stringify(lab.served()) === JSON.stringify(sorted(wanted)),
          600_000,
        );
        await lab.stop();
        expect(lab.served()).toEqual(wanted);
        expect(same).toBe(true);
      },
    ),
    { numRuns: runs(500) },
  );
});

function sorted(record: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort());
}
