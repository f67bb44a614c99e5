import { execFile } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { containErrors } from './contained-errors.ts';
import { FakeClock } from '../testing/fake-clock.ts';

function start({ fails = false } = {}) {
  const [source, clock, end] = [new EventEmitter(), new FakeClock(), new AbortController()];
  const seen = { lines: [] as object[], counted: 0, gaveUp: [] as string[] };
  containErrors(source, {
    clock,
    log: (_, fields) => {
      if (fails) throw new Error('the log is gone');
      seen.lines.push(fields);
    },
    count: () => void seen.counted++,
    giveUp: (reason) => void seen.gaveUp.push(reason),
    signal: end.signal,
  });
  return {
    seen,
    clock,
    end,
    source,
    raise: (times: number) => {
      for (let i = 0; i < times; i++) source.emit('uncaughtException', new Error(`error ${i}`));
    },
  };
}

test('a process goes on after an exception in a timer and a rejection that nobody handles', async () => {
  const file = JSON.stringify(join(import.meta.dirname, 'contained-errors.ts'));
  const program = `
    import { containErrors } from ${file};
    containErrors(process, { clock: performance, log: (text, { error }) => console.log(text + ': ' + error.message),
      count() {}, giveUp() {}, signal: new AbortController().signal });
    setTimeout(() => { throw new Error('in a timer'); }, 1);
    setTimeout(() => Promise.reject(new Error('in a promise')), 2);
    setTimeout(() => Promise.reject('a text'), 3);
    setTimeout(() => console.log('alive'), 20);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  expect(stdout.split('\n')).toEqual([
    'Unexpected error; please report it: in a timer',
    'Unexpected error; please report it: in a promise',
    expect.stringContaining('a text'),
    'alive',
    '',
  ]);
});

test('all errors are counted, and a minute has ten lines of the log; the next one says how many were omitted', async () => {
  const { seen, raise, clock } = start();
  raise(100);
  expect(seen).toMatchObject({ counted: 100, lines: { length: 10 } });
  await clock.advance(60_000);
  raise(1);
  expect(seen.lines.at(-1)).toEqual({ error: new Error('error 0'), omitted: 90 });
  raise(1);
  expect(seen.lines.at(-1)).toEqual({ error: new Error('error 0') });
});

test('a process that does hardly anything but fail is told to end, once', async () => {
  const { seen, raise, clock } = start();
  for (let minute = 0; minute < 3; minute++) {
    raise(6_000);
    await clock.advance(60_000);
  }
  expect(seen.gaveUp).toEqual([]);
  raise(7_000);
  await clock.advance(60_000);
  raise(7_000);
  expect(seen.gaveUp).toEqual(['more than 6000 unexpected errors within a minute']);
});

test('a log that fails does not end the process', () => {
  const { seen, raise } = start({ fails: true });
  raise(3);
  expect(seen.counted).toBe(3);
});

test('after the signal, nothing is contained', () => {
  const { source, end } = start();
  end.abort();
  expect(source.listenerCount('uncaughtException')).toBe(0);
});
