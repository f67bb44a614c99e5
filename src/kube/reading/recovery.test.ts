import { beforeEach, describe, expect, test } from 'vitest';
import { Recovery } from './recovery.ts';
import { FakeClock } from '../../testing/fake-clock.ts';

const MINUTE = 60_000;
const { signal } = new AbortController();

let clock: FakeClock;
let recovery: Recovery;
/** Who was woken, or has waited in vain. */
let ends: string[];
/** `held` and `released`, in turn. */
let holds: string[];

beforeEach(() => {
  clock = new FakeClock();
  ends = [];
  holds = [];
  const hold = () => {
    holds.push('held');
    return () => void holds.push('released');
  };
  recovery = new Recovery({ clock, random: () => 0.5, hold });
});

function down(...names: readonly string[]): void {
  for (const who of names)
    void recovery
      .wait(who, MINUTE, { signal })
      .then((woken) => ends.push(`${who} ${woken ? 'was woken' : 'has waited'}`));
}

describe('the first that reaches the server', () => {
  test('wakes the others soon, and only them', async () => {
    down('a', 'b', 'c');
    recovery.reached('a');
    await clock.advance(100);
    expect(ends).toEqual(['b was woken', 'c was woken']);
  });

  test('wakes nobody when it was not away, or alone was', async () => {
    down('a', 'b');
    recovery.reached('c');
    await clock.advance(100);
    expect(ends).toEqual([]);
    recovery.reached('a');
    await clock.advance(100);
    down('a');
    recovery.reached('a');
    await clock.advance(MINUTE);
    expect(holds).toEqual(['held', 'released']);
  });

  test('does so again after a while only', async () => {
    for (let second = 0; second < 20; second++) {
      down('a', 'b');
      recovery.reached('a');
      recovery.caughtUp('a');
      recovery.caughtUp('b');
      await clock.advance(1_000);
    }
    expect(ends.filter((end) => end === 'b was woken')).toHaveLength(2);
    expect(holds).toHaveLength(4);
  });
});

describe('what is delivered', () => {
  test('is held until all have caught up', async () => {
    down('a', 'b', 'c');
    recovery.reached('a');
    expect(holds).toEqual(['held']);
    recovery.caughtUp('a');
    recovery.reached('b');
    recovery.caughtUp('b');
    expect(holds).toEqual(['held']);
    recovery.caughtUp('c');
    expect(holds).toEqual(['held', 'released']);
    await clock.advance(MINUTE);
    expect(holds).toEqual(['held', 'released']);
  });

  test('is held for a few seconds at most', async () => {
    down('a', 'b');
    recovery.reached('a');
    await clock.advance(4_999);
    expect(holds).toEqual(['held']);
    await clock.advance(1);
    expect(holds).toEqual(['held', 'released']);
    recovery.caughtUp('b');
    recovery.caughtUp('a');
    expect(holds).toEqual(['held', 'released']);
  });

  test('is held also for those who fail again; they do not wait long', async () => {
    down('a', 'b');
    recovery.reached('a');
    recovery.caughtUp('a');
    await clock.advance(100);
    down('b');
    await clock.advance(400);
    expect(ends).toEqual(['b was woken', 'b has waited']);
    expect(holds).toEqual(['held']);
    recovery.reached('b');
    recovery.caughtUp('b');
    expect(holds).toEqual(['held', 'released']);
  });

  test('is not held again for those who did not catch up in time, until they did', async () => {
    const again = async (): Promise<void> => {
      down('a', 'b');
      recovery.reached('a');
      recovery.caughtUp('a');
      await clock.advance(10_000);
    };
    await again();
    await again();
    expect(holds).toEqual(['held', 'released']);
    recovery.caughtUp('b');
    await again();
    expect(holds).toEqual(['held', 'released', 'held', 'released']);
  });
});

test('a wait ends by itself, and with its signal', async () => {
  const ending = new AbortController();
  const waiting = recovery.wait('a', MINUTE, { signal: ending.signal });
  ending.abort();
  await expect(waiting).resolves.toBe(false);
  down('b');
  await clock.advance(MINUTE);
  expect(ends).toEqual(['b has waited']);
});
