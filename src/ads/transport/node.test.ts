import { expect, test } from 'vitest';
import protobuf from 'protobufjs';
import { readNode } from './node.ts';

/** A node with texts in these fields. */
function node(texts: Readonly<Record<number, string>>): Uint8Array {
  const writer = protobuf.Writer.create();
  for (const [field, text] of Object.entries(texts)) writer.uint32((Number(field) << 3) | 2).string(text);
  return writer.finish();
}

test.each([
  [1, 'the node id is longer than 256 bytes; shorten it, or the names of the Pod and namespace in it'],
  [2, 'the cluster of the node is longer than 256 bytes; shorten it'],
])('a text that is too long is refused, with what to do: field %d', (field, message) => {
  expect(readNode(node({ 1: 'a', [field]: 'x'.repeat(256) }), '1')).toMatchObject({ stream: '1' });
  expect(() => readNode(node({ [field]: 'x'.repeat(257) }), '1')).toThrow(message);
});

test('it keeps what the client says that it understands, up to a bound', () => {
  const declaring = (features: number): Uint8Array => {
    const writer = protobuf.Writer.create().uint32(10).string('a');
    for (let i = 0; i < features; i++) writer.uint32(82).string(`feature-${i}`);
    return writer.finish();
  };
  expect(readNode(declaring(0), '1')).not.toHaveProperty('features');
  expect(readNode(declaring(2), '1').features).toEqual(['feature-0', 'feature-1']);
  expect(() => readNode(declaring(65), '1')).toThrow('the node declares more than 64 client features');
});
