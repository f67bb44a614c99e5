import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { kindOf } from '../../src/api/kinds.ts';
import { type KubernetesObject, printRef, refOf } from '../../src/api/object.ts';
import type { Validate } from '../../src/api/validate.ts';
import type { MeshOptions } from '../../src/mesh/inputs.ts';
import type { EnvoyNode } from '../harness/mesh.ts';

const directory = join(import.meta.dirname, 'cases');

/** One file of `cases`. */
export interface GoldenCase {
  /** `gateways/http` */
  readonly name: string;
  /** Options of the mesh that are not at their defaults. */
  readonly options: Partial<MeshOptions>;
  /** Who looks at the mesh. */
  readonly proxies: ReadonlyMap<string, EnvoyNode>;
  /** The objects that a source would deliver. */
  readonly objects: readonly KubernetesObject[];
  /** What their schema says of the others, by object. */
  readonly refused: ReadonlyMap<string, readonly string[]>;
}

export function goldenNames(): string[] {
  return globSync('**/*.yaml', { cwd: directory })
    .filter((file) => !file.endsWith('.expected.yaml'))
    .map((file) => file.replace(/\.yaml$/, ''))
    .sort();
}

/** Expected files without a case. */
export function orphans(): string[] {
  return globSync('**/*.expected.yaml', { cwd: directory })
    .filter((file) => !goldenNames().includes(file.replace(/\.expected\.yaml$/, '')))
    .map((file) => join(directory, file));
}

export const expectedFile = (name: string): string => join(directory, `${name}.expected.yaml`);

/** Every object of a case, also those that their schema refuses. */
export function objectsIn(name: string): readonly KubernetesObject[] {
  const text = readFileSync(join(directory, `${name}.yaml`), 'utf8');
  return parseAllDocuments(text)
    .slice(1)
    .map((document) => document.toJS() as KubernetesObject);
}

/** The first document of the file has the proxies as Envoy nodes, and options; each of the others is an object. */
export function readGoldenCase(name: string, validate: Validate): GoldenCase {
  const text = readFileSync(join(directory, `${name}.yaml`), 'utf8');
  const [first, ...rest] = parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw new Error(`${name}.yaml: ${document.errors[0]!.message}`);
    return document.toJS() as unknown;
  });
  const { proxies, options = {} } = first as {
    readonly proxies: Readonly<Record<string, EnvoyNode>>;
    readonly options?: Partial<MeshOptions>;
  };
  const objects: KubernetesObject[] = [];
  const refused = new Map<string, readonly string[]>();
  for (const object of rest as KubernetesObject[]) {
    if (kindOf(object.apiVersion, object.kind) === undefined) throw new Error(`${name}.yaml: ${object.kind}`);
    const errors = validate(object).filter(({ severity }) => severity === 'error');
    if (errors.length === 0) objects.push(object);
    else
      refused.set(
        printRef(refOf('', object)),
        errors.map(({ field, message }) => `${field}: ${message}`),
      );
  }
  return { name, options, proxies: new Map(Object.entries(proxies)), objects, refused };
}
