import { afterEach, expect, test, vi } from 'vitest';
import { FairSemaphore } from '../../base/fair-semaphore.ts';
import type { Questions } from '../types.ts';
import { Answering } from './answering.ts';
import type { FrameWriter } from './frame-writer.ts';

const writer = { write: () => undefined } as unknown as FrameWriter;
const events = { answered: () => undefined, denied: () => undefined, failed: () => undefined };
const answering = (questions?: Questions): Answering => {
  const host = { questions, answering: new FairSemaphore(4), frameOf: () => ({ nonce: 1 }) as never };
  return new Answering(host, writer, '10.0.0.1', events);
};

afterEach(() => vi.restoreAllMocks());

test('a stream that asks nothing ends without an AbortSignal: that takes longer than all the rest of its end', () => {
  const abort = vi.spyOn(AbortController.prototype, 'abort');
  answering().close();
  expect(abort).not.toHaveBeenCalled();
});

test('an answer that is being made is given up when its stream ends', () => {
  let signal: AbortSignal | undefined;
  const questions: Questions = {
    isOne: () => true,
    answer: (_, aborted) => {
      signal = aborted;
      return new Promise(() => undefined);
    },
  };
  const one = answering(questions);
  one.ask({ typeUrl: 'debug', nonce: '', names: { strings: () => [] } } as never, { address: '10.0.0.1' });
  expect(signal?.aborted).toBe(false);
  one.close();
  expect(signal?.aborted).toBe(true);
});
