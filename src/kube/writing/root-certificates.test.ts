import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { Outages } from '../client/outages.ts';
import { RootCertificates } from './root-certificates.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { RecordingLog } from '../testing/recording-log.ts';

const PATH = '/api/v1/configmaps';

function lead(namespaces: string[], roots = 'roots') {
  const clock = new FakeClock();
  const api = new FakeCluster().install(PATH, 'ConfigMap');
  const log = new RecordingLog();
  const term = new AbortController();
  const state = { namespaces, roots, rotation: 'stable' };
  const outages = new Outages({ log, clock, signal: term.signal });
  const writer = new RootCertificates({
    api,
    clock,
    random: () => 0.5,
    log,
    outages,
    roots: () => state.roots,
    rotation: { namespace: 'root', text: () => state.rotation },
    namespaces: () => state.namespaces,
    isWanted: (name) => state.namespaces.includes(name),
  });
  const ended = writer.lead(term.signal);
  onTestFinished(async () => {
    term.abort();
    await ended;
  });
  const of = (namespace: string) => {
    const found = api.object(PATH, namespace, 'istio-ca-root-cert') as
      { readonly data: object; readonly metadata: { readonly labels: object } } | undefined;
    return found && { data: found.data, labels: found.metadata.labels };
  };
  return { api, clock, state, writer, of, log, term, ended };
}

const right = (roots = 'roots') => ({ data: { 'root-cert.pem': roots }, labels: { 'istio.io/config': 'true' } });

test('every namespace has the roots, but those in which nothing runs', async () => {
  const { clock, of, writer, state } = lead(['shop', 'bank', 'kube-public']);
  await clock.advance(1_000);
  expect([of('shop'), of('bank'), of('kube-public')]).toEqual([right(), right(), undefined]);
  state.namespaces.push('late');
  writer.changed(['late']);
  await clock.advance(100);
  expect(of('late')).toEqual(right());
});

test('nothing is written before there is an authority, and all when the roots change', async () => {
  const { clock, of, writer, state } = lead(['shop'], '');
  await clock.advance(1_000);
  expect(of('shop')).toBeUndefined();
  for (const roots of ['roots', 'others']) {
    state.roots = roots;
    writer.changed();
    await clock.advance(100);
    expect(of('shop')).toEqual(right(roots));
  }
});

test('one of them says how far a rotation is, and the leader knows where roots are missing', async () => {
  const { api, clock, writer, state, term } = lead(['root', 'shop', 'kube-public']);
  expect(writer.missing('roots')).toBeUndefined();
  await clock.advance(1_000);
  const said = (namespace: string) =>
    (api.object(PATH, namespace, 'istio-ca-root-cert')!['metadata'] as { readonly annotations?: object }).annotations;
  expect([said('root'), said('shop')]).toEqual([{ 'fairlead/root-rotation': 'stable' }, undefined]);
  expect([writer.missing('roots'), writer.missing('others')]).toEqual([0, 2]);
  state.rotation = 'distributing';
  writer.changed();
  await clock.advance(100);
  expect(said('root')).toEqual({ 'fairlead/root-rotation': 'distributing' });
  term.abort();
  expect(writer.missing('roots')).toBeUndefined();
});

test('what others change or delete is set right, and what they add stays', async () => {
  const { api, clock, of } = lead(['shop']);
  await clock.advance(1_000);
  api.apply(PATH, {
    metadata: { name: 'istio-ca-root-cert', namespace: 'shop' },
    data: { 'root-cert.pem': 'mine', other: 'kept' },
  });
  await clock.advance(100);
  expect(of('shop')).toEqual({ ...right(), data: { 'root-cert.pem': 'roots', other: 'kept' } });
  api.delete(PATH, 'shop', 'istio-ca-root-cert');
  await clock.advance(100);
  expect(of('shop')).toEqual(right());
});

test('a write that fails is tried again', async () => {
  const { api, clock, of, writer, state } = lead(['shop'], '');
  await clock.advance(1_000);
  state.roots = 'roots';
  api.failNext(503);
  writer.changed();
  await clock.advance(100);
  expect(of('shop')).toBeUndefined();
  await clock.advance(3_000);
  expect(of('shop')).toEqual(right());
});

test('writing in a namespace has outages of its own, which end with the term', async () => {
  const { api, clock, log, term, of } = lead(['shop', 'bank']);
  const begun = 'API server: unavailable, retrying until it works';
  api.onRequest = ({ path, method }) => {
    if (method === 'POST' && path.includes('/shop/')) api.failNext(503);
  };
  await clock.advance(10_000);
  for (const watch of api.watches()) watch.finish();
  await clock.advance(10_000);
  expect([of('bank'), of('shop'), log.messages()]).toEqual([right(), undefined, [begun]]);
  term.abort();
  expect(log.messages()).toEqual([begun, 'API server: no longer unavailable']);
});

test('a write that was refused waits no longer when the API server is back', async () => {
  const { api, clock, of, state, writer } = lead(['shop'], '');
  await clock.advance(1_000);
  api.denied.add(PATH);
  for (const watch of api.watches()) watch.finish();
  state.roots = 'roots';
  writer.changed();
  await clock.advance(20_000);
  api.denied.clear();
  await clock.advance(12_000);
  expect(of('shop')).toEqual(right());
});

test('nothing is written when nothing differs, and nothing after the term', async () => {
  const { api, clock, writer, state, term, ended } = lead(['shop']);
  await clock.advance(1_000);
  const writes = () => api.requests.filter(({ method }) => method !== 'GET').length;
  expect(writes()).toBe(1);
  writer.changed();
  await clock.advance(1_000);
  expect(writes()).toBe(1);
  term.abort();
  await ended;
  state.roots = 'others';
  writer.changed();
  await clock.advance(1_000);
  expect(writes()).toBe(1);
});
