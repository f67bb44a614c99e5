import { expect, test } from 'vitest';
import { FakeClock } from '../../testing/fake-clock.ts';
import { ApiError } from './api-error.ts';
import type { KubeApi } from './client.ts';
import { OwnRights, type Right, printRight } from './own-rights.ts';

const review: Right = { verb: 'create', group: 'authentication.k8s.io', resource: 'tokenreviews' };
const write: Right = { verb: 'patch', group: '', resource: 'configmaps' };

test('what is missing is found out without using it, and is looked at again', async () => {
  const [clock, end] = [new FakeClock(), new AbortController()];
  const granted = new Set(['configmaps']);
  const post: KubeApi['post'] = (path, body) => {
    expect(path).toBe('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews');
    const { resource } = (body as { spec: { resourceAttributes: Right } }).spec.resourceAttributes;
    if (resource === 'odd') return Promise.reject(new Error('no answer'));
    return Promise.resolve({ status: { allowed: granted.has(resource) } });
  };
  const rights = new OwnRights({ api: { post } as unknown as KubeApi, clock, random: () => 0.5 });
  const odd: Right = { ...write, resource: 'odd' };
  let wanted = [review, write, odd];
  const watching = rights.watch(() => wanted, { signal: end.signal });
  await expect.poll(() => rights.missing().map(printRight)).toEqual(['create tokenreviews.authentication.k8s.io']);
  granted.add('tokenreviews').delete('configmaps');
  await clock.advance(30_000);
  await expect.poll(() => rights.missing().map(printRight)).toEqual(['patch configmaps']);
  wanted = [review];
  await clock.advance(30_000);
  await expect.poll(() => rights.missing()).toEqual([]);
  end.abort();
  await watching;
  expect(clock.pending).toBe(0);
});

test('what a request shows counts at once', async () => {
  const rights = new OwnRights({ api: {} as KubeApi, clock: new FakeClock(), random: () => 0.5 });
  const failure = (code: number) => new ApiError('', { code, reason: '', retryable: false });
  await expect(rights.using(review, Promise.reject(failure(500)))).rejects.toThrow();
  expect(rights.missing()).toEqual([]);
  await expect(rights.using(review, Promise.reject(failure(403)))).rejects.toThrow();
  expect(rights.missing()).toEqual([review]);
  expect(await rights.using(review, Promise.resolve(1))).toBe(1);
  expect(rights.missing()).toEqual([]);
});
