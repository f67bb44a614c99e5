import { describe, expect, onTestFinished, test } from 'vitest';
import type { Json } from '../../api/json.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { errorOfAnswer } from '../client/api-error.ts';
import { KEPT_MS, correctBundles } from './ca-bundle.ts';
import { Outages } from '../client/outages.ts';
import { FakeCluster } from '../testing/fake-cluster.ts';
import { RecordingLog } from '../testing/recording-log.ts';
import { type Probe, WebhookConfiguration, type WebhookConfigurationOptions } from './webhook-configuration.ts';
import { PROBE, type WebhookRule } from './webhook-entries.ts';

const PATH = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

/** A certificate, as far as it is looked at here. */
const pem = (...names: string[]): string =>
  names.map((name) => `-----BEGIN CERTIFICATE-----\n${btoa(name)}\n-----END CERTIFICATE-----\n`).join('');
const encoded = (text: string): string => Buffer.from(text).toString('base64');
const webhook = (caBundle?: string): Json => ({
  name: 'validation.fairlead.dev',
  failurePolicy: 'Ignore',
  clientConfig: { service: { name: 'fairlead' }, ...(caBundle !== undefined && { caBundle: encoded(caBundle) }) },
});

describe('the roots of a webhook', () => {
  const wanted = (roots: string, age = KEPT_MS) => ({ roots, age });

  test.each([
    ['are added where there are none', undefined, pem('a'), KEPT_MS, pem('a')],
    ['are added at once', pem('a'), pem('a', 'b'), 0, pem('a', 'b')],
    ['replace text that is not a certificate', 'x', pem('a'), 0, pem('a')],
    ['lose what is not ours after a while', pem('a', 'b'), pem('b'), KEPT_MS, pem('b')],
    ['lose nothing before', pem('a', 'b'), pem('b'), KEPT_MS - 1, undefined],
    ['stay in their order', pem('b', 'a'), pem('a', 'b'), KEPT_MS, undefined],
    ['stay as they are written', pem('a').replaceAll('\n', '\r\n'), pem('a'), KEPT_MS, undefined],
  ])('%s', (_, before, roots, age, after) => {
    const { webhooks, again } = correctBundles([webhook(before)], wanted(roots, age));
    expect(webhooks).toEqual(after === undefined ? undefined : [webhook(after)]);
    expect(again).toBe(age === KEPT_MS - 1 ? 1 : undefined);
  });

  test('are corrected in each of several', () => {
    const { webhooks } = correctBundles([webhook(pem('a')), webhook()], wanted(pem('a')));
    expect(webhooks).toEqual([webhook(pem('a')), webhook(pem('a'))]);
  });
});

function keep(options: Partial<WebhookConfigurationOptions> = {}, api = new FakeCluster().install(PATH, 'X')) {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const ending = new AbortController();
  const state = { roots: pem('a') };
  const configuration = new WebhookConfiguration({
    ...{ api, clock, random: () => 1, log, kind: 'ValidatingWebhookConfiguration', name: 'ours' },
    outages: new Outages({ log, clock, signal: ending.signal }),
    roots: () => state.roots,
    rules: [],
    ...options,
  });
  const ended = configuration.run({ signal: ending.signal });
  onTestFinished(async () => {
    ending.abort();
    await ended;
  });
  return { api, clock, log, state, configuration };
}

const put = (api: FakeCluster, name: string, ...webhooks: readonly Json[]): void =>
  void api.apply(PATH, { metadata: { name }, webhooks });
const webhooksOf = (api: FakeCluster, name = 'ours'): unknown => api.object(PATH, '', name)?.['webhooks'];
const patches = (api: FakeCluster): number => api.requests.filter(({ method }) => method === 'PATCH').length;

describe('a webhook configuration', () => {
  test('gets the roots when it appears, and when somebody takes them away; others are left alone', async () => {
    const { api, clock, configuration } = keep();
    put(api, 'theirs', webhook());
    await clock.advance(1_000);
    expect(configuration.isRight).toBeUndefined();
    put(api, 'ours', webhook(), webhook('x'));
    await clock.advance(100);
    expect(webhooksOf(api)).toEqual([webhook(pem('a')), webhook(pem('a'))]);
    expect(configuration.isRight).toBe(true);
    put(api, 'ours', webhook());
    await clock.advance(5_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a'))]);
    expect(webhooksOf(api, 'theirs')).toEqual([webhook()]);
  });

  test('is written once, and not before there is an authority', async () => {
    const { api, clock, configuration, state } = keep();
    state.roots = '';
    put(api, 'ours', webhook());
    await clock.advance(10_000);
    expect([patches(api), configuration.isRight]).toEqual([0, undefined]);
    state.roots = pem('a');
    configuration.changed();
    await clock.advance(10 * 60_000);
    expect(patches(api)).toBe(1);
  });

  test('has the old root beside the new one while other replicas may not know of it', async () => {
    const { api, clock, configuration, state } = keep();
    put(api, 'ours', webhook());
    await clock.advance(1_000);
    state.roots = pem('a', 'b');
    configuration.changed();
    await clock.advance(5_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a', 'b'))]);
    state.roots = pem('b');
    configuration.changed();
    await clock.advance(KEPT_MS - 10_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a', 'b'))]);
    await clock.advance(20_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('b'))]);
  });

  test('is not fought over by replicas that learn of a root one after the other', async () => {
    const one = keep();
    const other = keep({}, one.api);
    put(one.api, 'ours', webhook());
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await one.clock.advance(1_000);
        await other.clock.advance(1_000);
      }
    };
    await pass(5_000);
    const before = patches(one.api);
    one.state.roots = pem('a', 'b');
    one.configuration.changed();
    await pass(90_000);
    other.state.roots = pem('a', 'b');
    other.configuration.changed();
    await pass(90_000);
    expect(webhooksOf(one.api)).toEqual([webhook(pem('a', 'b'))]);
    expect(patches(one.api) - before).toBe(1);
  });

  test('is written more and more rarely if somebody else always undoes it', async () => {
    const { api, clock, log } = keep();
    api.onPatch = () => queueMicrotask(() => put(api, 'ours', webhook(pem('z'))));
    put(api, 'ours', webhook());
    await clock.advance(10 * 60_000);
    expect(patches(api)).toBeLessThan(20);
    expect(log.messages()).toContain('Someone else changes the webhook configuration, too');
  });

  test('is tried again when it cannot be written, and the log says so once', async () => {
    const { api, clock, log } = keep();
    put(api, 'ours', webhook());
    await clock.settle();
    api.denied.add(PATH);
    await clock.advance(1_000);
    put(api, 'ours', webhook('x'));
    await clock.advance(10 * 60_000);
    api.denied.clear();
    await clock.advance(2 * 60_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a'))]);
    expect(log.messages().filter((message) => message.includes('denying access, retrying'))).toHaveLength(1);
  });
});

const probing = (ask: Probe['ask'], isNeedlessWithoutKind = true): Probe => ({ ask, isNeedlessWithoutKind });

describe('the failure policy', () => {
  const denial = (name: string) =>
    errorOfAnswer(403, JSON.stringify({ kind: 'Status', reason: 'Forbidden', message: messageBy(name) }));
  const messageBy = (name: string): string => `admission webhook "${name}" denied the request: no`;
  const closed = { ...webhook(pem('a')), failurePolicy: 'Fail' };

  test('becomes Fail once our webhook has refused an object, and not because of that of Istio', async () => {
    let answer: (() => Promise<void>) | undefined;
    const { api, clock } = keep({ probe: probing(() => answer?.() ?? Promise.resolve()) });
    put(api, 'ours', webhook());
    await clock.advance(10 * 60_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a'))]);
    answer = () => Promise.reject(denial('validation.istio.io'));
    await clock.advance(10 * 60_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a'))]);
    answer = () => Promise.reject(denial('validation.fairlead.dev'));
    await clock.advance(2 * 60_000);
    expect(webhooksOf(api)).toEqual([closed]);
  });

  test('is not touched before the roots are right, nor when nobody asks for it', async () => {
    const probes: unknown[] = [];
    const probe = (): Promise<void> => {
      probes.push(webhooksOf(api));
      return Promise.reject(denial('validation.fairlead.dev'));
    };
    const { api, clock } = keep({ probe: probing(probe) });
    put(api, 'ours', webhook());
    await clock.advance(5_000);
    expect(probes).toEqual([[webhook(pem('a'))]]);
    expect(webhooksOf(api)).toEqual([closed]);
    const other = keep();
    put(other.api, 'ours', webhook());
    await other.clock.advance(10 * 60_000);
    expect(webhooksOf(other.api)).toEqual([webhook(pem('a'))]);
  });

  test('stays where the kind of the probe is not installed, but Pods are', async () => {
    const notFound = errorOfAnswer(404, '404 page not found');
    const { api, clock } = keep({ probe: probing(() => Promise.reject(notFound), false) });
    put(api, 'ours', webhook());
    await clock.advance(10 * 60_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a'))]);
  });

  test('becomes Ignore again where nobody wants Fail any more', async () => {
    const { api, clock } = keep();
    put(api, 'ours', { ...webhook(), failurePolicy: 'Fail' });
    await clock.advance(1_000);
    expect(webhooksOf(api)).toEqual([webhook(pem('a'))]);
  });

  test('becomes Fail where the kind of the probe is not installed, and validation has nothing to refuse', async () => {
    const { api, clock } = keep({ probe: probing(() => Promise.reject(errorOfAnswer(404, '404 page not found'))) });
    put(api, 'ours', webhook());
    await clock.advance(5_000);
    expect(webhooksOf(api)).toEqual([closed]);
  });

  test('is probed rarely while validation does not work, and the log says what is not permitted', async () => {
    let probes = 0;
    const forbidden = errorOfAnswer(403, JSON.stringify({ kind: 'Status', reason: 'Forbidden', message: 'no rule' }));
    const { api, clock, log } = keep({
      probe: probing(() => (probes++, Promise.reject(forbidden))),
    });
    put(api, 'ours', webhook());
    await clock.advance(60 * 60_000);
    expect(probes).toBeLessThan(80);
    expect(log.messages().filter((message) => message.includes('denying access, retrying'))).toHaveLength(1);
  });
});

describe('what the API server asks about', () => {
  const ruleOf = (...resources: string[]): WebhookRule => ({
    ...{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources, scope: 'Namespaced' },
  });
  /** As a chart makes it: what is left out, the API server calls Fail. */
  const { failurePolicy: _, ...rest } = webhook();
  const made: Json = { ...rest, failurePolicy: 'Fail' };

  test('is nothing before a replica runs, then the right thing; nothing is refused before the API server reaches one', async () => {
    const probes: unknown[] = [];
    let isReached = false;
    const message = 'admission webhook "validation.fairlead.dev" denied the request: no';
    const ask: Probe['ask'] = (webhooks) => {
      probes.push(webhooks);
      return isReached
        ? Promise.reject(errorOfAnswer(403, JSON.stringify({ kind: 'Status', message })))
        : Promise.resolve();
    };
    const probe: Json = { ...made, name: PROBE, failurePolicy: 'Ignore', rules: [ruleOf('configmaps')] };
    const asked = { ...probe, clientConfig: webhook(pem('a'))['clientConfig'] };
    const { api, clock } = keep({ rules: [ruleOf('pods')], probe: probing(ask) });
    put(api, 'ours', made, probe);
    await clock.advance(10 * 60_000);
    const open = { ...webhook(pem('a')), rules: [ruleOf('pods')] };
    expect(webhooksOf(api)).toEqual([open, asked]);
    expect(probes[0]).toEqual([open, asked]);
    isReached = true;
    await clock.advance(2 * 60_000);
    const closed = { ...open, failurePolicy: 'Fail' };
    expect(webhooksOf(api)).toEqual([closed, asked]);
    const before = patches(api);
    // Whoever makes it anew opens it.
    put(api, 'ours', made, probe);
    isReached = false;
    await clock.advance(10 * 60_000);
    expect(webhooksOf(api)).toEqual([open, asked]);
    expect(patches(api) - before).toBe(1);
  });

  test('is added where it is missing, and nothing that a replica of another version wants is taken away', async () => {
    const { api, clock } = keep({ rules: [ruleOf('gateways', 'sidecars')] });
    put(api, 'ours', { ...webhook(), rules: [ruleOf('gateways')] });
    await clock.advance(1_000);
    expect(webhooksOf(api)).toMatchObject([{ rules: [ruleOf('gateways', 'sidecars')] }]);
    const more = [ruleOf('sidecars'), ruleOf('gateways', 'others')];
    put(api, 'ours', { ...webhook(pem('a')), rules: more });
    await clock.advance(10 * 60_000);
    expect(webhooksOf(api)).toMatchObject([{ rules: more }]);
  });
});
