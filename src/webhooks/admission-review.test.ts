import { describe, expect, test } from 'vitest';
import { boundWarnings, readReview, writeReview } from './admission-review.ts';

const request = {
  uid: 'u',
  operation: 'CREATE',
  kind: { group: '', version: 'v1', kind: 'Pod' },
  resource: { group: '', version: 'v1', resource: 'pods' },
  namespace: 'shop',
  object: { kind: 'Pod' },
};
const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };

describe('an AdmissionReview', () => {
  test('is read as far as it is needed', () => {
    expect(readReview(JSON.stringify({ ...review, request: { ...request, oldObject: null } }))).toEqual({
      request: {
        ...{ uid: 'u', operation: 'CREATE', group: '', kind: 'Pod', resource: 'pods', subresource: '' },
        ...{ name: '', namespace: 'shop', object: { kind: 'Pod' }, oldObject: undefined },
      },
    });
  });

  test.each([
    ['text', 'hello', 'not valid JSON'],
    ['nothing', '', 'not valid JSON'],
    ['a list', '[]', 'not an AdmissionReview'],
    ['null', 'null', 'not an AdmissionReview'],
    ['another kind', JSON.stringify({ ...review, kind: 'Pod' }), 'not an AdmissionReview'],
    ['an old version', JSON.stringify({ ...review, apiVersion: 'admission.k8s.io/v1beta1' }), 'apiVersion must be'],
    ['no request', JSON.stringify({ ...review, request: undefined }), 'request is missing'],
    ['no uid', JSON.stringify({ ...review, request: { ...request, uid: 7 } }), 'request.uid'],
    ['a long uid', JSON.stringify({ ...review, request: { ...request, uid: 'u'.repeat(257) } }), 'request.uid'],
    ['no operation', JSON.stringify({ ...review, request: { ...request, operation: undefined } }), 'request.operation'],
    ['no kind', JSON.stringify({ ...review, request: { ...request, kind: 'Pod' } }), 'request.kind'],
    ['a list as an object', JSON.stringify({ ...review, request: { ...request, object: [] } }), 'request.object'],
    ['text as an object', JSON.stringify({ ...review, request: { ...request, oldObject: 'x' } }), 'request.object'],
    ['depth without end', '['.repeat(1_000_000), 'not valid JSON'],
  ])('is refused if it is %s', (_, text, sentence) => {
    expect(readReview(text)).toEqual({ problem: expect.stringContaining(sentence) as string });
  });

  test('is answered with its uid, and a patch as text', () => {
    const patch = [{ op: 'add', path: '/a', value: 1 }] as const;
    const { response } = JSON.parse(writeReview('u', { allowed: true, patch })) as { response: { patch: string } };
    expect(response).toEqual({ uid: 'u', allowed: true, patchType: 'JSONPatch', patch: expect.any(String) as string });
    expect(JSON.parse(Buffer.from(response.patch, 'base64').toString())).toEqual(patch);
    expect(JSON.parse(writeReview('u', { allowed: true, patch: [] }))).toHaveProperty('response', {
      uid: 'u',
      allowed: true,
    });
    expect(JSON.parse(writeReview('u', { allowed: false, message: 'no' }))).toHaveProperty('response', {
      uid: 'u',
      allowed: false,
      status: { code: 403, reason: 'Forbidden', message: 'no' },
    });
  });
});

describe('warnings', () => {
  test('are one line of 256 characters each', () => {
    expect(boundWarnings(['a\r\nb\u2028c', '😀'.repeat(300)])).toEqual(['a b c', `${'😀'.repeat(253)}...`]);
  });

  test('stay below 4,096 characters together, and say how many are left out', () => {
    const warnings = boundWarnings(Array.from({ length: 100 }, () => 'x'.repeat(256)));
    expect(warnings).toHaveLength(16);
    expect(warnings.join('').length).toBeLessThanOrEqual(4_096);
    expect(warnings.at(-1)).toBe('and 85 more warnings; "fairlead check" prints them all');
  });
});
