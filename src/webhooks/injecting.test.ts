import { describe, expect, test } from 'vitest';
import type { InjectionRequest, InjectionResult } from '../injection/injector.ts';
import { collect } from '../testing/memory.ts';
import type { AdmissionRequest } from './admission-review.ts';
import { type InjectingOptions, injectPod, labelsIn } from './injecting.ts';

const request: AdmissionRequest = {
  ...{ uid: 'u', operation: 'CREATE', group: '', kind: 'Pod', resource: 'pods', subresource: '' },
  ...{ name: '', namespace: 'shop', object: { metadata: { generateName: 'web-' } }, oldObject: undefined },
};

/** An injector that decides by the label of the namespace alone. */
function setup(options: Partial<InjectingOptions> = {}) {
  const asked: InjectionRequest[] = [];
  const inject = (about: InjectionRequest): InjectionResult => {
    asked.push(about);
    const label = about.namespace.labels['istio-injection'];
    if (label === 'bad') return { refused: 'annotation x: write y' };
    if (label === 'host') return { untouched: 'host network', warnings: ['w'] };
    if (label !== 'enabled') return { untouched: 'not labelled', warnings: ['w'], unselected: true };
    return { pod: { ...about.pod, spec: {} }, warnings: ['w'] };
  };
  const all: InjectingOptions = {
    injector: () => ({ inject }),
    meshConfig: () => ({ a: 1 }),
    proxyConfigsOf: () => ({ shadowed: [] }),
    labelsOf: () => ({ 'istio-injection': 'enabled' }),
    freshLabelsOf: () => Promise.resolve(undefined),
    ...options,
  };
  return {
    asked,
    async run(changes: Partial<AdmissionRequest> = {}, path = '') {
      const about = { ...request, ...changes };
      const injection = injectPod(about, path, all);
      return injection instanceof Promise ? (await injection)(about) : injection;
    },
    begin: (about: AdmissionRequest) => injectPod(about, '', all),
  };
}

describe('a Pod that is created', () => {
  test('is given to the injector with what is known of its namespace, and answered with a patch', async () => {
    const { asked, run } = setup();
    expect(await run({}, '/cluster/east')).toEqual({
      verdict: { allowed: true, warnings: ['w'], patch: [{ op: 'add', path: '/spec', value: {} }] },
      outcome: 'injected',
    });
    expect(asked).toEqual([
      {
        pod: request.object,
        namespace: { name: 'shop', labels: { 'istio-injection': 'enabled' } },
        meshConfig: { a: 1 },
        proxyConfigsOf: expect.any(Function) as () => unknown,
        parameters: { cluster: 'east', env: {} },
      },
    ]);
  });

  test('is of the cluster in the path: its namespace there, read there again if need be, and the mesh config for there', async () => {
    const about: (readonly [string, string | undefined])[] = [];
    const { asked, run } = setup({
      meshConfig: (cluster) => ({ trustDomain: cluster ?? 'own' }),
      labelsOf: (namespace, cluster) => (about.push([namespace, cluster]), {}),
      freshLabelsOf(namespace, cluster) {
        about.push([namespace, cluster]);
        return Promise.resolve({ 'istio-injection': 'enabled' });
      },
    });
    expect(await run({}, '/cluster/east')).toHaveProperty('outcome', 'injected');
    expect(about).toEqual([
      ['shop', 'east'],
      ['shop', 'east'],
    ]);
    expect(asked.at(-1)?.meshConfig).toEqual({ trustDomain: 'east' });
  });

  test('is refused with what the injector says', async () => {
    const { run } = setup({ labelsOf: () => ({ 'istio-injection': 'bad' }) });
    expect(await run()).toEqual({ verdict: { allowed: false, message: 'annotation x: write y' }, outcome: 'refused' });
  });

  test.each([
    ['its namespace is not known yet', undefined],
    ['its namespace was labelled a moment ago', {}],
  ])('gets a proxy also if %s', async (_, labels) => {
    const { asked, run } = setup({
      labelsOf: () => labels,
      freshLabelsOf: () => Promise.resolve({ 'istio-injection': 'enabled' }),
    });
    expect(await run()).toMatchObject({ outcome: 'injected' });
    expect(asked).toHaveLength(2);
  });

  test('is left as it is, with warnings, if the API server confirms the labels', async () => {
    const { asked, run } = setup({ labelsOf: () => ({}), freshLabelsOf: () => Promise.resolve({}) });
    expect(await run()).toEqual({ verdict: { allowed: true, warnings: ['w'] }, outcome: 'untouched' });
    expect(asked).toHaveLength(1);
  });

  test('is refused if no known label selects it and the API server cannot say', async () => {
    expect(await setup({ labelsOf: () => ({}) }).run()).toEqual({
      verdict: {
        allowed: false,
        message: 'the labels of namespace shop cannot be read from the API server now; try again.',
      },
      outcome: 'refused',
    });
  });

  test('is not kept while the API server is asked', async () => {
    const { promise: fresh, resolve: answer } = Promise.withResolvers<Readonly<Record<string, string>>>();
    const { asked, begin } = setup({ labelsOf: () => ({}), freshLabelsOf: () => fresh });
    const about = (): AdmissionRequest => ({ ...request, object: { metadata: { generateName: 'web-' } } });
    const decided = begin(about());
    const kept = new WeakRef(asked.pop()!.pod);
    await expect.poll(() => (collect(), kept.deref() === undefined)).toBe(true);
    answer({ 'istio-injection': 'enabled' });
    if (!(decided instanceof Promise)) throw new Error('it did not wait');
    expect((await decided)(about())).toMatchObject({ outcome: 'injected' });
  });

  test('is left as it is for any other reason, whatever the API server says', async () => {
    const { run } = setup({ labelsOf: () => ({ 'istio-injection': 'host' }) });
    expect(await run()).toEqual({ verdict: { allowed: true, warnings: ['w'] }, outcome: 'untouched' });
  });

  test('is refused while there are no templates, and if the URL of the webhook is wrong', async () => {
    expect(await setup({ injector: () => undefined }).run()).toMatchObject({
      verdict: { allowed: false, message: expect.stringContaining('has no templates') as string },
    });
    expect(await setup().run({}, '/cluster')).toMatchObject({
      verdict: { allowed: false, message: expect.stringContaining('the last key has no value') as string },
    });
  });
});

test.each([
  ['an update', { operation: 'UPDATE' }],
  ['another kind', { kind: 'Deployment', group: 'apps' }],
  ['a part of a Pod', { subresource: 'ephemeralcontainers' }],
  ['nothing', { object: undefined }],
])('%s is left as it is', async (_, changes) => {
  const { asked, run } = setup();
  expect(await run(changes)).toEqual({ verdict: { allowed: true }, outcome: 'untouched' });
  expect(asked).toEqual([]);
});

test('labels of an object are its texts', () => {
  expect(labelsIn({ metadata: { labels: { a: 'b', c: 1 } } })).toEqual({ a: 'b' });
  for (const object of [undefined, 'x', {}, { metadata: null }, { metadata: { labels: [] } }])
    expect(labelsIn(object)).toEqual({});
});
