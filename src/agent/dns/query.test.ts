import packet from 'dns-packet';
import { expect, test } from 'vitest';
import { readQuery } from './query.ts';

const txt = (count: number) =>
  Array.from({ length: count }, () => ({ type: 'TXT' as const, name: 'x.example.com', data: 'x' }));
const question = { type: 'A' as const, name: 'API.example.com' };

test('a query may have a few records besides its question', () => {
  const message = packet.encode({ type: 'query', id: 7, questions: [question], additionals: txt(4) });
  expect(readQuery(message)).toMatchObject({ id: 7, name: 'api.example.com', type: 'A' });
});

test.each(['answers', 'authorities', 'additionals'] as const)('nobody asks with many %s', (section) => {
  const message = packet.encode({ type: 'query', id: 7, questions: [question], [section]: txt(5) });
  expect(readQuery(message)).toBe('malformed');
});

test('records whose names are long chains of pointers are not read', () => {
  const chains = chainsOfPointers();
  // Each of its names is valid: without the limit, this is a query, and takes a hundred milliseconds.
  expect(readQuery(chains)).toBe('malformed');
});

/** The largest datagram: one record with 8,000 pointers, each to the one before, and 4,000 whose name is the last. */
function chainsOfPointers(): Buffer {
  const bytes = Buffer.from(packet.encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'a' }] }));
  const pointers = Buffer.alloc(16_000);
  const start = bytes.length + 11;
  for (let at = 0; at < pointers.length; at += 2) pointers.writeUInt16BE(0xc000 | (at === 0 ? 12 : start + at - 2), at);
  const last = 0xc000 | (start + pointers.length - 2);
  const records = [record([0], pointers)];
  while (records.length < 4_000) records.push(record([last >> 8, last & 255], Buffer.alloc(0)));
  bytes.writeUInt16BE(records.length, 6);
  return Buffer.concat([bytes, ...records]);
}

function record(name: readonly number[], data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(65_280, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([Buffer.from(name), fixed, data]);
}
