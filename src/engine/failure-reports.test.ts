import { expect, it } from 'vitest';
import type { KubernetesObject } from '../api/object.ts';
import { Graph, type Emit, type Failure, type Write } from '../cache/graph.ts';
import { testEncoder } from '../../test/harness/mesh.ts';
import { reportFailures } from './failure-reports.ts';
import { buildMesh } from '../mesh.ts';
import { ONE, defaultMeshOptions } from '../mesh/inputs.ts';

const service = (name: string, label: string): KubernetesObject => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'ServiceEntry',
  metadata: { name, namespace: 'n', labels: { label } },
});

it('tells the owner of an object of a bug that it was met with, and takes it back when it is over', () => {
  const graph = new Graph();
  const mesh = buildMesh(graph, testEncoder());
  // A transform that throws stands in for a bug.
  graph.derive('broken', mesh.inputs.objects.ServiceEntry, (_, { metadata }, __, _emit: Emit<true>) => {
    if (metadata.labels?.['label'] === 'bad') throw new Error('oh');
  });
  const later: Write[] = [];
  const seen: Failure[] = [];
  reportFailures(
    mesh,
    (write) => later.push(write),
    (failure) => seen.push(failure),
  );
  const commit = (...writes: Write[]) => {
    graph.commit(writes);
    graph.commit(later.splice(0));
  };
  const write = (name: string, label: string) =>
    mesh.inputs.objects.ServiceEntry.write(`Kubernetes/n/${name}`, service(name, label));
  const reasons = (name: string) =>
    (mesh.problems.byObject.get(`networking.istio.io/ServiceEntry/Kubernetes/n/${name}`) ?? []).map(
      (problem) => problem.reason,
    );

  commit(mesh.inputs.options.write(ONE, defaultMeshOptions), write('a', 'good'), write('b', 'bad'));
  expect(reasons('b')).toContain('InternalError');
  expect(reasons('a')).not.toContain('InternalError');
  expect(seen.map((failure) => failure.collection)).toEqual(['broken']);
  commit(write('b', 'good'));
  expect(reasons('b')).not.toContain('InternalError');
});

it('says once what fails with every commit, and brings no commit by it', () => {
  const graph = new Graph();
  const mesh = buildMesh(graph, testEncoder());
  let bug: string | undefined = 'oh';
  graph.observe(() => {
    if (bug !== undefined) throw new Error(bug);
  }, 'broken');
  const later: Write[] = [];
  const said: string[] = [];
  reportFailures(
    mesh,
    (write) => later.push(write),
    ({ collection, key, error }) => said.push(`${collection} ${key}: ${(error as Error).message}`),
  );
  for (let i = 0; i < 3; i++) graph.commit([]);
  expect(said).toEqual(['observer broken: oh']);
  bug = 'another';
  graph.commit([]);
  bug = undefined;
  graph.commit([]);
  expect(said).toEqual(['observer broken: oh', 'observer broken: another']);
  expect(later).toEqual([]);
});
