import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { definitions } from '../../src/api/gen/schemas.gen.ts';
import { kinds } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { TestMesh, connectedProxy, readObjects } from '../harness/mesh.ts';
import { createCheckSound } from '../harness/sound.ts';
import { hostileJson, hostileMetadata } from './hostile.ts';
import { hostileWorlds } from './worlds.ts';
import { runs } from '../../src/testing/runs.ts';

const checkSound = createCheckSound();

/** A commit of the mesh throws what a transform has thrown. */
function expectSound(mesh: TestMesh, proxies: number): void {
  for (let i = 0; i < proxies; i++) expect(checkSound(mesh.snapshot(`proxy-${i}`))).toEqual([]);
  for (const [, problems] of mesh.mesh.problems.byObject.entries())
    for (const { field, message } of problems) expect((field + message).isWellFormed()).toBe(true);
}

// fast-check prints the seed of a world that fails.
describe('no object and no node makes anything throw, or anything be served that is not sound', () => {
  test('when something valid is changed here and there', () => {
    fc.assert(
      fc.property(hostileWorlds(), ({ options, objects, nodes }) => {
        const mesh = new TestMesh({ oracle: false, mesh: options });
        mesh.apply(objects);
        for (const [i, node] of nodes.entries()) mesh.connect(connectedProxy(`proxy-${i}`, node));
        expectSound(mesh, nodes.length);
      }),
      { numRuns: runs(300) },
    );
  });

  test('when it comes after something valid and goes again', () => {
    fc.assert(
      fc.property(hostileWorlds(), ({ options, before, objects, nodes }) => {
        const mesh = new TestMesh({ mesh: options });
        mesh.apply(before);
        for (const [i, node] of nodes.entries()) mesh.connect(connectedProxy(`proxy-${i}`, node));
        mesh.apply(objects);
        expectSound(mesh, nodes.length);
        mesh.delete(objects);
        expectSound(mesh, nodes.length);
      }),
      { numRuns: runs(30) },
    );
  });

  test('when the metadata of a node is anything', () => {
    const others = readObjects(AROUND);
    fc.assert(
      fc.property(
        hostileMetadata,
        fc.constantFrom(
          'sidecar~10.1.0.1~a.shop~shop.svc.cluster.local',
          'router~10.1.0.2~a.shop~shop.svc.cluster.local',
          'plain',
        ),
        (metadata, id) => {
          const mesh = new TestMesh({ oracle: false });
          mesh.apply(others);
          mesh.connect(connectedProxy('proxy-0', { id, metadata: { LABELS: { app: 'a' }, ...metadata } }));
          expectSound(mesh, 1);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  const custom = kinds.filter((kind) => kind.custom);
  test.each(custom.map(({ kind, group, version }) => [kind, `${group}/${version}`]))(
    'when the spec of a %s is any JSON',
    (kind, apiVersion) => {
      const others = readObjects(AROUND);
      fc.assert(
        fc.property(hostileJson(namesOf(`${kind}Spec`)), (spec) => {
          const metadata = { name: 'hostile', namespace: 'shop' };
          const object = { apiVersion, kind, metadata, spec } as KubernetesObject;
          const mesh = new TestMesh({ oracle: false });
          mesh.apply([...others, object]);
          mesh.connect(
            connectedProxy('proxy-0', {
              id: 'sidecar~10.1.0.1~client.shop~shop.svc.cluster.local',
              metadata: { HTTP_PROXY_PORT: '15080' },
            }),
          );
          mesh.connect(connectedProxy('proxy-1', { id: 'router~10.1.0.2~router.shop~shop.svc.cluster.local' }));
          expectSound(mesh, 2);
        }),
        { numRuns: runs(100) },
      );
    },
  );
});

const AROUND = `
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {clusterIP: 10.96.1.1, ports: [{name: http, port: 80}, {name: tcp, port: 81}, {name: any, port: 82}]}
---
apiVersion: v1
kind: Service
metadata: {name: named, namespace: shop}
spec: {clusterIP: 10.96.1.2, selector: {app: a}, ports: [{name: http, port: 80, targetPort: http}, {name: tcp, port: 81, targetPort: tcp}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: a, namespace: shop}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a, namespace: shop}
spec: {hosts: [a], gateways: [mesh, a], http: [{delegate: {name: hostile}}, {route: [{destination: {host: a, subset: v1}}]}]}
`;

/** The names of all fields below a definition. */
function namesOf(definition: string): string[] {
  const names = new Set<string>();
  const seen = new Set<string>();
  const collect = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return;
    for (const [key, value] of Object.entries(schema)) {
      if (key === 'properties') for (const name of Object.keys(value as object)) names.add(name);
      if (key === '$ref' && typeof value === 'string') follow(value.slice(value.lastIndexOf('/') + 1));
      else collect(value);
    }
  };
  const follow = (name: string): void => {
    if (seen.has(name)) return;
    seen.add(name);
    collect((definitions as Readonly<Record<string, unknown>>)[name]);
  };
  follow(definition);
  return [...names];
}
