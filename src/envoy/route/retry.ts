import type { RetrySetting } from '../../model/mesh-config.ts';
import { duration } from '../duration.ts';
import type { RetryPolicy } from '../gen/types.gen.ts';
import { any, constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';

/** Prefers endpoints that have not been tried for the request. The message has no fields. */
const retryHostPredicate = [
  {
    name: 'envoy.retry_host_predicates.previous_hosts',
    typedConfig: constantAny(types.previousHosts, {}),
  },
];

/** Without the predicate: with a consistent hash, retries stay where the hash leads. */
const hashed: RetryPolicy = {
  retryOn: 'connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes',
  numRetries: { value: 2 },
  hostSelectionRetryMaxAttempts: 5,
};

const standard: RetryPolicy = { ...hashed, retryHostPredicate };

/** Istio's default, with the setting's changes; undefined if requests are not retried. */
export function retryPolicy(setting: RetrySetting | undefined, consistentHash: boolean): RetryPolicy | undefined {
  const base = consistentHash ? hashed : standard;
  if (setting === undefined) return base;
  if (setting.attempts <= 0) return undefined;
  const { retryIgnorePreviousHosts: ignorePrevious } = setting;
  return {
    ...base,
    ...(setting.retryOn === '' ? {} : retryConditions(setting.retryOn)),
    numRetries: { value: setting.attempts },
    perTryTimeout: setting.perTryTimeout === undefined ? undefined : duration(setting.perTryTimeout),
    retryHostPredicate:
      ignorePrevious === undefined ? base.retryHostPredicate : ignorePrevious ? retryHostPredicate : undefined,
    retryPriority: setting.retryRemoteLocalities
      ? {
          name: 'envoy.retry_priorities.previous_priorities',
          typedConfig: any(types.previousPriorities, { updateFrequency: 2 }),
        }
      : undefined,
    retryBackOff: setting.backoff === undefined ? undefined : { baseInterval: duration(setting.backoff) },
  };
}

/** `retryOn` mixes condition names and HTTP status codes. */
function retryConditions(retryOn: string): Partial<RetryPolicy> {
  const conditions: string[] = [];
  const codes: number[] = [];
  for (const part of retryOn.split(',')) {
    const name = part.trim();
    if (/^[1-5]\d\d$/.test(name)) codes.push(Number(name));
    else if (name !== '') conditions.push(name);
  }
  const names = conditions.join(',');
  if (codes.length === 0) return { retryOn: names };
  // Istio's text, even if there are only codes: the empty name in front changes nothing.
  const complete = names.includes('retriable-status-codes') ? names : `${names},retriable-status-codes`;
  return { retryOn: complete, retriableStatusCodes: codes };
}
