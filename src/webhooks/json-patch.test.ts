import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PatchOperation } from './admission-review.ts';
import { diff } from './json-patch.ts';

/** RFC 6902, as far as `diff` uses it. */
function apply(document: unknown, operations: readonly PatchOperation[]): unknown {
  let root = structuredClone(document);
  for (const operation of operations) {
    const steps = operation.path
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop();
    if (last === undefined) {
      root = 'value' in operation ? operation.value : undefined;
      continue;
    }
    const parent = steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], root);
    if (Array.isArray(parent)) parent.push('value' in operation ? operation.value : undefined);
    else if (operation.op === 'remove') {
      expect(Object.hasOwn(parent as object, last)).toBe(true);
      delete (parent as Record<string, unknown>)[last];
    } else {
      expect(Object.hasOwn(parent as object, last)).toBe(operation.op === 'replace');
      Object.defineProperty(parent, last, {
        value: operation.value,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
  }
  return root;
}

describe('the difference of two values', () => {
  test.each([
    ['nothing', { a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, []],
    ['a member that is added', { a: 1 }, { a: 1, b: { c: 2 } }, [{ op: 'add', path: '/b', value: { c: 2 } }]],
    ['a member that is gone', { a: 1, b: 2 }, { a: 1 }, [{ op: 'remove', path: '/b' }]],
    ['a list that differs', { a: [1, 2] }, { a: [2, 1] }, [{ op: 'replace', path: '/a', value: [2, 1] }]],
    ['the end of a list', { a: [1] }, { a: [1, 2, 3] }, [2, 3].map((value) => ({ op: 'add', path: '/a/-', value }))],
    [
      'names with slashes',
      { m: { 'a/b~c': 1 } },
      { m: { 'a/b~c': 2 } },
      [{ op: 'replace', path: '/m/a~1b~0c', value: 2 }],
    ],
    ['null', { a: null }, { a: 1 }, [{ op: 'replace', path: '/a', value: 1 }]],
    ['undefined, which JSON does not have', { a: 1 }, { a: 1, b: undefined }, []],
  ])('is %s', (_, before, after, operations) => {
    expect(diff(before, after)).toEqual(operations);
  });

  test('makes one of the other', () => {
    const value = fc.jsonValue({ noUnicodeString: false, maxDepth: 4 });
    fc.assert(
      fc.property(value, value, (before, after) => {
        expect(JSON.stringify(sorted(apply(before, diff(before, after))))).toBe(JSON.stringify(sorted(after)));
      }),
    );
  });
});

/** The order of members means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)]);
}
