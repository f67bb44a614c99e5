import { expect, test } from 'vitest';
import { ApiError } from './api-error.ts';
import { Outages } from './outages.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { RecordingLog } from '../testing/recording-log.ts';

const denied = new ApiError('no', { code: 403, reason: 'Forbidden', retryable: true });
const refused = new ApiError('no', { code: 0, reason: 'ECONNREFUSED', retryable: true });

function outages(signal?: AbortSignal): {
  clock: FakeClock;
  log: RecordingLog;
  outages: Outages;
  said: () => string[];
} {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const said = (): string[] =>
    log.lines.splice(0).map(({ message, fields }) => `${message}: ${(fields as { who: string | string[] }).who}`);
  return { clock, log, outages: new Outages({ clock, log, ...(signal && { signal }) }), said };
}

test('a trouble is said once, by the first that has it, and so is its end, by the last', async () => {
  const it = outages();
  for (const who of ['Pod', 'Service', 'Pod']) it.outages.begin(who, refused);
  await it.clock.advance(10_000);
  expect(it.said()).toEqual(['API server: unreachable, retrying until it works: Pod']);
  it.outages.end('Pod');
  expect(it.said()).toEqual([]);
  it.outages.end('Service');
  expect(it.said()).toEqual(['API server: no longer unreachable: Service']);
});

test('all that are denied access are named, also those that come later', async () => {
  const it = outages();
  for (const who of ['Pod', 'Service', 'Gateway']) it.outages.begin(who, denied);
  expect(it.said()).toEqual(['API server: denying access, retrying until it works: Pod']);
  await it.clock.advance(1_000);
  expect(it.said()).toEqual(['API server: denying access to all of these: Gateway,Pod,Service']);
  for (const who of ['Pod', 'Service', 'Gateway']) it.outages.begin(who, denied);
  await it.clock.advance(60_000);
  expect(it.said()).toEqual([]);
  it.outages.end('Gateway');
  it.outages.begin('Node', denied);
  await it.clock.advance(1_000);
  expect(it.said()).toEqual(['API server: denying access to all of these: Node,Pod,Service']);
});

test('of many that are denied access the first ones are named, and the others counted', async () => {
  const it = outages();
  for (let i = 0; i < 1_000; i++) it.outages.begin(`VirtualService/${1_000 + i}`, denied);
  await it.clock.advance(1_000);
  expect(it.log.lines).toHaveLength(2);
  const { who, more } = it.log.lines[1]!.fields as { who: string[]; more: number };
  expect([who.length, more]).toEqual([50, 950]);
});

test('those who wait for the server are woken when it answers somebody whom it did not, and not all the time', async () => {
  const it = outages();
  let woken = 0;
  it.outages.onReached(() => woken++);
  it.outages.reached('Pod');
  it.outages.begin('VirtualService/shop/a', refused);
  it.outages.reached('Pod');
  expect(woken).toBe(0);
  for (let second = 0; second < 20; second++) {
    it.outages.begin('Pod', refused);
    it.outages.reached('Pod');
    it.outages.end('Pod');
    await it.clock.advance(1_000);
  }
  expect(woken).toBe(2);
});

test('nothing waits to be said after the end', async () => {
  const ending = new AbortController();
  const it = outages(ending.signal);
  it.outages.begin('Pod', denied);
  it.outages.begin('Service', denied);
  ending.abort();
  it.outages.begin('Node', denied);
  await it.clock.advance(10_000);
  expect(it.said()).toHaveLength(1);
});
