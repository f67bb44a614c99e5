import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import { createValidator } from '../api/validate.ts';
import type { Verdict } from '../mesh/findings/conditions.ts';
import type { RejectedGeneration } from '../mesh/inputs.ts';
import { formerObject, keptGenerations, nameOfKept, printKept, readKept } from './kept-generations.ts';

const validate = createValidator();

function object(generation: number, spec: object = { hosts: ['reviews'], http: [{ redirect: { uri: '/' } }] }) {
  return {
    apiVersion: 'networking.istio.io/v1',
    kind: 'VirtualService',
    metadata: { name: 'reviews', namespace: 'shop', uid: 'u', generation, labels: { of: `${generation}` } },
    spec,
  };
}

function verdict(generation: number, inForce?: Verdict['inForce']): Verdict {
  const at = { kind: 'VirtualService', namespace: 'shop', name: 'reviews' } as const;
  return { ...at, uid: 'u', generation, said: [], ...(inForce && { inForce }) };
}

const rejection = { nodeId: 'n', build: 'b', typeUrl: 't', name: 'r', message: 'no' };
const rejectedOf = (...generations: readonly number[]): RejectedGeneration => ({
  uid: 'u',
  generations: generations.map((generation) => ({ generation, proxies: 1, rejections: [rejection] })),
});

describe('of an object', () => {
  test.each([
    ['that does not exist', undefined],
    ['whose newest generation is in force', verdict(2)],
  ])('%s, nothing is kept', (_, of) => {
    expect(keptGenerations({ verdict: of, former: { objects: [object(1)] }, rejected: rejectedOf(1) })).toBeUndefined();
  });

  test('that is tried alone, it is not decided yet', () => {
    const generations = [{ generation: 2, isSuspect: true as const, proxies: 1, rejections: [] }];
    const former = { objects: [object(1)] };
    expect(
      keptGenerations({ verdict: verdict(2, { generation: 1 }), former, rejected: { uid: 'u', generations } }),
    ).toBe('undecided');
  });

  test('that is rejected, and was never good, the rejection is kept', () => {
    const kept = keptGenerations({ verdict: verdict(2, 'nothing'), former: undefined, rejected: rejectedOf(2) });
    expect(kept).toMatchObject({ newest: 2, reason: 'Rejected', former: [], rejected: [{ generation: 2 }] });
    expect(kept).not.toHaveProperty('inForce');
  });

  test.each(['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'])(
    'of kind %s, nothing counts in which proxies rejected it, as earlier versions let them',
    (kind) => {
      const former = [{ apiVersion: 'security.istio.io/v1', generation: 1, spec: {} }];
      const spec = { object: { kind, name: 'p', uid: 'u' }, newest: 3, reason: 'Rejected', former };
      expect(readKept('shop', spec, validate)).toMatchObject({ newest: 3, former: [{ generation: 1 }] });
      const rejected = [{ generation: 2, proxies: 1, rejections: [] }];
      expect(readKept('shop', { ...spec, rejected }, validate)).toBeUndefined();
    },
  );

  test('what is read is what was kept, as the object was, under its present name and uid', () => {
    const former = { objects: [object(3), object(2)] };
    const kept = keptGenerations({ verdict: verdict(4, { generation: 2 }), former, rejected: rejectedOf(3, 4) });
    if (typeof kept !== 'object') return expect.fail('nothing is kept');
    const read = readKept('shop', JSON.parse(JSON.stringify(printKept(kept))), validate);
    expect(read).toEqual(kept);
    expect(kept.former.map(({ generation }) => generation)).toEqual([2]);
    expect(formerObject(object(4, {}), read!.former[0]!)).toEqual(object(2));
  });
});

test('what is too large goes, the oldest first', () => {
  const large = { hosts: ['reviews'], http: [{ name: 'x'.repeat(800_000), redirect: { uri: '/' } }] };
  const former = (...objects: readonly KubernetesObject[]) => {
    const kept = keptGenerations({ verdict: verdict(4, { generation: 3 }), former: { objects }, rejected: undefined });
    if (typeof kept !== 'object') return expect.fail('nothing is kept');
    return (printKept(kept)['former'] as readonly { readonly generation: number }[]).map(
      ({ generation }) => generation,
    );
  };
  expect(former(object(3, large), object(2))).toEqual([3, 2]);
  expect(former(object(3, large), object(2, large))).toEqual([3]);
  expect(former(object(3, { ...large, more: 'x'.repeat(700_000) }), object(2))).toEqual([]);
});

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

test('what is nested thousands of levels deep is not kept', () => {
  const deep = object(1, { hosts: ['reviews'], more: nested(5_000) });
  const kept = keptGenerations({
    verdict: verdict(2, { generation: 1 }),
    former: { objects: [deep] },
    rejected: undefined,
  });
  expect(kept).toMatchObject({ former: [] });
});

describe('of what others may have written', () => {
  const read = (spec: object) =>
    readKept(
      'shop',
      { object: { kind: 'VirtualService', name: 'reviews', uid: 'u' }, newest: 2, reason: 'Invalid', ...spec },
      validate,
    );
  const former = (more: object) => ({
    former: [{ apiVersion: 'networking.istio.io/v1', generation: 1, spec: object(1).spec, ...more }],
  });

  test.each([
    ['of a kind that has no conditions', { object: { kind: 'Pod', name: 'reviews', uid: 'u' } }],
    ['of a generation that cannot be', { newest: 1.5 }],
    ['without an object', { object: undefined }],
  ])('that is not one: %s', (_, spec) => {
    expect(read(spec)).toBeUndefined();
  });

  test.each([
    ['another kind', { apiVersion: 'security.istio.io/v1' }],
    ['an unknown version', { apiVersion: 'networking.istio.io/v9' }],
    ['a schema that it violates', { spec: { hosts: 7 } }],
    ['labels that cannot be', { labels: { a: '-' } }],
    ['no spec', { spec: undefined }],
    ['a generation that cannot be', { generation: -1 }],
    ['thousands of levels', { spec: { ...object(1).spec, more: nested(5_000) } }],
  ])('a former generation does not count that has %s', (_, more) => {
    expect(read(former({}))?.former).toHaveLength(1);
    expect(read(former(more))?.former).toEqual([]);
  });

  test('no more is read than we write', () => {
    const [one] = former({}).former;
    const rejections = Array<object>(1_000).fill({ ...rejection, message: 'x'.repeat(100_000) });
    const found = read({
      former: Array<unknown>(1_000).fill(one),
      rejected: Array<object>(1_000).fill({ generation: 1, proxies: 'many', rejections }),
    })!;
    expect(found.former).toHaveLength(2);
    expect(found.rejected).toHaveLength(4);
    expect(found.rejected[0]!.rejections).toHaveLength(5);
    expect(JSON.stringify(found.rejected).length).toBeLessThan(30_000);
  });
});

describe('a name', () => {
  const isName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

  test('says what it is about, and is one, however long that is', () => {
    expect(nameOfKept('VirtualService', 'reviews')).toBe('virtualservice-reviews');
    for (let length = 1; length <= 253; length++)
      for (const name of [
        'a'.repeat(length),
        `${'a.'.repeat(127)}`.slice(0, length | 1),
        `${'a-'.repeat(127)}`.slice(0, length | 1),
      ]) {
        const kept = nameOfKept('AuthorizationPolicy', name);
        expect(kept).toMatch(isName);
        expect(kept.length).toBeLessThanOrEqual(253);
      }
  });

  test('is different for every object', () => {
    const long = 'a'.repeat(253);
    const names = [
      nameOfKept('Gateway', long),
      nameOfKept('Gateway', `${long.slice(1)}b`),
      nameOfKept('Sidecar', long),
      // One that looks like a name with a hash.
      nameOfKept('Gateway', nameOfKept('Gateway', long).slice('gateway-'.length)),
    ];
    expect(new Set(names).size).toBe(names.length);
  });
});
