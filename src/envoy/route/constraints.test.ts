import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRules } from '../../../test/protos/validate-rules.ts';
import { reconcileVirtualService } from '../../reconcilers/virtual-service/virtual-service.ts';
import { types } from '../encode/proto-types.ts';
import { protos, translateModel } from '../testing/translate.ts';
import { runs } from '../../testing/runs.ts';

const check = createRules();

/** What users write, by mistake or on purpose, where a text is wanted. */
const text = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('a', '/', 'a.example.com', '%REQ(a)%', '.*', 'ä', '\\1') },
  fc.constantFrom('', '*', '\ud800', '\0', 'a\r\nb', '%', '%%', '(', 'x'.repeat(20_000)),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const number = fc.oneof(
  fc.constantFrom(0, 1, 80, 100, 200, 301, 404, 503, 599),
  fc.constantFrom(65_535, 65_536, -1, 4_294_967_296, 0.5, 1e300),
);
const time = fc.constantFrom('1s', '0s', '1ms', '1us', '-1s', '2562047h', 'x');
const stringMatch = fc.oneof(
  ...['exact', 'prefix', 'regex'].map((kind) => text.map((value) => ({ [kind]: value }))),
  fc.constant({}),
);
const map = (value: fc.Arbitrary<unknown>) =>
  fc.dictionary(fc.oneof(fc.constantFrom('a', 'x-b', ':path', 'host'), text), value, { minKeys: 1, maxKeys: 2 });
/** One member only: an object with many odd ones is always refused. */
const oneOf = (members: Record<string, fc.Arbitrary<unknown>>) =>
  fc.oneof(...Object.entries(members).map(([name, value]) => value.map((given) => ({ [name]: given }))));

const operations = oneOf({ set: map(text), add: map(text), remove: fc.array(text, { maxLength: 2 }) });
const headers = oneOf({ request: operations, response: operations });
const destination = fc.record({ host: fc.oneof(fc.constantFrom('a', 'b.com', 'nowhere', 'header', 'cookie'), text) });
const percentage = oneOf({ value: number });
const match = oneOf({
  name: text,
  statPrefix: text,
  uri: stringMatch,
  method: stringMatch,
  scheme: stringMatch,
  authority: stringMatch,
  headers: map(stringMatch),
  withoutHeaders: map(stringMatch),
  queryParams: map(stringMatch),
  port: number,
});
const policies = oneOf({
  name: text,
  match: fc.array(match, { maxLength: 2 }),
  headers,
  timeout: time,
  rewrite: fc.oneof(
    oneOf({ uri: text, authority: text }),
    fc.record({ uriRegexRewrite: fc.record({ match: text, rewrite: text }) }),
  ),
  retries: oneOf({ perTryTimeout: time, backoff: time, retryOn: text }).map((one) => ({ attempts: 1, ...one })),
  fault: fc.oneof(
    oneOf({ percentage, percent: number }).map((share) => ({ delay: { fixedDelay: '1s', ...share } })),
    time.map((fixedDelay) => ({ delay: { fixedDelay } })),
    fc.record({ httpStatus: number, percentage }).map((abort) => ({ abort })),
  ),
  mirror: destination,
  corsPolicy: oneOf({
    allowOrigins: fc.array(stringMatch, { maxLength: 2 }),
    maxAge: time,
    allowHeaders: fc.array(text),
  }),
});
const actions = fc.oneof(
  fc
    .record({ destination, weight: number })
    .map((one) => ({ route: [{ destination: { host: 'a' }, weight: 1 }, one] })),
  fc.record({ destination, headers }).map((one) => ({ route: [one] })),
  oneOf({ uri: text, authority: text, port: number, redirectCode: number }).map((one) => ({
    redirect: { scheme: 'https', ...one },
  })),
  oneOf({ status: number, body: oneOf({ string: text, bytes: text }) }).map((one) => ({
    directResponse: { status: 200, ...one },
  })),
);
const routes = fc
  .tuple(actions, fc.array(policies, { maxLength: 2 }))
  .map(([action, added]): object[] => [Object.assign({}, action, ...added)]);

test('whatever is accepted keeps to the constraints of Envoy', () => {
  let accepted = 0;
  fc.assert(
    fc.property(routes, (http) => {
      const { models, problems } = reconcileVirtualService(
        {
          apiVersion: 'networking.istio.io/v1',
          kind: 'VirtualService',
          metadata: { name: 'v', namespace: 'shop' },
          spec: { hosts: ['a'], http },
        },
        { source: 'test', domainSuffix: 'cluster.local', rootNamespace: 'istio-system', defaultExportTo: ['*'] },
      );
      const [model] = models;
      if (model === undefined) {
        expect(problems).not.toEqual([]);
        return;
      }
      accepted++;
      const translated = translateModel(model, { agent: false }).routes;
      if (translated.length === 0) return;
      const virtualHost = { name: 'x', domains: ['*'], routes: translated };
      expect(check(types.virtualHost, protos.encode(types.virtualHost, virtualHost))).toEqual([]);
    }),
    { numRuns: runs(3000) },
  );
  expect(accepted).toBeGreaterThan(runs(300));
});
