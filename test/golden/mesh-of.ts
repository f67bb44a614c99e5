import { TestMesh, type TestMeshOptions, connectedProxy } from '../harness/mesh.ts';
import type { GoldenCase } from './case.ts';

/** The mesh that holds a case: all its objects at once, then its proxies. */
export function meshOf({ objects, proxies }: GoldenCase, options: TestMeshOptions = {}): TestMesh {
  const mesh = new TestMesh({ oracle: false, ...options });
  mesh.apply(objects);
  for (const [proxy, node] of proxies) mesh.connect(connectedProxy(proxy, node));
  return mesh;
}
