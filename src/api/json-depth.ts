import { isObject } from './json.ts';

/** Whether a JSON value has maps and lists within each other on more than so many levels. It looks no deeper. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  const members: readonly unknown[] = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  if (members.length === 0) return levels < 1 && typeof value === 'object' && value !== null;
  return levels < 1 || members.some((member) => isDeeperThan(member, levels - 1));
}
