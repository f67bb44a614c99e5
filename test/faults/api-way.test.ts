import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeApiServer } from '../../src/kube/testing/fake-api-server.ts';
import { createAuthority } from '../peers/keys.ts';
import { ApiWay } from './api-way.ts';

const PATH = '/apis/discovery.k8s.io/v1/endpointslices';
const authority = await createAuthority();

let api: FakeApiServer;
let way: ApiWay;

beforeEach(async () => {
  api = await new FakeApiServer(undefined, await authority.server(['127.0.0.1'])).start();
  api.cluster.install(PATH, 'EndpointSlice').apply(PATH, { metadata: { namespace: 'shop', name: 's' } });
  // As much as can be lacks, and the object is in it.
  let drawn = 0;
  way = await ApiWay.start({ url: api.url, ca: authority.certificate }, () => (drawn++ % 2 === 0 ? 0.99 : 0));
});

afterEach(async () => {
  way.close();
  await api.stop();
});

async function list() {
  const { items, metadata } = (await (await fetch(`${way.url}${PATH}`)).json()) as {
    readonly items: readonly unknown[];
    readonly metadata: { readonly resourceVersion: string };
  };
  return { count: items.length, version: metadata.resourceVersion };
}

const watch = (version: string): Promise<Response> => fetch(`${way.url}${PATH}?watch=1&resourceVersion=${version}`);

async function shortList() {
  way.set([{ name: 'short lists', of: new Set(['endpointslices']) }]);
  const found = await list();
  expect(found.count).toBe(0);
  return found;
}

test('a watch that resumes from a list that lacked something lasts until the run is mended, and then ends', async () => {
  const { version } = await shortList();
  way.set([]);
  const response = await watch(version);
  way.mend();
  expect(await response.text()).toContain('"code":410');
});

test('a watch that was not there when the run was mended does not resume from a list that lacked something', async () => {
  const { version } = await shortList();
  way.mend();
  expect((await watch(version)).status).toBe(410);
});

test('nor does one that the API server answers only then', async () => {
  const { version } = await shortList();
  way.set([]);
  const asked = new Promise<() => void>((resolve) =>
    api.intercept.push((_, response) => resolve(() => void response.writeHead(200).write('\n'))),
  );
  const response = watch(version);
  const answer = await asked;
  way.mend();
  answer();
  expect(await (await response).text()).toContain('"code":410');
});

test('what is whole again is resumed from', async () => {
  await shortList();
  way.mend();
  const { count, version } = await list();
  expect(count).toBe(1);
  const response = await watch(version);
  expect(response.status).toBe(200);
  await response.body?.cancel();
});
