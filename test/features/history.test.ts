import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { kindOf } from '../../src/api/kinds.ts';
import { traffic as pool } from './object-pool.ts';
import type { Program } from './program.ts';
import { Cluster } from './sources.ts';
import { seed } from '../harness/seed.ts';
import { runs } from '../../src/testing/runs.ts';

const HISTORIES = 4;

type Step =
  | { readonly do: 'apply' | 'recreate' | 'delete'; readonly which: number; readonly variant: number }
  | { readonly do: 'lose events' | 'end watches' | 'reset' | 'compact' | 'bookmark' | 'garble' }
  | { readonly do: 'fail'; readonly status: number }
  | { readonly do: 'skip'; readonly ms: number };

const which = fc.integer({ min: 0, max: pool.length - 1 });
const variant = fc.integer({ min: 0, max: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('apply'), which, variant }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('recreate', 'delete'), which, variant }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('lose events', 'end watches', 'reset', 'compact', 'bookmark', 'garble'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail'), status: fc.constantFrom(410, 429, 500, 503) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('skip'), ms: fc.constantFrom(1_000, 30_000, 200_000) }) },
) as fc.Arbitrary<Step>;

const histories = fc.sample(fc.array(step, { minLength: 30, maxLength: 60, size: 'max' }), {
  seed,
  numRuns: runs(HISTORIES),
});

test.each(histories.map((steps, i) => ({ steps, i })))(
  `whatever happens on the way, proxies end with what the objects say: history $i (FAIRLEAD_SEED=${seed})`,
  async ({ steps }) => {
    const cluster = await Cluster.create();
    const present = new Map<number, KubernetesObject>();
    await cluster.apply(pool[0]!(0), pool[1]!(0));
    const program = await cluster.start();
    await program.connect(true);
    await program.connect(false);
    present.set(0, pool[0]!(0)).set(1, pool[1]!(0));
    for (const each of steps) {
      await take(each, cluster, program, present);
      await program.settled();
    }
    cluster.server.cluster.recover();
    cluster.endWatches();
    // Whoever waits before the next try does not wait any longer.
    program.clock.skip(600_000);
    await program.committed(() => {
      for (const [i, make] of pool.entries()) expectSame(program, make(0), present.get(i));
    });
    await program.settled();
    expect(program.serving.engine.mesh.graph.failures.size).toBe(0);
  },
);

async function take(
  step: Step,
  cluster: Cluster,
  program: Program,
  present: Map<number, KubernetesObject>,
): Promise<void> {
  switch (step.do) {
    case 'apply':
    case 'recreate': {
      const object = pool[step.which]!(step.variant);
      if (step.do === 'recreate') cluster.recreate(object);
      else await cluster.apply(object);
      present.set(step.which, object);
      break;
    }
    case 'delete': {
      const object = present.get(step.which);
      if (object !== undefined) await cluster.delete(object);
      present.delete(step.which);
      break;
    }
    case 'lose events':
      cluster.loseEvents();
      break;
    case 'end watches':
      cluster.endWatches();
      break;
    case 'reset':
      cluster.server.reset();
      break;
    case 'compact':
      cluster.server.cluster.compact();
      break;
    case 'bookmark':
      cluster.server.cluster.bookmark();
      break;
    case 'garble':
      for (const watch of cluster.server.cluster.watches()) watch.corrupt('#');
      break;
    case 'fail':
      cluster.server.cluster.failNext(step.status, 3);
      break;
    case 'skip':
      program.clock.skip(step.ms);
      break;
  }
}

function expectSame(
  program: Program,
  { apiVersion, kind, metadata }: KubernetesObject,
  wanted: KubernetesObject | undefined,
): void {
  const found = program.object(kindOf(apiVersion, kind)!.name, metadata.namespace ?? '', metadata.name);
  if (wanted === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(partOf(wanted));
}

/** What sources keep of the kinds of the pool. */
function partOf({ kind, metadata: { name, namespace }, ...rest }: KubernetesObject): object {
  return kind === 'Pod' ? { metadata: { name, namespace } } : { metadata: { name, namespace }, ...rest };
}
