import type { EncodedResource, LeafPart, NodePart, Part } from '../ads/resource.ts';
import type { ObjectRef } from '../api/object.ts';
import { contentHash } from '../model/hash.ts';

/** Bytes that were just encoded, as the leaf of a resource. */
export function leaf(bytes: Uint8Array, clusters: readonly string[], origins: readonly ObjectRef[]): LeafPart {
  return { bytes, length: bytes.length, hash: contentHash(bytes), clusters, origins };
}

/** The concatenation of parts, of which nothing is copied. */
export function node(children: readonly Part[]): NodePart {
  let length = 0;
  let hashes = '';
  for (const child of children) {
    length += child.length;
    hashes += child.hash;
  }
  return { children, length, hash: contentHash(hashes) };
}

/** A resource; its version is the hash of its content. */
export function resource(typeUrl: string, name: string, body: Part): EncodedResource {
  return { typeUrl, name, version: body.hash, body };
}

export function sameResource(a: EncodedResource, b: EncodedResource): boolean {
  return a.version === b.version && a.name === b.name && a.typeUrl === b.typeUrl;
}
