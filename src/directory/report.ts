import type { ObjectRef } from '../api/object.ts';

/** A problem in a file, for the person who edits it. */
export interface FileReport {
  readonly severity: 'error' | 'warning';
  /** As reached from the given path. */
  readonly file: string;
  /** Counted from 1. */
  readonly line?: number;
  /** Absent if the report is about a document that is not an object, or about the file. */
  readonly object?: Pick<ObjectRef, 'group' | 'kind' | 'namespace' | 'name'>;
  /** As kubectl prints it; empty for the object, document or file as a whole. */
  readonly field: string;
  readonly message: string;
  /** If the report is that a kind is not read: the same for all its objects of which the same is said. */
  readonly unread?: string;
}
