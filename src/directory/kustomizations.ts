import { basename, dirname, resolve } from 'node:path';
import { isObject } from '../api/json.ts';
import { readDocument } from '../yaml/document.ts';
import { splitDocuments } from './split.ts';

/** As Kustomize looks for it. */
const NAMES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'];

/** By field, the files that its elements name: parts, not objects. */
const PARTS: Readonly<Record<string, (listed: unknown) => readonly unknown[]>> = {
  patches: member('path'),
  patchesStrategicMerge: (listed) => [listed],
  patchesJson6902: member('path'),
  replacements: member('path'),
  configurations: (listed) => [listed],
  configMapGenerator: generated,
  secretGenerator: generated,
};

export function isKustomization(file: string): boolean {
  return NAMES.includes(basename(file));
}

/** The files that kustomizations read, and none of them as objects: patches, say. As absolute paths. */
export function kustomizationParts(
  files: readonly { readonly path: string; readonly text: string }[],
): ReadonlySet<string> {
  const [parts, resources] = [new Set<string>(), new Set<string>()];
  for (const { path: file, text } of files)
    for (const document of splitDocuments(text)) {
      const content = readDocument(document.text);
      if ('broken' in content || !isObject(content.value)) continue;
      const { value } = content;
      const add = (paths: Set<string>, path: unknown): unknown =>
        typeof path === 'string' && paths.add(resolve(dirname(file), path));
      for (const path of listIn(value['resources'])) add(resources, path);
      for (const [field, filesOf] of Object.entries(PARTS))
        for (const path of listIn(value[field]).flatMap(filesOf)) add(parts, path);
    }
  return new Set([...parts].filter((path) => !resources.has(path)));
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function member(name: string): (listed: unknown) => readonly unknown[] {
  return (listed) => (isObject(listed) ? [listed[name]] : []);
}

/** Files become entries: `KEY=FILE`, or `FILE`. */
function generated(listed: unknown): readonly unknown[] {
  return member('files')(listed)
    .flatMap(listIn)
    .map((file) => (typeof file === 'string' ? file.replace(/^[^=]*=/, '') : file));
}
