import type { ObjectRef } from '../api/object.ts';

/** What is wrong in a file, for the person who edits it. */
export interface FileReport {
  readonly severity: 'error' | 'warning';
  /** As it is reached from the path that was given. */
  readonly file: string;
  /** Counted from 1. */
  readonly line?: number;
  /** Absent when the report is about a document that is not an object, or about the file. */
  readonly object?: Pick<ObjectRef, 'group' | 'kind' | 'namespace' | 'name'>;
  /** As kubectl prints it; empty for the object, document or file as a whole. */
  readonly field: string;
  readonly message: string;
  /** The kind, where the report is that it is not read: it is the same for all objects of it. */
  readonly unread?: string;
}
