import type { EncodedResource, LeafPart, NodePart, Part } from '../../ads/store/resource.ts';
import { hasConditions } from '../../api/kinds.ts';
import { distinctRefs, type ObjectRef } from '../../api/object.ts';
import { contentHash } from '../../model/hash.ts';
import type { Source } from '../../model/provenance.ts';

/** Newly encoded bytes, as a leaf of a resource. */
export function leaf(
  bytes: Uint8Array,
  clusters: readonly string[],
  origins: readonly ObjectRef[] = NO_ORIGINS,
  marks: LeafMarks = {},
): LeafPart {
  return new EncodedLeaf(bytes, clusters, origins, marks);
}

/** See {@link LeafPart}. */
export interface LeafMarks {
  readonly isLate?: boolean;
  readonly isUnready?: boolean;
}

class EncodedLeaf implements LeafPart {
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly hash: string;
  readonly clusters: readonly string[];
  readonly late?: true;
  readonly unready?: true;
  readonly #origins: readonly ObjectRef[];

  constructor(bytes: Uint8Array, clusters: readonly string[], origins: readonly ObjectRef[], marks: LeafMarks) {
    this.bytes = bytes;
    this.length = bytes.length;
    this.hash = contentHash(bytes);
    this.clusters = clusters;
    this.#origins = origins;
    if (marks.isLate === true) this.late = true;
    if (marks.isUnready === true) this.unready = true;
  }

  /** Not a property: the same bytes from other objects are equal, and stop a change. */
  get origins(): readonly ObjectRef[] {
    return this.#origins;
  }
}

const NO_ORIGINS: readonly ObjectRef[] = [];

/** Of the objects behind a message, those whose conditions tell what became of it; each once. */
export function originsOf(sources: readonly Source[]): readonly ObjectRef[] {
  const refs = new Set<ObjectRef>();
  for (const { object } of sources) if (hasConditions(object)) refs.add(object);
  return refs.size === 0 ? NO_ORIGINS : distinctRefs(refs);
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
