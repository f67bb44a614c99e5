import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { Json } from '../../api/json.ts';
import { LeaderElector } from './lease.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { FaultyApi, type Fault } from '../testing/faulty-api.ts';
import { RecordingLog } from '../testing/recording-log.ts';
import { runs } from '../../testing/runs.ts';

const path = '/apis/coordination.k8s.io/v1/leases';

class Replica {
  readonly api: FaultyApi;
  readonly elector: LeaderElector;
  readonly log = new RecordingLog();
  readonly terms: AbortSignal[] = [];
  private readonly ending = new AbortController();
  private running: Promise<void> | undefined;

  constructor(identity: string, cluster: FakeCluster, clock: FakeClock) {
    this.api = new FaultyApi(cluster, clock);
    this.elector = new LeaderElector({
      api: this.api,
      namespace: 'istio-system',
      name: 'fairlead',
      identity,
      clock,
      random: () => 0.5,
      log: this.log,
      onElected: (term) => this.terms.push(term),
    });
  }

  get leads(): boolean {
    return this.terms.at(-1)?.aborted === false;
  }

  start(): this {
    this.running = this.elector.run({ signal: this.ending.signal });
    return this;
  }

  /** Ends it; the promise needs time to pass only when the server does not answer. */
  stop(): Promise<void> {
    this.ending.abort();
    return this.running ?? Promise.resolve();
  }
}

let clock: FakeClock;
let cluster: FakeCluster;
const replicas: Replica[] = [];

function replica(identity: string): Replica {
  const made = new Replica(identity, cluster, clock);
  replicas.push(made);
  return made;
}

function begin(): void {
  clock = new FakeClock();
  cluster = new FakeCluster().install(path, 'Lease');
}

async function end(): Promise<void> {
  for (const { api } of replicas) api.fault = 'refused';
  await Promise.all(replicas.splice(0).map((r) => r.stop()));
}

afterEach(end);

async function lease(): Promise<Json> {
  const { signal } = new AbortController();
  const found = (await cluster.get(`${path.replace('leases', 'namespaces/istio-system/leases')}/fairlead`, {
    signal,
  })) as {
    spec: Json;
  };
  return found.spec;
}

describe('one replica', () => {
  test('creates the lease, leads, and renews it', async () => {
    begin();
    const a = replica('a').start();
    await clock.settle();
    expect(a.leads).toBe(true);
    const first = await lease();
    expect(first).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2030-01-01T00:00:00.000000Z',
      renewTime: '2030-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    await clock.advance(60_000);
    expect(a.terms).toHaveLength(1);
    expect(await lease()).toMatchObject({ acquireTime: first['acquireTime'], leaseTransitions: 0 });
    expect((await lease())['renewTime']).not.toBe(first['renewTime']);
  });

  test('leads on while it is too busy to read answers, as long as nobody else can have taken over', async () => {
    begin();
    const a = replica('a').start();
    await clock.advance(60_000);
    // Whatever is sent is answered during the next block, and read after it.
    a.api.fault = { late: 100 };
    for (const ms of [...Array.from({ length: 20 }, () => 3_000), 6_500, 100, 100]) {
      await clock.block(ms);
      await clock.advance(50);
    }
    expect(a.leads).toBe(true);
    expect(a.terms).toHaveLength(1);
    a.api.fault = 'hanging';
    await clock.block(13_000);
    expect(a.leads).toBe(false);
  });

  test('a term counts from when its renewal was sent, not from when the answer was read', async () => {
    begin();
    const a = replica('a').start();
    await clock.advance(60_000);
    a.api.fault = { late: 100 };
    const { requests } = a.api;
    await clock.until(() => a.api.requests > requests, 5_000);
    await clock.block(10_000);
    expect(a.leads).toBe(true);
    a.api.fault = 'hanging';
    await clock.block(2_900);
    expect(a.leads).toBe(true);
    await clock.block(200);
    expect(a.leads).toBe(false);
  });

  test('renews with one request', async () => {
    begin();
    const a = replica('a').start();
    await clock.advance(10_000);
    const { requests } = a.api;
    await clock.advance(22_000);
    expect(a.api.requests - requests).toBe(10);
  });

  test.each<[string, Fault]>([
    ['is refused', 'refused'],
    ['hangs', 'hanging'],
  ])('stops leading in time when the server %s, says so once, and leads again', async (_, fault) => {
    begin();
    const a = replica('a').start();
    await clock.advance(5_000);
    a.api.fault = fault;
    await clock.advance(7_000);
    expect(a.leads).toBe(true);
    await clock.advance(4_000);
    expect(a.leads).toBe(false);
    await clock.advance(60_000);
    a.api.fault = 'none';
    await clock.advance(10_000);
    expect(a.leads).toBe(true);
    expect(a.log.messages()).toEqual([
      'Became the leader',
      'API server: unreachable, retrying until it works',
      'No longer the leader',
      'Became the leader',
      'API server: no longer unreachable',
    ]);
  });

  test('goes on when somebody edits or deletes the lease', async () => {
    begin();
    const a = replica('a').start();
    await clock.settle();
    const metadata = { namespace: 'istio-system', name: 'fairlead', labels: { a: 'b' } };
    cluster.apply(path, { metadata, spec: await lease() });
    await clock.advance(20_000);
    cluster.delete(path, 'istio-system', 'fairlead');
    await clock.advance(20_000);
    expect(a.leads).toBe(true);
    expect(a.terms).toHaveLength(1);
  });
});

describe('two replicas', () => {
  test('the second one takes over when the first gives the lease back', async () => {
    begin();
    const a = replica('a').start();
    await clock.settle();
    const b = replica('b').start();
    await clock.advance(60_000);
    expect([a.leads, b.leads]).toEqual([true, false]);
    await a.stop();
    expect(a.leads).toBe(false);
    expect(await lease()).toMatchObject({ holderIdentity: '' });
    await clock.advance(3_000);
    expect(b.leads).toBe(true);
    expect(await lease()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  test('the second one takes over when the first is cut off, but not before its term is over', async () => {
    begin();
    const a = replica('a').start();
    await clock.settle();
    const b = replica('b').start();
    await clock.advance(5_000);
    a.api.fault = 'refused';
    let between = false;
    for (let i = 0; i < 200 && !b.leads; i++) {
      await clock.advance(100);
      expect([a.leads, b.leads]).not.toEqual([true, true]);
      between ||= !a.leads && !b.leads;
    }
    expect(between).toBe(true);
    expect(b.leads).toBe(true);
    a.api.fault = 'none';
    await clock.advance(60_000);
    expect([a.leads, b.leads]).toEqual([false, true]);
  });

  test.each([
    ['a year', 31_536_000, 3_600_000],
    ['half a minute', 30, 30_000],
    ['nothing', undefined, 15_000],
  ])(
    'whoever holds the lease and does not renew it is waited for as it says, within limits: %s',
    async (_, seconds, ms) => {
      begin();
      const spec = {
        holderIdentity: 'gone',
        renewTime: '2030-01-01T00:00:00.000000Z',
        ...(seconds !== undefined && { leaseDurationSeconds: seconds }),
      };
      cluster.apply(path, { metadata: { namespace: 'istio-system', name: 'fairlead' }, spec });
      const a = replica('a').start();
      await clock.advance(ms - 1);
      expect(a.leads).toBe(false);
      await clock.advance(2_500);
      expect(a.leads).toBe(true);
    },
  );

  test('a leader that finds another one in the lease stops at once', async () => {
    begin();
    const a = replica('a').start();
    await clock.settle();
    cluster.apply(path, {
      metadata: { namespace: 'istio-system', name: 'fairlead' },
      spec: { ...(await lease()), holderIdentity: 'somebody' },
    });
    await clock.advance(2_500);
    expect(a.leads).toBe(false);
  });
});

test('whatever happens to their requests, there are never two leaders, and in the end there is one', async () => {
  const fault: fc.Arbitrary<Fault> = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<Fault>('none', 'refused', 'hanging', 'lost') },
    { weight: 1, arbitrary: fc.record({ late: fc.integer({ min: 1, max: 20_000 }) }) },
  );
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ replica: fc.nat(2), fault }) },
    { weight: 4, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 20_000 }) }) },
    { weight: 1, arbitrary: fc.record({ stop: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.constant({ edit: true }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
      begin();
      const all = [replica('a').start(), replica('b').start(), replica('c').start()];
      const check = (): void => expect(all.filter((r) => r.leads).length).toBeLessThanOrEqual(1);
      for (const s of steps) {
        if ('replica' in s) all[s.replica]!.api.fault = s.fault;
        else if ('stop' in s) void all[s.stop]!.stop();
        else if ('edit' in s) {
          const metadata = { namespace: 'istio-system', name: 'fairlead' };
          const spec = await lease().catch(() => undefined);
          if (spec !== undefined) cluster.apply(path, { metadata, spec });
        } else {
          for (let left = s.wait; left > 0; left -= 700) {
            await clock.advance(Math.min(left, 700));
            check();
          }
        }
        check();
      }
      for (const { api } of all) api.fault = 'none';
      await clock.advance(60_000);
      expect(all.filter((r) => r.leads)).toHaveLength(1);
      await end();
    }),
    { numRuns: runs(100) },
  );
});
