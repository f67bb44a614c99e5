import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Json } from '../../api/json.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { Outages } from '../client/outages.ts';
import { ReplicaReports } from './replica-reports.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { RecordingLog } from '../testing/recording-log.ts';

const PATH = '/apis/fairlead.dev/v1alpha1/replicareports';

class Lab {
  readonly clock = new FakeClock();
  readonly cluster = new FakeCluster();
  readonly found = new Map<string, unknown>();
  readonly reports: ReplicaReports;
  own: Json = { seen: {} };
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  constructor() {
    const { clock, cluster, found } = this;
    const log = new RecordingLog();
    this.cluster.install(PATH, 'ReplicaReport');
    this.reports = new ReplicaReports({
      api: cluster,
      clock,
      random: () => 0.5,
      log,
      outages: new Outages({ log, clock }),
      pod: { namespace: 'fairlead', name: 'a', uid: 'uid of a' },
      own: () => this.own,
      found: (name, spec) => (spec === undefined ? found.delete(name) : found.set(name, spec)),
      signal: this.#end.signal,
    });
  }

  async start(): Promise<void> {
    this.#running = this.reports.follow();
    this.report({ seen: {} });
    await this.clock.advance(2_000);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  report(own: Json): void {
    this.own = own;
    this.reports.changed();
  }

  there(): unknown {
    return this.cluster.object(PATH, 'fairlead', 'a')?.['spec'];
  }

  /** Since the last call. */
  writes(): readonly string[] {
    return this.cluster.requests
      .splice(0)
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path }) => `${method} ${path.split('/').at(-1)}`);
  }
}

let lab: Lab;
beforeEach(async () => {
  lab = new Lab();
  await lab.start();
});
afterEach(() => lab.stop());

describe('the report of a replica', () => {
  test('is written when it changes, at most once a second', async () => {
    lab.writes();
    for (let i = 0; i < 100; i++) {
      lab.report({ seen: { Gateway: String(i) } });
      await lab.clock.advance(100);
    }
    await lab.clock.advance(60_000);
    expect(lab.there()).toEqual({ seen: { Gateway: '99' } });
    expect(lab.writes().length).toBeLessThanOrEqual(11);
  });

  test('is written less often if it is long', async () => {
    const long = 'x'.repeat(1_000_000);
    lab.writes();
    for (let i = 0; i < 100; i++) {
      lab.report({ seen: { Gateway: String(i) }, long });
      await lab.clock.advance(100);
    }
    await lab.clock.advance(4_000);
    expect(lab.there()).toEqual({ seen: { Gateway: '99' }, long });
    expect(lab.writes().length).toBeLessThanOrEqual(4);
  });

  test('is written as soon as the server is reached again', async () => {
    lab.cluster.broken.add(PATH);
    for (const watch of lab.cluster.watches()) watch.finish();
    lab.report({ seen: { Gateway: '1' } });
    // Its own wait has begun anew just before.
    await lab.clock.until(() => lab.clock.now() > 600_000 && lab.writes().includes('PATCH a'), 900_000);
    lab.cluster.broken.clear();
    await lab.clock.advance(9_000);
    expect(lab.there()).toEqual({ seen: { Gateway: '1' } });
  });

  test.each([
    ['', () => undefined],
    [', and nobody saw that', () => lab.cluster.watches().forEach((watch) => watch.mute())],
  ])('is written again when somebody has deleted it%s', async (_, before) => {
    before();
    lab.cluster.delete(PATH, 'fairlead', 'a');
    lab.cluster.compact();
    for (const watch of lab.cluster.watches()) watch.finish();
    await lab.clock.advance(10_000);
    expect(lab.there()).toEqual({ seen: {} });
  });
});
