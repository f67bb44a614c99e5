import { expect, test } from 'vitest';
import { createProtos } from '../envoy/encode/proto.ts';
import type { DebugPages } from '../ops/debug/pages.ts';
import { type QuestionSources, debugQuestions } from './questions.ts';

const pages: DebugPages = new Map([
  ['small', { help: '', show: () => ({ type: 'text/plain', body: 'small' }) }],
  ['slow', { help: '', show: () => ({ type: 'text/plain', body: pieces(20, 'x') }) }],
  ['large', { help: '', show: () => ({ type: 'text/plain', body: pieces(40, 'x'.repeat(1024 * 1024)) }) }],
]);
let generated = 0;

function* pieces(count: number, piece: string): Generator<string> {
  for (let i = 0; i < count; i++) {
    const ends = performance.now() + 1;
    while (performance.now() < ends);
    generated++;
    yield piece;
  }
}

const sources: QuestionSources = {
  protos: createProtos(),
  rootNamespace: 'istio-system',
  clusterId: 'Kubernetes',
  replica: 'one',
  version: '1.2.3',
  proxies: () => [],
  given: () => [],
  pages,
};

const questions = debugQuestions(() => sources);
const here = { address: '127.0.0.1' };
const ask = (name: string, client: object = here, signal = new AbortController().signal) =>
  questions.answer({ typeUrl: 'istio.io/debug', names: [name], ...here, ...client }, signal);

test("only the types of Istio's tools are questions", () => {
  const types = ['istio.io/debug', 'istio.io/debug/syncz', 'istio.io/debug/config_dump'];
  expect([...types, 'istio.io/debug/other', '', 'T/Cluster'].filter((type) => questions.isOne(type))).toEqual(types);
});

test.each([
  ['127.0.0.1', undefined, undefined],
  ['::1', undefined, undefined],
  ['10.0.0.1', undefined, 'UNAUTHENTICATED'],
  ['10.0.0.1', 'istio-system', undefined],
  ['10.0.0.1', 'shop', 'PERMISSION_DENIED'],
  ['127.0.0.1', 'shop', 'PERMISSION_DENIED'],
])('from %s with an identity in namespace %j: %j', async (address, namespace, code) => {
  const cluster = 'Kubernetes';
  const identity = namespace && { trustDomain: 'cluster.local', namespace, serviceAccount: 'default', cluster };
  const answer = await ask('small', { address, ...(identity && { identity }) });
  expect('code' in answer ? answer.code : undefined).toBe(code);
});

test('an account of another cluster may not ask, whatever its namespace is called there', async () => {
  const identity = {
    trustDomain: 'cluster.local',
    namespace: 'istio-system',
    serviceAccount: 'istiod',
    cluster: 'east',
  };
  expect(await ask('small', { address: '127.0.0.1', identity })).toHaveProperty('code', 'PERMISSION_DENIED');
});

test('a page that is too large is refused, with a word on where it can be had', async () => {
  expect(await ask('large')).toEqual({
    code: 'RESOURCE_EXHAUSTED',
    message: 'the answer is larger than 33554432 bytes; ask the debug pages on port 8080 or 15014 instead',
  });
});

test('other work goes on while an answer is made, and nothing is made for a client that is gone', async () => {
  let rounds = 0;
  const counting = setInterval(() => rounds++);
  const answer = await ask('slow');
  clearInterval(counting);
  expect('resources' in answer && answer.resources[0]?.body.length).toBe(20);
  expect(rounds).toBeGreaterThan(1);
  const gone = new AbortController();
  const before = generated;
  const asking = ask('slow', {}, gone.signal);
  gone.abort();
  await expect(asking).rejects.toThrow();
  expect(generated - before).toBeLessThan(20);
});
