import { resolve } from 'node:path';
import type { Validate } from '../api/validate.ts';
import { type SourceKindName, sourceKinds } from '../api/kinds.ts';
import type { KubernetesObject, ObjectRef } from '../api/object.ts';
import {
  type FileContent,
  lineIn,
  mergeContents,
  nextContent,
  type PlacedObject,
  unreadableContent,
} from './contents.ts';
import { parsePath } from './field-path.ts';
import { type Listing, listFiles, readText, refuseUnreadable } from './files.ts';
import { isKustomization, kustomizationParts } from './kustomizations.ts';
import { Lines } from './lines.ts';
import { keyOf } from './objects.ts';
import type { FileReport } from './report.ts';
import { withIdentity } from './revisions.ts';

/** The content of directories and files, read once. */
export interface LoadedDirectory {
  /** Objects of every kind, in file order. */
  readonly objects: ReadonlyMap<SourceKindName, readonly KubernetesObject[]>;
  /** Objects of kinds that Fairlead does not know, as they are written. */
  readonly others: readonly KubernetesObject[];
  readonly reports: readonly FileReport[];
  /** Number of objects of kinds that Fairlead does not know. */
  readonly ignored: number;
  readonly locate: Locate;
}

/** Location of a field of an object, or of its closest existing ancestor. Undefined for an unknown object. */
export type Locate = (
  object: Pick<ObjectRef, 'group' | 'kind' | 'namespace' | 'name'>,
  field: string,
) => { readonly file: string; readonly line: number } | undefined;

/** A program that reads once may need the line of every object. Characters: 320 MB. */
const KEPT_PARSED = 16_000_000;

/** Reads every object once. Throws a DirectoryError if a path cannot be read. */
export async function loadDirectory(paths: readonly string[], validate: Validate): Promise<LoadedDirectory> {
  const listing = await listFiles(paths);
  refuseUnreadable(listing);
  return loadTexts(readAll(listing.files), validate);
}

function* readAll(files: Listing['files']): Iterable<FileText> {
  for (const file of files) {
    const read = readText(file);
    if (read !== undefined) yield { path: file.path, ...read };
  }
}

type FileText = { readonly path: string } & NonNullable<ReturnType<typeof readText>>;

/** The same of texts in place of files. */
export function loadTexts(files: Iterable<FileText>, validate: Validate): LoadedDirectory {
  const lines = new Lines({ kept: KEPT_PARSED });
  const read = [...files];
  const parts = kustomizationParts(read.filter((file) => 'text' in file).filter(({ path }) => isKustomization(path)));
  const contents = read.map((file): FileContent => {
    if (!('text' in file)) return unreadableContent(undefined, file.path, file.reason);
    const isPart = parts.size > 0 && parts.has(resolve(file.path));
    return nextContent(undefined, file.path, file.text, { validate, lines, keepsOthers: true, isPart });
  });
  const { objects, reports } = mergeContents(contents, lines);
  const byKind = new Map<SourceKindName, KubernetesObject[]>(sourceKinds.map(({ name }) => [name, []]));
  for (const placed of objects.values()) byKind.get(placed.kind.name)!.push(withIdentity(placed, 0, 1));
  const others = new Map(
    contents.flatMap(({ documents }) =>
      documents.flatMap((document) => document.others.map((other) => [other.key, { ...other, document }] as const)),
    ),
  );
  const places = new Map<string, Place>([...others, ...objects]);
  return {
    objects: byKind,
    others: [...others.values()].map(({ object }) => object),
    reports,
    ignored: contents.reduce((sum, { ignored }) => sum + ignored, 0),
    locate: locateIn(() => places, lines),
  };
}

type Place = Pick<PlacedObject, 'document' | 'path'>;

export function locateIn(objects: () => ReadonlyMap<string, Place>, lines: Lines): Locate {
  return (object, field) => {
    const placed = objects().get(keyOf(object));
    if (placed === undefined) return undefined;
    const { document, path } = placed;
    return { file: document.file, line: lineIn(document, [...path, ...parsePath(field)], lines) };
  };
}
