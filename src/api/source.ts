import type { KindName } from './kinds.ts';
import type { KubernetesObject } from './object.ts';

/**
 * Where a source (API server, directory) delivers objects. All calls are synchronous and cheap: they mark, the batcher
 * commits. Objects are plain JSON, already trimmed, and must not be changed afterwards.
 */
export interface ObjectSink {
  /** All objects of the kind that this source has: what it had before and does not list any more is deleted. */
  replace(kind: KindName, objects: readonly KubernetesObject[]): void;
  /** A new or changed object. One of the same name with another uid replaces the old one. */
  upsert(kind: KindName, object: KubernetesObject): void;
  delete(kind: KindName, namespace: string, name: string): void;
}
