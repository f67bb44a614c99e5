import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { KubernetesObject } from '../../src/api/object.ts';

/** An object, and what the API server and the offline validator have to say to it. */
export interface CorpusCase {
  /** `virtual-service/invalid/timeout-zero` */
  readonly name: string;
  readonly object: KubernetesObject & { readonly spec?: unknown };
  /** Fields with an error, none for a valid object. From the first line: `# field: spec.http[0].timeout`. */
  readonly fields: readonly string[];
}

export function readCorpus(): readonly CorpusCase[] {
  const directory = join(import.meta.dirname, 'corpus');
  return globSync('*/{valid,invalid}/*.yaml', { cwd: directory })
    .sort()
    .map((file) => {
      const text = readFileSync(join(directory, file), 'utf8');
      const field = /^# field: (.+)\n/.exec(text)?.[1];
      if ((field === undefined) === file.includes('/invalid/'))
        throw new Error(`${file}: invalid cases, and only they, name a field in their first line`);
      return {
        name: file.replace('.yaml', ''),
        object: parse(text) as CorpusCase['object'],
        fields: field === undefined ? [] : [field],
      };
    });
}
