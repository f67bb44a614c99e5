import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readPem, writePem } from './pem.ts';

const block = writePem('THING', Buffer.from('hello'));

describe('PEM', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1 }), { maxLength: 3 }), (ders) => {
        const text = ders.map((der) => writePem('X Y', der)).join('');
        expect(readPem(text)).toEqual(ders.map((der) => ({ label: 'X Y', der: Buffer.from(der) })));
      }),
    );
  });

  test.each([
    ['with text around it', `subject=x\n${block}and more\n`],
    ['with Windows line breaks', block.replaceAll('\n', '\r\n')],
    ['without a last line break', block.trimEnd()],
  ])('%s is read', (_, text) => {
    expect(readPem(text)).toEqual([{ label: 'THING', der: Buffer.from('hello') }]);
  });

  test.each([
    ['that is cut off', block.slice(0, -10)],
    ['that ends with another label', block.replace('END THING', 'END OTHER')],
    ['without content', '-----BEGIN THING-----\n-----END THING-----\n'],
    ['with characters that are not base64', block.replace('aGVs', 'a*Vs')],
    ['whose base64 lacks a character', block.replace('aGVs', 'aGV')],
    ['with headers', block.replace('\n', '\nProc-Type: 4,ENCRYPTED\n')],
    ['with no end of the first line', '-----BEGIN THING'],
    ['of which only one of two is well-formed', `${block}-----BEGIN X-----\n`],
  ])('%s is malformed', (_, text) => {
    expect(readPem(text)).toBeUndefined();
  });

  test('has no block in a text without one', () => {
    expect(readPem('hello')).toEqual([]);
  });
});
