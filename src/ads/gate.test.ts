import { expect, test } from 'vitest';
import { Gate, Place } from './gate.ts';

test('lets some through at once and the others in order, as places are given back', () => {
  const gate = new Gate(2);
  const entered: string[] = [];
  for (const name of ['a', 'b', 'c', 'd']) gate.wait(() => entered.push(name));
  expect(entered).toEqual(['a', 'b']);
  gate.leave();
  expect(entered).toEqual(['a', 'b', 'c']);
  gate.leave();
  gate.leave();
  gate.leave();
  expect(entered).toEqual(['a', 'b', 'c', 'd']);
  gate.leave();
  gate.wait(() => entered.push('e'));
  expect(entered.at(-1)).toBe('e');
});

test('whoever gives up waiting is passed over', () => {
  const gate = new Gate(1);
  const entered: string[] = [];
  gate.wait(() => entered.push('a'));
  const giveUp = gate.wait(() => entered.push('b'));
  gate.wait(() => entered.push('c'));
  giveUp();
  expect(gate.waiting).toBe(1);
  gate.leave();
  expect(entered).toEqual(['a', 'c']);
});

test('whoever throws when let through has no place: it goes to the next', () => {
  const gate = new Gate(1);
  const entered: string[] = [];
  const place = (name: string, then = (): void => {}): Place => {
    const taken = new Place(gate);
    const enter = (): void => {
      entered.push(name);
      then();
    };
    if (name === 'throws at once') expect(() => taken.take(enter)).toThrow(name);
    else taken.take(enter);
    return taken;
  };
  const fail = (name: string) => (): void => {
    throw new Error(name);
  };
  expect(place('throws at once', fail('throws at once')).had).toBe(false);
  const first = place('first');
  const failing = ['b', 'c'].map((name) => place(name, fail(name)));
  const last = place('last');
  expect(() => first.leave()).toThrow();
  expect(entered).toEqual(['throws at once', 'first', 'b', 'c', 'last']);
  expect([first, ...failing, last].map(({ had }) => had)).toEqual([false, false, false, true]);
  last.leave();
  expect(place('after all').had).toBe(true);
});

test('a place that is left while it is given can be taken again', () => {
  const place = new Place(new Gate(1));
  place.take(() => place.leave());
  expect(place.had).toBe(false);
  place.take(() => {});
  expect(place.had).toBe(true);
});
