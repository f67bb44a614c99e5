import { TestMesh, type TestMeshOptions, connectedProxy } from '../harness/mesh.ts';
import type { GoldenCase } from './case.ts';

/** The mesh that holds a case: all its objects at once, then its proxies. */
export function meshOf({ objects, proxies, options: mesh }: GoldenCase, options: TestMeshOptions = {}): TestMesh {
  const made = new TestMesh({ oracle: false, mesh, ...options });
  made.apply(objects);
  for (const [proxy, node] of proxies) made.connect(connectedProxy(proxy, node));
  return made;
}
