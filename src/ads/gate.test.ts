import { expect, test } from 'vitest';
import { Gate } from './gate.ts';

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
