import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MemberChange } from '../store/publication.ts';
import { BAD, EnvoyModel, RESOLVED } from '../testing/envoy-model.ts';
import { CDS, EDS, LDS, RDS, resource, SECRET, TestServer, UNREADY } from '../testing/world.ts';
import { runs } from '../../testing/runs.ts';

/**
 * Whatever changes in whatever order, and however late requests and responses are: no table that a client routes by
 * names a cluster that it cannot use.
 */

const CLUSTERS = ['a', 'b', 'c', 'd'];
const TABLES = ['t', 'u', 'v'];
const LISTENERS = ['l', 'm'];

/**
 * What the histories of a test have in them. Who comes back and rejects has tables of which only the name is known; and
 * who comes back does not say which of his clusters still warm: there, all have assignments.
 */
interface Kind {
  readonly rejecting: boolean;
  readonly reconnecting: boolean;
  /** Clusters lose and regain their endpoints; all clusters have assignments, and nothing else makes them ready. */
  readonly emptying: boolean;
}

/** A consistent mesh: tables name clusters that exist, and exist while a listener names them. */
interface Mesh {
  readonly clusters: ReadonlyMap<string, number>;
  /** Clusters without a ready endpoint; no table names them. */
  readonly unready: ReadonlySet<string>;
  readonly listeners: ReadonlyMap<string, { readonly table: string; readonly version: number }>;
  readonly tables: ReadonlyMap<string, { readonly version: number; readonly clusters: readonly string[] }>;
}

const meshes = ({ rejecting, reconnecting, emptying }: Kind): fc.Arbitrary<Mesh> =>
  fc
    .record({
      clusters: fc.array(
        fc.option(fc.integer({ min: 1, max: reconnecting || emptying ? RESOLVED - 1 : Number(SECRET) }), { freq: 3 }),
        {
          minLength: 4,
          maxLength: 4,
        },
      ),
      unready: emptying ? fc.subarray(CLUSTERS) : fc.constant<string[]>([]),
      listeners: fc.array(
        fc.option(fc.record({ table: fc.constantFrom(...TABLES), version: fc.integer({ min: 1, max: 2 }) }), {
          freq: 5,
        }),
        { minLength: 2, maxLength: 2 },
      ),
      tables: fc.array(
        fc.record({
          version: fc.integer({ min: 1, max: rejecting ? BAD : BAD - 1 }),
          clusters: fc.subarray(CLUSTERS, { maxLength: 2 }),
        }),
        { minLength: 3, maxLength: 3 },
      ),
    })
    .map(({ clusters, unready, listeners, tables }) => {
      const present = new Map(
        CLUSTERS.flatMap((name, i): [string, number][] => (clusters[i] ? [[name, clusters[i]]] : [])),
      );
      const used = new Map(LISTENERS.flatMap((name, i) => (listeners[i] ? [[name, listeners[i]] as const] : [])));
      const named = new Set([...used.values()].map(({ table }) => table));
      return {
        clusters: present,
        unready: new Set(unready),
        listeners: used,
        tables: new Map(
          TABLES.flatMap((name, i) => {
            if (!named.has(name)) return [];
            const usable = tables[i]!.clusters.filter((each) => present.has(each) && !unready.includes(each));
            return [[name, { ...tables[i]!, clusters: usable }]];
          }),
        ),
      };
    });

function resourcesOf(mesh: Mesh): Map<string, ReturnType<typeof resource>> {
  const items = new Map<string, ReturnType<typeof resource>>();
  const add = (item: ReturnType<typeof resource>): void => void items.set(`${item.typeUrl} ${item.name}`, item);
  for (const [name, version] of mesh.clusters) {
    add(resource(CDS, name, `${version}`));
    if (version !== RESOLVED) add(resource(EDS, name, mesh.unready.has(name) ? UNREADY : '1'));
  }
  for (const [name, { table, version }] of mesh.listeners) add(resource(LDS, name, `${version}:${table}`));
  for (const [name, { version, clusters }] of mesh.tables) {
    add(resource(RDS, name, `${version}:${clusters.join(',')}`, clusters));
  }
  return items;
}

type Step =
  | { do: 'publish'; mesh: Mesh }
  | { do: 'send' | 'write' | 'receive'; times: number }
  | { do: 'drain' | 'resolve' }
  | { do: 'apply'; some: number }
  | { do: 'reconnect'; eager: boolean }
  | { do: 'wait'; ms: number };

const times = fc.integer({ min: 1, max: 4 });
const steps = (kind: Kind): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      { weight: 3, arbitrary: meshes(kind).map((mesh): Step => ({ do: 'publish', mesh })) },
      ...(['send', 'write', 'receive'] as const).map((kind) => ({
        weight: 5,
        arbitrary: times.map((count): Step => ({ do: kind, times: count })),
      })),
      { weight: 2, arbitrary: fc.constant<Step>({ do: 'drain' }) },
      { weight: 2, arbitrary: fc.constant<Step>({ do: 'resolve' }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 }).map((some): Step => ({ do: 'apply', some })) },
      { weight: 3, arbitrary: fc.integer({ min: 500, max: 8_000 }).map((ms): Step => ({ do: 'wait', ms })) },
      { weight: kind.reconnecting ? 1 : 0, arbitrary: fc.boolean().map((eager): Step => ({ do: 'reconnect', eager })) },
    ),
    { maxLength: 120, size: 'max' },
  );

function run(first: Mesh, history: readonly Step[], delta: boolean, kind: Kind): void {
  const server = new TestServer();
  server.times = { ...server.times, timeoutMs: Infinity, overdueMs: Infinity, stuckMs: Infinity };
  let present = new Map<string, ReturnType<typeof resource>>();
  const publish = (mesh: Mesh): void => {
    const next = resourcesOf(mesh);
    const members: MemberChange[] = [];
    for (const [key, { typeUrl, name }] of present) {
      if (!next.has(key)) members.push({ list: 'mesh', typeUrl, name, qualifier: '' });
    }
    for (const item of next.values()) {
      members.push({ list: 'mesh', typeUrl: item.typeUrl, name: item.name, qualifier: '', resource: item });
    }
    present = next;
    server.store.apply({ members, lists: [] });
    server.frames.outdate();
  };
  publish(first);
  const world = { roots: ['mesh'], qualifiers: [] };
  const envoy = new EnvoyModel(server, server.open(server.store.enter(world), delta), delta);
  let now = 0;
  const rest = (): void => {
    for (let i = 0, busy = true; busy; i++) {
      if (i > 1_000) throw new Error('it does not come to rest');
      busy = false;
      while (envoy.send(now)) busy = true;
      if (envoy.write(now)) busy = true;
      while (envoy.receive()) busy = true;
      if (envoy.resolve()) busy = true;
    }
  };
  rest();
  for (const step of history) {
    switch (step.do) {
      case 'publish':
        publish(step.mesh);
        break;
      case 'send':
        for (let i = 0; i < step.times; i++) envoy.send(now);
        break;
      case 'write':
        envoy.write(now);
        break;
      case 'receive':
        for (let i = 0; i < step.times; i++) envoy.receive();
        break;
      case 'drain':
      case 'resolve':
        envoy[step.do]();
        break;
      case 'apply':
        envoy.applied = step.some;
        break;
      case 'wait':
        now += step.ms;
        envoy.delivery.tick(now);
        break;
      case 'reconnect':
        // In state of the world a client does not say what it holds: what vanishes while it is away is deleted at once.
        if (!delta && envoy.names.some((name) => !present.has(`${CDS} ${name}`))) break;
        envoy.delivery.close();
        envoy.reconnect(server.open(server.store.enter(world), delta));
        while (envoy.send(now)) if (step.eager) envoy.write(now);
        envoy.write(now);
        break;
    }
  }
  for (let i = 0; i < 20; i++) {
    rest();
    envoy.drain();
    now += 5_000;
    envoy.delivery.tick(now);
  }
  rest();
  expect(envoy.violations).toEqual([]);
  expect([...envoy.warming.keys()], 'warming').toEqual([]);
  const wanted = new Map(
    [...present.values()].filter(({ typeUrl }) => typeUrl === CDS).map((each) => [each.name, each]),
  );
  // What was rejected leaves the client with an older table, and with the clusters of that.
  const used = new Set([...envoy.tables.values()].flatMap((content) => content.split(':')[1]?.split(',') ?? []));
  for (const [name, version] of envoy.clusters) {
    if (!used.has(name) || wanted.has(name)) expect(version, name).toBe(wanted.get(name)?.version);
  }
  for (const name of wanted.keys()) expect(envoy.clusters.has(name), name).toBe(true);
  for (const [name, content] of envoy.tables) {
    const table = present.get(`${RDS} ${name}`)?.version;
    // A listener whose next table was rejected goes on with a former one.
    if (table === undefined && kind.rejecting) continue;
    if (table?.startsWith(`${BAD}:`) === true) expect(content, name).not.toBe(table);
    else expect(content, name).toBe(table);
  }
}

describe.each([
  ['delta', true],
  ['state of the world', false],
])('over %s', (_, delta) => {
  test.each<[string, Kind]>([
    ['a client that comes back', { rejecting: false, reconnecting: true, emptying: false }],
    ['a client that rejects', { rejecting: true, reconnecting: false, emptying: false }],
    ['endpoints that come and go', { rejecting: false, reconnecting: false, emptying: true }],
  ])('no request meets a cluster that is not there: %s', (_name, kind) => {
    fc.assert(
      fc.property(meshes(kind), steps(kind), (first, history) => run(first, history, delta, kind)),
      { numRuns: runs(300) },
    );
  });
});
