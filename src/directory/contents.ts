import type { Validate } from '../api/validate.ts';
import { type FieldPath, printPath } from '../api/schema-path.ts';
import type { Lines } from './lines.ts';
import { type DocumentObject, parseObjects, type ParsedDocument, type ReadingOptions } from './objects.ts';
import type { FileReport } from './report.ts';
import { splitDocuments } from './split.ts';

/** An object with the document and file that contain it. */
export interface PlacedObject extends DocumentObject {
  readonly document: PlacedDocument;
}

export interface PlacedDocument extends ParsedDocument {
  readonly file: string;
  /** Line of the file on which the document begins, counted from 1. */
  readonly line: number;
}

/** What is needed to read a file. */
export interface Reading extends ReadingOptions {
  readonly validate: Validate;
  readonly lines: Lines;
}

/** What one file contributes. */
export interface FileContent {
  readonly file: string;
  readonly documents: readonly PlacedDocument[];
  /** Usable objects, in file order; objects kept from before may be anywhere. */
  readonly objects: readonly PlacedObject[];
  readonly reports: readonly FileReport[];
  readonly ignored: number;
}

/**
 * What a file contributes, given its current text. Mistakes never take anything valid away:
 *
 * - An object that fails validation stays as the file last had it. A policy that the file did not have before counts as
 *   it is: what cannot be read of it opens nothing.
 * - A file with errors deletes nothing: a missing object may be in the broken part, or in a part that is not written
 *   yet. The same goes for an empty file: a file that is being written starts out empty.
 * - A file without errors is taken at its word: other objects that it had are deleted.
 */
export function nextContent(
  previous: FileContent | undefined,
  file: string,
  text: string,
  { validate, lines, ...options }: Reading,
): FileContent {
  const before = new Map(previous?.objects.map((object) => [object.key, object]));
  if (text.trim() === '' && before.size > 0) {
    const message = 'is empty; its objects stay in force until it has content again or is deleted';
    return { ...previous!, file, documents: [], reports: [{ severity: 'warning', file, field: '', message }] };
  }
  const known = new Map(previous?.documents.map((document) => [document.text, document]));
  const documents = splitDocuments(text).map((part): PlacedDocument => {
    const parsed = known.get(part.text) ?? parseObjects(part.text, validate, options);
    return { ...parsed, file, line: part.line };
  });
  const objects: PlacedObject[] = [];
  const mentioned = new Set<string>();
  for (const document of documents)
    for (const object of document.objects) {
      const { key, failsClosed } = object;
      const closed = failsClosed && { ...object, object: failsClosed, document };
      const last = before.get(key);
      const good = closed !== undefined && last?.failsClosed !== undefined ? undefined : last;
      const kept = object.object === undefined ? (good ?? closed) : { ...object, document };
      if (kept !== undefined && !(object.object === undefined && mentioned.has(key))) objects.push(kept);
      mentioned.add(key);
    }
  const reports = documents.flatMap((document) => reportsOf(document, lines));
  if (reports.some(({ severity }) => severity === 'error'))
    for (const [key, object] of before) {
      if (mentioned.has(key)) continue;
      objects.push(object);
      reports.push(stays(file, object));
    }
  return {
    file,
    documents,
    objects,
    reports,
    ignored: documents.reduce((sum, { ignored }) => sum + ignored, 0),
  };
}

function stays(file: string, { kind, namespace, name }: PlacedObject): FileReport {
  return {
    severity: 'warning',
    file,
    object: { group: kind.group, kind: kind.kind, namespace, name },
    field: '',
    message: 'is no longer in the file, but stays in force while the file has errors',
  };
}

/** The contribution of a file that cannot be read now: everything stays. */
export function unreadableContent(previous: FileContent | undefined, file: string, message: string): FileContent {
  const report: FileReport = { severity: 'error', file, field: '', message };
  return { file, documents: [], objects: previous?.objects ?? [], reports: [report], ignored: 0 };
}

function reportsOf(document: PlacedDocument, lines: Lines): FileReport[] {
  const { file } = document;
  const ofDocument = document.findings.map((finding): FileReport => {
    const line = finding.line === undefined ? lineIn(document, finding.path, lines) : document.line - 1 + finding.line;
    const { severity, path, message, unread } = finding;
    return { severity, file, line, field: printPath(path), message, ...(unread === undefined ? {} : { unread }) };
  });
  const ofObjects = document.objects.flatMap(({ kind, namespace, name, path, errors }) =>
    errors.map((error): FileReport => ({
      severity: error.severity,
      file,
      line: lineIn(document, [...path, ...error.path], lines),
      object: { group: kind.group, kind: kind.kind, namespace, name },
      field: printPath(error.path),
      message: error.message,
    })),
  );
  return [...ofDocument, ...ofObjects];
}

export interface Merged {
  readonly objects: ReadonlyMap<string, PlacedObject>;
  readonly reports: readonly FileReport[];
}

/** All files together. If an object is defined in several places, the first one wins and the others are reported. */
export function mergeContents(contents: Iterable<FileContent>, lines: Lines): Merged {
  const objects = new Map<string, PlacedObject>();
  const reports: FileReport[] = [];
  for (const content of contents) {
    for (const report of content.reports) reports.push(report);
    for (const object of content.objects) {
      const { key } = object;
      const first = objects.get(key);
      if (first === undefined) objects.set(key, object);
      else reports.push(duplicate(object, first, lines));
    }
  }
  return { objects, reports };
}

function duplicate(object: PlacedObject, first: PlacedObject, lines: Lines): FileReport {
  const { kind, namespace, name, document } = object;
  const winner = `${first.document.file}:${lineOfObject(first, lines)}`;
  return {
    severity: 'error',
    file: document.file,
    line: lineOfObject(object, lines),
    object: { group: kind.group, kind: kind.kind, namespace, name },
    field: '',
    message: `is already defined in ${winner}, which is used; remove one of them`,
  };
}

/** Lists may repeat thousands of objects: the lines of all objects of a document are looked up together, once. */
function lineOfObject({ document, path }: PlacedObject, lines: Lines): number {
  let known = linesOfObjects.get(document);
  if (known === undefined) {
    known = new Map(document.objects.map((object) => [printPath(object.path), lineIn(document, object.path, lines)]));
    linesOfObjects.set(document, known);
  }
  return known.get(printPath(path)) ?? document.line;
}

const linesOfObjects = new WeakMap<PlacedDocument, ReadonlyMap<string, number>>();

/** Line in the file of the value at a path in the document. */
export function lineIn(document: PlacedDocument, path: FieldPath, lines: Lines): number {
  return document.line - 1 + lines.of(document.text, path);
}
