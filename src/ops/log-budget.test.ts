import { expect, test } from 'vitest';
import { LogBudget } from './log-budget.ts';

function lab(budgets = 256) {
  const lines: string[] = [];
  const say = (level: string) => (message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  let now = 0;
  const log = new LogBudget(
    { error: say('error'), warn: say('warn'), info: say('info'), debug: say('debug') },
    { rate: { burst: 3, perSecond: 1, budgets }, now: () => now },
  );
  return {
    log,
    take: () => lines.splice(0),
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test('a message has a burst of lines, then some in the course of time, and says how many were left out', () => {
  const { log, take, pass } = lab();
  for (let i = 0; i < 10; i++) log.warn('Refused', { i });
  expect(take()).toEqual([0, 1, 2].map((i) => `warn Refused {"i":${i}}`));
  pass(500);
  log.warn('Refused', { i: 10 });
  expect(take()).toEqual([]);
  pass(500);
  log.warn('Refused', { i: 11 });
  log.warn('Refused', { i: 12 });
  expect(take()).toEqual(['warn Refused {"i":11,"suppressed":8}']);
  expect(log.suppressed).toBe(9);
  pass(60_000);
  for (let i = 0; i < 4; i++) log.warn('Refused');
  expect(take()).toEqual(['warn Refused {"suppressed":1}', 'warn Refused {}', 'warn Refused {}']);
});

test('messages do not take each other lines, and debug is not bounded', () => {
  const { log, take } = lab();
  for (let i = 0; i < 5; i++) {
    log.warn('a');
    log.error('b');
    log.debug('c');
  }
  expect(take()).toHaveLength(3 + 3 + 5);
});

test('whoever causes many lines keeps out none about others', () => {
  const { log, take } = lab();
  for (let i = 0; i < 10; i++) log.infoBy('a', 'Signed', { by: 'a' });
  for (let i = 0; i < 2; i++) log.infoBy('b', 'Signed', { by: 'b' });
  expect(take()).toEqual([...'aaabb'].map((by) => `info Signed {"by":"${by}"}`));
  for (let i = 0; i < 10_000; i++) log.infoBy(`c${i}`, 'Signed', {});
  expect(take().length).toBeLessThan(300);
});

test('who has been quiet keeps nobody from a limit of its own', () => {
  const { log, take, pass } = lab(2);
  const sign = (by: string, times: number) => {
    for (let i = 0; i < times; i++) log.infoBy(by, 'Signed', {});
    return take().length;
  };
  expect([sign('a', 1), sign('b', 1)]).toEqual([1, 1]);
  pass(2_000);
  expect([sign('b', 1), sign('c', 10), sign('d', 10)]).toEqual([1, 3, 0]);
  pass(1_000);
  // That of `a` is full again, that of `b` may not be.
  expect([sign('e', 10), sign('d', 10)]).toEqual([3, 1]);
});

test('ever new messages share one budget', () => {
  const { log, take } = lab();
  for (let i = 0; i < 10_000; i++) log.info(`message ${i}`);
  expect(take().length).toBeLessThan(300);
});
