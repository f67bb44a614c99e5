import { type Clock, sleep } from '../../base/clock.ts';
import type { AgentLog } from '../log.ts';
import type { AgentSettings } from '../settings/settings.ts';
import type { Admin } from './admin.ts';

export interface DrainOptions {
  readonly settings: Pick<AgentSettings, 'type' | 'proxy' | 'exitOnZeroConnections' | 'ports'>;
  readonly admin: Admin;
  readonly clock: Clock;
  readonly log: AgentLog;
}

/** Milliseconds between looks at open connections; failed looks in a row after which nobody waits any more. */
const [EVERY, MOST_FAILURES] = [1_000, 5];

/** Has Envoy tell its clients to go elsewhere, without ending anything. */
export async function startDrain({ settings, admin, log }: DrainOptions, exits: boolean): Promise<void> {
  // What a sidecar calls for its application goes on until that has ended.
  const which = settings.type === 'sidecar' ? 'inboundonly&' : '';
  await admin.post(`/drain_listeners?${which}graceful${exits ? '' : '&skip_exit'}`).catch((error: unknown) => {
    log.warn('Envoy does not drain', { reason: error instanceof Error ? error.message : String(error) });
  });
}

/** Drains, and settles when Envoy may end; or when the signal fires, because it has. */
export async function drain(options: DrainOptions, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  const { settings, clock, log } = options;
  const { exitOnZeroConnections: zero, proxy } = settings;
  await startDrain(options, true);
  if (zero === undefined) {
    log.info('Draining', { milliseconds: proxy.terminationDrainDuration });
    return sleep(clock, proxy.terminationDrainDuration, { signal });
  }
  log.info('Draining until no connection is open', { atLeast: zero.atLeast });
  await sleep(clock, zero.atLeast, { signal });
  let failures = 0;
  // The kubelet's grace period is the bound.
  while (!signal.aborted) {
    try {
      if (openConnections(await options.admin.get(ACTIVE), settings) === 0) return;
      failures = 0;
    } catch {
      if (++failures >= MOST_FAILURES) return log.warn('Envoy does not say how many connections are open');
    }
    await sleep(clock, EVERY, { signal });
  }
}

const ACTIVE = '/stats?usedonly&filter=downstream_cx_active%24';

/** Of listeners for traffic: not of Envoy's threads, its admin interface, nor of those that look after the Pod. */
function openConnections(stats: string, { ports, proxy }: DrainOptions['settings']): number {
  const own = [...Object.values(ports), proxy.statusPort].map((port) => `_${port}.downstream_cx_active`);
  let sum = 0;
  for (const line of stats.split('\n')) {
    const [name = '', value = ''] = line.split(': ');
    if (!name.startsWith('listener.') || name.includes('.worker_')) continue;
    if (/^listener\.(admin|envoy_internal_)/.test(name) || own.some((end) => name.endsWith(end))) continue;
    sum += Number(value);
  }
  return sum;
}
