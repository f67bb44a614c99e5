import { Buffer } from 'node:buffer';
import { brotliDecompressSync } from 'node:zlib';
import protobuf from 'protobufjs';
import 'protobufjs/ext/descriptor.js';
import { DESCRIPTORS } from '../gen/descriptors.gen.ts';

/** The committed FileDescriptorSet: every v3 type in Envoy 1.40, and the types that these import. */
export function descriptorSet(): Uint8Array {
  return brotliDecompressSync(Buffer.from(DESCRIPTORS, 'base64'));
}

/**
 * A root made from descriptors has JSON field names: `acceptHttp10`, and `typeUrl` in `Any`. A root made from `.proto`
 * files spells some differently. A program uses only this one.
 */
export function createRoot(set: Uint8Array = descriptorSet()): protobuf.Root {
  const root = protobuf.Root.fromDescriptor(set);
  root.resolveAll();
  return root;
}
