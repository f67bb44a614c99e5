import { basename, dirname, resolve } from 'node:path';
import { isObject } from '../api/json.ts';
import { readDocument } from '../yaml/document.ts';
import { splitDocuments } from './split.ts';

/** As Kustomize looks for it. */
const NAMES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'];

const FIELDS = ['patches', 'patchesStrategicMerge', 'patchesJson6902'];

export function isKustomization(file: string): boolean {
  return NAMES.includes(basename(file));
}

/** The files that a kustomization applies as patches, as absolute paths. */
export function patchFilesOf(file: string, text: string): readonly string[] {
  return splitDocuments(text).flatMap((document) => {
    const content = readDocument(document.text);
    if ('broken' in content || !isObject(content.value)) return [];
    const { value } = content;
    return FIELDS.flatMap((field) => {
      const listed = value[field];
      return Array.isArray(listed) ? listed.map((patch: unknown) => (isObject(patch) ? patch['path'] : patch)) : [];
    }).flatMap((path) => (typeof path === 'string' ? [resolve(dirname(file), path)] : []));
  });
}
