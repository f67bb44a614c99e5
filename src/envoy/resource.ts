import type { EncodedResource, LeafPart, NodePart, Part } from '../ads/resource.ts';
import { type ObjectRef, sameObject } from '../api/object.ts';
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

/** The same bytes, made from the same generations of the same objects. */
export function sameResource(a: EncodedResource, b: EncodedResource): boolean {
  return a.name === b.name && a.typeUrl === b.typeUrl && samePart(a.body, b.body);
}

/** Most parts of two versions of a table are shared, and need no second look. */
export function samePart(a: Part, b: Part): boolean {
  if (a === b) return true;
  if (a.hash !== b.hash) return false;
  if ('bytes' in a) return 'bytes' in b && sameOrigins(a.origins, b.origins);
  return 'children' in b && a.children.every((child, i) => samePart(child, b.children[i]!));
}

function sameOrigins(a: readonly ObjectRef[], b: readonly ObjectRef[]): boolean {
  return a === b || (a.length === b.length && a.every((ref, i) => sameRef(ref, b[i]!)));
}

function sameRef(a: ObjectRef, b: ObjectRef): boolean {
  return a === b || (sameObject(a, b) && a.uid === b.uid && a.generation === b.generation);
}
