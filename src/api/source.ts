import type { SourceKindName } from './kinds.ts';
import type { KubernetesObject } from './object.ts';

/**
 * Where a source (API server, directory) delivers objects. All calls are synchronous and cheap: they mark, and the
 * batcher commits. Objects are plain JSON, already trimmed, and must not be changed afterwards.
 */
export interface ObjectSink {
  /** All objects of the kind that this source has: those it had before and no longer lists are deleted. */
  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void;
  /** A new or changed object. It replaces an object with the same name and a different uid. */
  upsert(kind: SourceKindName, object: KubernetesObject): void;
  delete(kind: SourceKindName, namespace: string, name: string): void;
  /** Everything that the source has of this kind was delivered. Said from time to time, if a source can know. */
  caughtUp?(kind: SourceKindName): void;
}
