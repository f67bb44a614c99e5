import { quote } from '../api/quote.ts';
import { parseCidr } from '../model/cidr.ts';

/** A value, or what is wrong with the text, as the end of a sentence that begins with its name. */
export type Read<T> = { readonly value: T } | { readonly wrong: string };

/** Each becomes rules that every new connection may pass. */
const MAX_ITEMS = 1000;

/** `*`: all. */
export type All<T> = '*' | readonly T[];

export function readPort(text: string): Read<number> {
  const port = portOf(text.trim());
  return port === undefined
    ? { wrong: `${quote(text)} is not a port; write a number from 1 to 65535` }
    : { value: port };
}

export function readPorts(text: string): Read<readonly number[]> {
  return readList(text, portOf, 'a port', '8080,9090');
}

export function readPortsOrAll(text: string): Read<All<number>> {
  return orAll(text, readPorts);
}

/** Addresses and ranges of both families. */
export function readRanges(text: string): Read<readonly string[]> {
  const rangeOf = (item: string): string | undefined => (parseCidr(item) === undefined ? undefined : item);
  return readList(text, rangeOf, 'an address or a range of addresses', '10.96.0.0/12,fd00::/8');
}

export function readRangesOrAll(text: string): Read<All<string>> {
  return orAll(text, readRanges);
}

/** Names of network interfaces; `+` at the end stands for any ending. */
export function readInterfaces(text: string): Read<readonly string[]> {
  // 15 bytes is what the kernel allows. Quotes and spaces would end the word in a rule.
  const nameOf = (item: string): string | undefined =>
    /^[A-Za-z0-9_.:@-]{1,14}[A-Za-z0-9_.:@+-]?$/.test(item) ? item : undefined;
  return readList(text, nameOf, 'the name of a network interface', 'eth1,net1');
}

/** Users or groups by number. */
export function readIds(text: string): Read<readonly number[]> {
  const idOf = (item: string): number | undefined =>
    /^\d{1,10}$/.test(item) && Number(item) < 2 ** 32 - 1 ? Number(item) : undefined;
  return readList(text, idOf, 'the number of a user or group', '1337');
}

export function readIdsOrAll(text: string): Read<All<number>> {
  return orAll(text, readIds);
}

function orAll<T>(text: string, read: (text: string) => Read<readonly T[]>): Read<All<T>> {
  return text.trim() === '*' ? { value: '*' } : read(text);
}

/** Items between commas; empty for none. Each is once in the value. */
function readList<T>(
  text: string,
  itemOf: (item: string) => T | undefined,
  what: string,
  example: string,
): Read<readonly T[]> {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  if (items.length > MAX_ITEMS) return { wrong: `has ${items.length} items, more than ${MAX_ITEMS}` };
  const found = new Set<T>();
  for (const item of items) {
    const value = itemOf(item);
    if (value === undefined) return { wrong: `${quote(item)} is not ${what}; write for example "${example}"` };
    found.add(value);
  }
  return { value: [...found] };
}

function portOf(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65535 ? port : undefined;
}
