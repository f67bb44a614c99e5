import type { ObjectRef } from '../../api/object.ts';

/**
 * Bytes of a message as a tree of shared pieces. A leaf was encoded once; a node stands for the concatenation of its
 * children, which for protobuf is the concatenation of their fields. Nothing is copied until it is written to a socket.
 */
export type Part = LeafPart | NodePart;

interface PartFacts {
  /** Hash of the content: equal content has an equal hash, in every process. */
  readonly hash: string;
  /** Number of bytes. */
  readonly length: number;
}

export interface LeafPart extends PartFacts {
  /** Its own memory (not a slice of a pool), never changed. */
  readonly bytes: Uint8Array;
  /** Names of the clusters that these bytes refer to. */
  readonly clusters: readonly string[];
  /** Objects with conditions that these bytes were made from. Whoever makes the same bytes of others may leave these. */
  readonly origins: readonly ObjectRef[];
  /**
   * A client needs more than what belongs to these bytes (a cluster: a secret besides its assignment) before it can use
   * them. Only its answer says that it has that.
   */
  readonly late?: true;
  /** An assignment without a ready endpoint: requests fail while its cluster is used. */
  readonly unready?: true;
}

export interface NodePart extends PartFacts {
  readonly children: readonly Part[];
}

/** One xDS resource, ready to be sent to any proxy that sees it. */
export interface EncodedResource {
  readonly typeUrl: string;
  readonly name: string;
  /** Hash of the content, so that replicas and restarts agree. */
  readonly version: string;
  /** The encoded message (the value of the `Any`). */
  readonly body: Part;
}

/** Every leaf of a part, in the order of its bytes. */
export function* leavesOf(part: Part): Generator<LeafPart> {
  if ('bytes' in part) {
    yield part;
    return;
  }
  for (const child of part.children) yield* leavesOf(child);
}
