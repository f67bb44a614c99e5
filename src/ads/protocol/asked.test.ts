import { expect, test } from 'vitest';
import type { MemberChange } from '../store/publication.ts';
import type { Rollout } from '../rollouts/rollout.ts';
import { CDS, encodeRequest, resource, TestServer } from '../testing/world.ts';

const LISTS = Array.from({ length: 20 }, (_, i) => `namespace ${i}`);

/** Two names in each of 20 lists, and clients each with a root of its own, with something of its own, that has them all. */
function clientsOf(qualifier: (client: number) => string, count = 30) {
  const server = new TestServer();
  const rollouts = LISTS.map((list) => server.rollouts.begin(list));
  const member = (list: string, name: string, by: readonly Rollout[], of = ''): MemberChange => ({
    ...{ list, typeUrl: CDS, name, qualifier: of, rollouts: by },
    resource: resource(CDS, name, '1'),
  });
  const own = server.rollouts.begin('own');
  const roots = Array.from({ length: count }, (_, i) => `root ${i}`);
  server.store.apply({
    members: [
      ...LISTS.flatMap((list, i) => ['a', 'b'].map((name) => member(list, `${list} ${name}`, [rollouts[i]!]))),
      ...roots.map((root) => member(root, `${root} own`, [own])),
    ],
    lists: roots.map((list) => ({ list, children: LISTS })),
  });
  const clients = roots.map((root, i) => {
    const view = server.store.enter({ roots: [root], qualifiers: [qualifier(i)] });
    const client = server.open(view, true);
    client.request(encodeRequest({ typeUrl: CDS }, true, server.hasher), 0);
    return client;
  });
  return { rollouts, own, clients };
}

test('clients that see the same are waited for in one place, whatever else each of them sees', () => {
  const { rollouts, own, clients } = clientsOf((i) => `node ${i}`);
  for (const rollout of rollouts) {
    expect(rollout.waiting().size).toBe(clients.length);
    expect(rollout.concerns.size).toBe(1);
  }
  expect(own.waiting().size).toBe(clients.length);
  expect(new Set(rollouts.flatMap(({ concerns }) => [...concerns])).size).toBe(1);
});
