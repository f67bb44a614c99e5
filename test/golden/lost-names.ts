import { kindOf } from '../../src/api/kinds.ts';
import { objectKey } from '../../src/api/object.ts';
import { NameIndex } from '../../src/engine/name-index.ts';
import { namesOf } from '../../src/engine/object-names.ts';
import { defaultMeshOptions } from '../../src/mesh/inputs.ts';
import type { TestMesh } from '../harness/mesh.ts';
import type { GoldenCase } from './case.ts';

/**
 * What objects of a case name and the index of names does not find, although the mesh has nothing to say against them: a
 * change of these would wait for something that is there.
 */
export function lostNames({ mesh }: TestMesh, { objects, options }: GoldenCase): string[] {
  const { clusterId, domainSuffix, rootNamespace } = { ...defaultMeshOptions, ...options };
  const index = new NameIndex({ domainSuffix, rootNamespace });
  const known = objects.flatMap((object) => {
    const kind = kindOf(object.apiVersion, object.kind)?.name;
    return kind === undefined ? [] : [{ kind, object }];
  });
  for (const { kind, object } of known) {
    const { namespace = '', name } = object.metadata;
    index.set(`${kind}/${objectKey(clusterId, namespace, name)}`, { kind, object });
  }
  const unresolved = new Set<string>();
  for (const [, problems] of mesh.problems.byObject.entries())
    for (const { reason, object } of problems)
      if (reason === 'RefNotFound' || reason === 'Invalid')
        unresolved.add(`${object.kind}/${object.namespace}/${object.name}`);
  return known.flatMap(({ kind, object }) => {
    const { namespace = '', name } = object.metadata;
    const id = `${kind}/${namespace}/${name}`;
    const needs = unresolved.has(id) ? [] : [...namesOf(kind, object, domainSuffix).needs];
    return needs.flatMap((need) => (index.has(need, namespace) ? [] : [`${id} names ${need}`]));
  });
}
