import type { FieldPath } from '../api/schema-path.ts';

/** What makes a document unusable, and where. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError';
  readonly code = 'DOCUMENT';
  readonly offset: number;
  readonly path: FieldPath;
  /** Whether the syntax is wrong, the key of a map, or something else that is well formed. */
  readonly kind: 'syntax' | 'key' | 'content';

  constructor(message: string, offset: number, path: FieldPath = [], kind: DocumentError['kind'] = 'content') {
    super(message);
    this.offset = offset;
    this.path = path;
    this.kind = kind;
  }
}

/** Why the text is not valid YAML. */
export function notYaml(reason: string, offset: number): DocumentError {
  return new DocumentError(`is not valid YAML: ${reason}`, offset, [], 'syntax');
}

export function indentedWithTab(offset: number): DocumentError {
  return new DocumentError('is indented with a tab; YAML allows spaces only', offset);
}
