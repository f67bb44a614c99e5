import { beforeAll, expect, test } from 'vitest';
import { abandonedBy } from './abandoned-roots.ts';
import { renewed, selfSigned } from './self-signed.ts';
import { type SigningMaterial, readMaterial } from './signing-material.ts';

const start = new Date('2030-01-01T00:00:00Z');
const later = new Date('2038-01-01T00:00:00Z');

let materials: SigningMaterial[] = [];
let again = '';
beforeAll(async () => {
  const read = (entries: Readonly<Record<string, string>>): SigningMaterial => {
    const found = readMaterial(entries, start);
    if ('problem' in found) throw new Error(found.problem);
    return found.material;
  };
  materials = (await Promise.all(['a', 'b'].map((name) => selfSigned(name, start)))).map(read);
  again = (await renewed(materials[0]!, later))['root-cert.pem'];
});
const root = (i: number): string => materials[i]!.root;
const of = (namespace: string, pem: string) => ({ namespace, pem });

test('nothing is given up where nobody trusts anything', () => {
  expect(abandonedBy(root(0), [])).toBeUndefined();
  expect(abandonedBy(undefined, [of('shop', 'nonsense'), of('bank', '')])).toBeUndefined();
});

test('a bundle with the root, or with a renewed one of its key, is not given up', () => {
  expect(abandonedBy(root(0), [of('shop', root(1) + root(0))])).toBeUndefined();
  expect(abandonedBy(again, [of('shop', root(0))])).toBeUndefined();
});

test('a bundle without it is, and has an id of its own', () => {
  const lost = abandonedBy(root(1), [of('bank', root(1)), of('shop', root(0))]);
  expect(lost).toEqual({ id: expect.stringMatching(/^[0-9a-f]{16}$/) as string, names: ['"O=a"'], namespace: 'shop' });
  expect(abandonedBy(undefined, [of('shop', root(0))])).toEqual(lost);
  expect(abandonedBy(undefined, [of('bank', root(1)), of('shop', root(0))])?.id).not.toBe(lost?.id);
});
