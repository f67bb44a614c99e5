import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import { ApiError } from '../kube/client/api-error.ts';
import { Budget } from '../kube/client/budget.ts';
import { Outages } from '../kube/client/outages.ts';
import { FakeCluster } from '../kube/testing/fake-cluster.ts';
import { RecordingLog } from '../kube/testing/recording-log.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { CONTROLLED_BY, RootDistribution } from './root-distribution.ts';

const PATH = '/api/v1/configmaps';

/** Clusters `east` and `west` with the namespaces `root` and `shop`. */
function lab() {
  const clock = new FakeClock();
  const controllers: Record<string, string> = {};
  const state = { roots: 'roots', controllers };
  const namespaceOf = (cluster: string, name: string): KubernetesObject => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, annotations: { [CONTROLLED_BY]: state.controllers[cluster] ?? '' } },
  });
  const distribution = new RootDistribution({
    roots: () => state.roots,
    namespaces: { of: () => ['root', 'shop'], get: namespaceOf },
    ...{ clusterId: 'own', rootNamespace: 'root' },
  });
  const join = (cluster: string, api = new FakeCluster().install(PATH, 'ConfigMap')) => {
    const end = new AbortController();
    const log = new RecordingLog();
    const ended = distribution.join({
      ...{ cluster, api, clock, random: () => 0.5, log, signal: end.signal, leavesOut: () => false },
      budget: new Budget({ most: 1_000_000 }),
      outages: new Outages({ log, clock, signal: end.signal }),
    });
    onTestFinished(async () => {
      end.abort();
      await ended;
    });
    const of = (namespace: string): unknown =>
      (api.object(PATH, namespace, 'istio-ca-root-cert') as { readonly data?: object } | undefined)?.data;
    return { api, end, ended, of };
  };
  const term = new AbortController();
  onTestFinished(() => term.abort());
  return { clock, state, distribution, join, term };
}

const right = (roots = 'roots') => ({ 'root-cert.pem': roots });

test('the leader writes the roots into clusters whose root namespace names this one, and into no others', async () => {
  const { clock, state, distribution, join, term } = lab();
  state.controllers = { east: 'other, own', west: 'other' };
  const [east, west] = [join('east'), join('west')];
  await clock.advance(1_000);
  expect(east.api.requests).toEqual([]);
  distribution.lead(term.signal);
  await clock.advance(1_000);
  expect([east.of('root'), east.of('shop')]).toEqual([right(), right()]);
  state.controllers = { east: 'other', west: '*' };
  for (const cluster of ['east', 'west']) distribution.changed(cluster, ['root']);
  state.roots = 'more';
  distribution.changedAll();
  await clock.advance(1_000);
  expect([east.of('shop'), west.of('shop')]).toEqual([right(), right('more')]);
  // What is no longer read is left alone.
  west.end.abort();
  await west.ended;
  state.roots = 'most';
  distribution.changedAll();
  await clock.advance(1_000);
  expect(west.of('shop')).toEqual(right('more'));
});

test('a cluster that takes none holds up no other, and gets them later', async () => {
  const { clock, state, distribution, join, term } = lab();
  state.controllers = { east: 'own', west: 'own' };
  const [east, west] = [join('east'), join('west')];
  const forbidden = new ApiError('403 Forbidden', { code: 403, reason: 'Forbidden', retryable: true });
  const { post } = east.api;
  east.api.post = () => Promise.reject(forbidden);
  distribution.lead(term.signal);
  await clock.advance(1_000);
  expect([east.of('shop'), west.of('shop')]).toEqual([undefined, right()]);
  east.api.post = post;
  await clock.advance(61_000);
  expect(east.of('shop')).toEqual(right());
});
