import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { MeshOptions } from '../../src/mesh/inputs.ts';
import { goldenNames, readGoldenCase } from '../golden/case.ts';
import { type EnvoyNode, readObjects } from '../harness/mesh.ts';
import { caseNames } from '../truth/cases.ts';
import { mutateNode, mutateObjects, mutations } from './hostile.ts';

/** A small mesh, and who looks at it. */
export interface World {
  readonly name: string;
  readonly options: Partial<MeshOptions>;
  readonly objects: readonly KubernetesObject[];
  readonly nodes: readonly EnvoyNode[];
}

/** All golden and recorded cases. */
function validWorlds(): World[] {
  const truth = join(import.meta.dirname, '../truth/cases');
  return [
    ...goldenNames().map((name): World => {
      const { options, objects, proxies } = readGoldenCase(name, () => []);
      return { name, options, objects, nodes: [...proxies.values()] };
    }),
    ...caseNames().map((name): World => {
      const text = readFileSync(join(truth, name, 'input.yaml'), 'utf8');
      const nodes = readdirSync(join(truth, name, 'proxies')).map(
        (file) => JSON.parse(readFileSync(join(truth, name, 'proxies', file), 'utf8')) as EnvoyNode,
      );
      return { name: `truth/${name}`, options: {}, objects: readObjects(text), nodes };
    }),
  ];
}

/** Valid worlds with a few things in them that are not. */
export function hostileWorlds(): fc.Arbitrary<World & { readonly before: readonly KubernetesObject[] }> {
  return fc
    .record({ world: fc.constantFrom(...validWorlds()), ofObjects: mutations, ofNodes: mutations })
    .map(({ world, ofObjects, ofNodes }) => ({
      name: world.name,
      options: world.options,
      before: world.objects,
      objects: mutateObjects(world.objects, ofObjects),
      nodes: world.nodes.map((node) => mutateNode(node, ofNodes)),
    }));
}
