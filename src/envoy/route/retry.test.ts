import { expect, test } from 'vitest';
import type { RetrySetting } from '../../model/mesh-config.ts';
import { retryPolicy } from './retry.ts';

const policy = (setting: Partial<RetrySetting>, hashed = false) =>
  retryPolicy({ attempts: 3, retryOn: '', retryRemoteLocalities: false, ...setting }, hashed);
const previousHosts = [{ name: 'envoy.retry_host_predicates.previous_hosts' }];

test('without attempts there is no policy', () => {
  expect(policy({ attempts: 0, retryOn: '5xx' })).toBeUndefined();
  expect(policy({ attempts: -1 })).toBeUndefined();
});

test('attempts alone keep the default conditions', () => {
  expect(policy({})).toMatchObject({
    numRetries: { value: 3 },
    retryOn: 'connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes',
    hostSelectionRetryMaxAttempts: 5,
    retryHostPredicate: previousHosts,
  });
});

test.each([
  ['5xx', '5xx', undefined],
  ['5xx, 503 ,reset', '5xx,reset,retriable-status-codes', [503]],
  ['retriable-status-codes,503,504', 'retriable-status-codes', [503, 504]],
  ['503', ',retriable-status-codes', [503]],
])('conditions %s', (retryOn, conditions, codes) => {
  const built = policy({ retryOn });
  expect(built?.retryOn).toBe(conditions);
  expect(built?.retriableStatusCodes).toEqual(codes);
});

test.each([
  [undefined, false, previousHosts],
  [undefined, true, undefined],
  [true, true, previousHosts],
  [false, false, undefined],
])('retryIgnorePreviousHosts %s with a hash: %s', (ignore, hashed, expected) => {
  const setting = ignore === undefined ? {} : { retryIgnorePreviousHosts: ignore };
  const built = policy(setting, hashed)?.retryHostPredicate;
  if (expected === undefined) expect(built).toBeUndefined();
  else expect(built).toMatchObject(expected);
});

test('durations and other localities', () => {
  const built = policy({ perTryTimeout: 2000, backoff: 25, retryRemoteLocalities: true });
  expect(built).toMatchObject({
    perTryTimeout: { seconds: 2 },
    retryBackOff: { baseInterval: { seconds: 0, nanos: 25_000_000 } },
    retryPriority: { name: 'envoy.retry_priorities.previous_priorities' },
  });
  expect(built!.retryPriority!.typedConfig!.value).toEqual({
    updateFrequency: 2,
  });
});
