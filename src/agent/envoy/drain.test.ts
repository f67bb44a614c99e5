import { expect, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { createAgentLog } from '../log.ts';
import type { AgentSettings } from '../settings/settings.ts';
import { drain, startDrain } from './drain.ts';

const log = createAgentLog({ level: 'error', format: 'text' }, () => {});

/** Envoy's admin interface, which answers with these figures one after the other; the last one stays. */
function envoy(...stats: readonly (string | Error)[]) {
  const posted: string[] = [];
  let asked = 0;
  return {
    posted,
    asked: () => asked,
    admin: {
      get: () => {
        const answer = stats[Math.min(asked++, stats.length - 1)] ?? '';
        return typeof answer === 'string' ? Promise.resolve(answer) : Promise.reject(answer);
      },
      post: (path: string) => {
        posted.push(path);
        return Promise.resolve('OK');
      },
    },
  };
}

const settings = (type: 'sidecar' | 'router', atLeast?: number) =>
  ({
    type,
    proxy: { terminationDrainDuration: 5_000, statusPort: 15_020 },
    ports: { metrics: 15_090, ready: 15_021, secureMetrics: 15_091, secureMergedMetrics: 0 },
    exitOnZeroConnections: atLeast === undefined ? undefined : { atLeast },
  }) as AgentSettings;

/** How long it drains, in milliseconds. */
async function duration(made: ReturnType<typeof envoy>, of: AgentSettings, signal = new AbortController().signal) {
  const clock = new FakeClock();
  let ended = false;
  void drain({ settings: of, admin: made.admin, clock, log }, { signal }).then(() => (ended = true));
  for (let ms = 0; ms < 600_000; ms += 500) {
    await clock.settle();
    if (ended) return ms;
    await clock.advance(500);
  }
  return Infinity;
}

const OPEN = [
  'listener.0.0.0.0_15006.downstream_cx_active: 2',
  'listener.0.0.0.0_15006.worker_0.downstream_cx_active: 2',
  'listener.admin.downstream_cx_active: 1',
  'listener.0.0.0.0_15021.downstream_cx_active: 1',
  'listener.0.0.0.0_15091.downstream_cx_active: 1',
  'listener.envoy_internal_main.downstream_cx_active: 3',
  'http.inbound.downstream_cx_active: 2',
].join('\n');
const CLOSED = OPEN.replace('15006.downstream_cx_active: 2', '15006.downstream_cx_active: 0');

test('a sidecar drains what comes in, a gateway everything, for a fixed time', async () => {
  const [sidecar, router] = [envoy(), envoy()];
  expect(await duration(sidecar, settings('sidecar'))).toBe(5_000);
  expect(await duration(router, settings('router'))).toBe(5_000);
  expect(sidecar.posted).toEqual(['/drain_listeners?inboundonly&graceful']);
  expect(router.posted).toEqual(['/drain_listeners?graceful']);
});

test('who waits for connections to end does not wait for those of the agent and Envoy itself', async () => {
  const made = envoy(OPEN, OPEN, CLOSED);
  expect(await duration(made, settings('sidecar', 5_000))).toBe(7_000);
  expect(await duration(envoy(OPEN), settings('sidecar', 5_000))).toBe(Infinity);
});

test('an Envoy that does not say how many are open is waited for in vain five times', async () => {
  const made = envoy(OPEN, new Error('gone'));
  expect(await duration(made, settings('sidecar', 1_000))).toBe(6_000);
  expect(made.asked()).toBe(6);
});

test('it ends when Envoy does', async () => {
  const gone = new AbortController();
  gone.abort();
  expect(await duration(envoy(OPEN), settings('router', 5_000), gone.signal)).toBe(0);
});

test('a drain before the end leaves Envoy running', async () => {
  const made = envoy();
  await startDrain({ settings: settings('sidecar'), admin: made.admin, clock: new FakeClock(), log }, false);
  expect(made.posted).toEqual(['/drain_listeners?inboundonly&graceful&skip_exit']);
});
