import { expect, test } from 'vitest';
import { type Progress, programmedCondition } from './programmed.ts';

const context = {
  accepted: { type: 'Accepted', status: 'True', reason: 'Accepted', message: '', observedGeneration: 2 },
  inForce: undefined,
  since: '2030-01-01T00:00:00Z',
  isComplete: true,
} as const;

test('what was said of a generation stays until it is known who does not have it', () => {
  const said = (progress: Progress) => programmedCondition(2, progress, context);
  expect(said({ state: 'underway', proxies: 0, waiting: [] })).toMatchObject({ status: 'Unknown', isDefault: true });
  const waiting = [{ nodeId: 'sidecar~10.0.0.1~client.shop~shop.svc.cluster.local' }];
  expect(said({ state: 'underway', proxies: 1, waiting })).not.toHaveProperty('isDefault');
});

test('what proxies say of themselves is quoted, in its line, and no longer than people read', () => {
  const rejection = {
    nodeId: 'a\u001b[2J\nb',
    build: '',
    typeUrl: 't.Listener',
    name: 'l',
    message: `no\r\n\u202e". Everything is fine. ${'x'.repeat(200)}`,
  };
  const { message } = programmedCondition(2, { state: 'rejected', proxies: 1, rejections: [rejection] }, context);
  expect(message).toBe(
    `Rejected by 1 proxy ("a\\u001b[2J\\nb"). Listener l: "no\\r\\n\\u202e\\". Everything is fine. ${'x'.repeat(172)}...".`,
  );
  const waiting = [{ nodeId: 'a\nb' }];
  expect(programmedCondition(2, { state: 'underway', proxies: 1, waiting }, context).message).toMatch(/: "a\\nb"\.$/);
});
