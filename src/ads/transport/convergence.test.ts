import { expect, test } from 'vitest';
import { Convergence } from './convergence.ts';

function lab() {
  const told: number[] = [];
  return { told, convergence: new Convergence<string>((ms) => told.push(ms)) };
}

test('a client is caught up when all that it was owed since the first change is on its way', () => {
  const { told, convergence } = lab();
  convergence.during(100, () => convergence.marked('a'));
  convergence.sent('a');
  convergence.during(200, () => convergence.marked('a'));
  convergence.sent('a');
  convergence.caughtUp('a', 350);
  convergence.caughtUp('a', 400);
  expect(told).toEqual([250]);
});

test('a client that a change concerns but is sent nothing for, one that is gone, and what no change caused do not count', () => {
  const { told, convergence } = lab();
  convergence.during(100, () => {
    convergence.marked('nothing to send');
    convergence.marked('gone');
  });
  convergence.marked('a request');
  convergence.sent('gone');
  convergence.sent('a request');
  convergence.gone('gone');
  for (const stream of ['nothing to send', 'gone', 'a request']) convergence.caughtUp(stream, 200);
  expect(told).toEqual([]);
});
