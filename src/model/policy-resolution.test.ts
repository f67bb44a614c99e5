import { describe, expect, test } from 'vitest';
import {
  type MtlsUse,
  failoverLabels,
  hashesRequests,
  hashKeyOf,
  mtlsUse,
  resolvePolicy,
  subsetOf,
} from './policy-resolution.ts';
import type { DestinationRuleModel, LoadBalancer, Subset, TrafficPolicy } from './traffic-policy.ts';

const balancer = (simple: NonNullable<LoadBalancer['simple']>): TrafficPolicy => ({ loadBalancer: { simple } });
const outlier = (interval: number): TrafficPolicy => ({
  outlierDetection: { interval, splitExternalLocalOriginErrors: false },
});
const tls = (mode: 'DISABLE' | 'SIMPLE' | 'MUTUAL' | 'ISTIO_MUTUAL'): TrafficPolicy =>
  ({ tls: { mode } }) as TrafficPolicy;
const hashed = (name: string): TrafficPolicy => ({
  loadBalancer: { consistentHash: { key: { kind: 'header', name } } },
});

interface Levels {
  readonly host?: TrafficPolicy;
  readonly port?: TrafficPolicy;
  readonly subset?: TrafficPolicy;
  readonly subsetPort?: TrafficPolicy;
}

/** A rule with policies for the host, its port 80, the subset `v1`, and port 80 of that. */
function rule({ host = {}, port, subset = {}, subsetPort }: Levels): DestinationRuleModel {
  const v1: Subset = { name: 'v1', labels: {}, policy: subset, portPolicies: subsetPort ? { 80: subsetPort } : {} };
  const levels = { policy: host, portPolicies: port ? { 80: port } : {}, subsets: [v1] };
  return levels as unknown as DestinationRuleModel;
}

describe('the policy of a cluster', () => {
  const resolve = (levels: Levels, port: number, subset: string, defaultTrafficPolicy?: TrafficPolicy) =>
    resolvePolicy(
      rule(levels),
      port,
      subsetOf(rule(levels), subset),
      defaultTrafficPolicy === undefined ? {} : { defaultTrafficPolicy },
    );

  test('without a rule is the mesh’s', () => {
    expect(resolvePolicy(undefined, 80, undefined, {})).toEqual({});
    expect(resolvePolicy(undefined, 80, undefined, { defaultTrafficPolicy: outlier(1) })).toEqual(outlier(1));
  });

  test('of a port inherits nothing that a port can have', () => {
    const levels = {
      host: { ...balancer('RANDOM'), ...outlier(1), proxyProtocol: 'V1', retryBudget: { percent: 3 } },
      port: balancer('ROUND_ROBIN'),
    } as const;
    expect(resolve(levels, 80, '')).toEqual({
      ...balancer('ROUND_ROBIN'),
      proxyProtocol: 'V1',
      retryBudget: { percent: 3 },
    });
    expect(resolve(levels, 81, '')).toEqual(levels.host);
  });

  test('of a subset replaces whole blocks', () => {
    const levels = { host: { ...balancer('RANDOM'), ...outlier(1) }, subset: outlier(2) };
    expect(resolve(levels, 80, 'v1')).toEqual({ ...balancer('RANDOM'), ...outlier(2) });
    expect(resolve(levels, 80, 'other')).toEqual(levels.host);
  });

  test('of a subset’s port inherits nothing that a port can have', () => {
    const levels = { host: balancer('RANDOM'), port: outlier(1), subset: tls('SIMPLE'), subsetPort: outlier(2) };
    expect(resolve(levels, 80, 'v1')).toEqual(outlier(2));
    expect(resolve(levels, 81, 'v1')).toEqual({ ...balancer('RANDOM'), ...tls('SIMPLE') });
  });

  test('has the mesh’s blocks where a host or port has none', () => {
    expect(resolve({ port: balancer('RANDOM') }, 80, '', outlier(9))).toEqual({ ...balancer('RANDOM'), ...outlier(9) });
    expect(resolve({ host: outlier(1) }, 80, '', outlier(9))).toEqual(outlier(1));
    expect(resolve({ subsetPort: balancer('RANDOM') }, 80, 'v1', outlier(9))).toEqual(balancer('RANDOM'));
  });
});

test('the hash of a route is that of the nearest level that has one', () => {
  const levels = { host: hashed('host'), port: hashed('port'), subset: hashed('subset'), subsetPort: hashed('both') };
  const name = (given: Levels, subset: string, port: number | undefined) => {
    const key = hashKeyOf(rule(given), subset, port);
    return key?.kind === 'header' ? key.name : undefined;
  };
  expect(name(levels, 'v1', 80)).toBe('both');
  expect(name(levels, 'v1', 81)).toBe('subset');
  expect(name(levels, '', 80)).toBe('port');
  expect(name(levels, '', undefined)).toBe('host');
  expect(name({ host: hashed('host'), subset: outlier(1) }, 'v1', 80)).toBe('host');
  expect(hashKeyOf(undefined, '', 80)).toBeUndefined();
});

test.each<[Levels, MtlsUse]>([
  [{}, 'auto'],
  [{ host: tls('ISTIO_MUTUAL') }, 'always'],
  [{ host: tls('DISABLE') }, 'never'],
  [{ host: tls('DISABLE'), port: outlier(1) }, 'never'],
  [{ host: tls('DISABLE'), port: tls('ISTIO_MUTUAL') }, 'always'],
  [{ host: tls('DISABLE'), subset: tls('ISTIO_MUTUAL') }, 'always'],
  [{ host: tls('ISTIO_MUTUAL'), subset: tls('ISTIO_MUTUAL'), subsetPort: tls('SIMPLE') }, 'never'],
])('endpoints are marked for mutual TLS under %j: %s', (levels, expected) => {
  expect(mtlsUse(rule(levels), 80, subsetOf(rule(levels), 'v1'))).toBe(expected);
});

test('subsets are found by name, and the host has none', () => {
  expect(subsetOf(rule({}), 'v1')?.name).toBe('v1');
  expect(subsetOf(rule({}), '')).toBeUndefined();
  expect(subsetOf(undefined, 'v1')).toBeUndefined();
});

test('labels of failover priorities are found on every level, without those that have a value', () => {
  const near = (...failoverPriority: string[]): TrafficPolicy => ({
    loadBalancer: { localityLb: { enabled: true, distribute: [], failover: [], failoverPriority } },
  });
  const levels = { host: near('b', 'a'), port: near('c=1'), subset: near('a'), subsetPort: near('d') };
  expect(failoverLabels(rule(levels))).toEqual(['a', 'b', 'd']);
});

test.each<[Levels]>([
  [{ host: hashed('a') }],
  [{ port: hashed('a') }],
  [{ subset: hashed('a') }],
  [{ subsetPort: hashed('a') }],
])('requests are hashed under %j', (levels) => {
  expect(hashesRequests(rule(levels))).toBe(true);
  expect(hashesRequests(rule({ host: outlier(1) }))).toBe(false);
});
