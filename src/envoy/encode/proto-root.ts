import { Buffer } from 'node:buffer';
import { brotliDecompressSync } from 'node:zlib';
import protobuf from 'protobufjs';
import 'protobufjs/ext/descriptor.js';
import { DESCRIPTORS } from '../gen/descriptors.gen.ts';

/** The committed FileDescriptorSet: every v3 type that Envoy 1.40 knows, with what they import. */
export function descriptorSet(): Uint8Array {
  return brotliDecompressSync(Buffer.from(DESCRIPTORS, 'base64'));
}

/**
 * Field names of a root made from descriptors are the JSON names: `acceptHttp10`, and `typeUrl` in `Any`. A root made
 * from `.proto` files spells some differently; a program uses this one only.
 */
export function createRoot(set: Uint8Array = descriptorSet()): protobuf.Root {
  const root = protobuf.Root.fromDescriptor(set);
  root.resolveAll();
  return root;
}
