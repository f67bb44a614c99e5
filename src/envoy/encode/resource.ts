import type { EncodedResource, LeafPart, NodePart, Part } from '../../ads/store/resource.ts';
import { contentHash } from '../../model/hash.ts';

/** Newly encoded bytes, as a leaf of a resource. */
export function leaf(bytes: Uint8Array, clusters: readonly string[]): LeafPart {
  return { bytes, length: bytes.length, hash: contentHash(bytes), clusters };
}

/** Concatenates parts without copying them. */
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

/** The same bytes, whatever they were made from: a new generation of an object with the same result stops here. */
export function sameResource(a: EncodedResource, b: EncodedResource): boolean {
  return a.name === b.name && a.typeUrl === b.typeUrl && samePart(a.body, b.body);
}

export function samePart(a: Part, b: Part): boolean {
  return a.hash === b.hash;
}
