import { expect, test } from 'vitest';
import { Graph } from '../cache/graph.ts';
import { leaf, resource } from '../envoy/encode/resource.ts';
import type { Member } from '../mesh/resources/members.ts';
import { CommitLog } from './commits.ts';

function lab() {
  const graph = new Graph();
  const members = graph.input<Member>('objects.Service').track();
  const log = new CommitLog([members], () => new Date(0));
  graph.observe((draft) => log.published(draft, graph.revision));
  const write = (name: string, size: number | undefined) =>
    members.write(
      `source/shop/${name}`,
      size === undefined
        ? undefined
        : { list: 'mesh', qualifier: '', resource: resource('T/a.b.Cluster', name, leaf(new Uint8Array(size), [])) },
    );
  return { graph, log, write };
}

test('a commit is told with its causes, resources and bytes, and how long it took', () => {
  const { graph, log, write } = lab();
  graph.commit([write('a', 10), write('b', 5)]);
  log.measured(20, 3);
  graph.commit([write('a', undefined)]);
  expect(log.newest).toEqual([
    {
      ...{ number: 2, at: new Date(0), writes: 1, causes: ['Service/shop/a'] },
      ...{ resources: 1, bytes: 0, names: ['-Cluster a'] },
    },
    {
      ...{ number: 1, at: new Date(0), writes: 2, causes: ['Service/shop/a', 'Service/shop/b'] },
      ...{ resources: 2, bytes: 15, names: ['Cluster a', 'Cluster b'], delay: 20, work: 3 },
    },
  ]);
});

test('what is kept is bounded, in commits, names and characters', () => {
  const { graph, log, write } = lab();
  for (let i = 0; i < 1_000; i++) graph.commit([write('a', i + 1)]);
  expect(log.newest).toHaveLength(200);
  expect(log.newest[0]).toMatchObject({ number: 1_000 });
  graph.commit(Array.from({ length: 1_000 }, (_, i) => write(`${i}`.padEnd(1_000, 'x'), 1)));
  const [newest] = log.newest;
  expect(newest).toMatchObject({ writes: 1_000, resources: 1_000, bytes: 1_000 });
  expect([newest!.causes.length, newest!.names.length]).toEqual([20, 20]);
  for (const name of [...newest!.causes, ...newest!.names]) expect(name.length).toBeLessThanOrEqual(201);
});
