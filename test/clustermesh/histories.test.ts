import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { Clusters, type WantedCluster } from '../../src/clusters/clusters.ts';
import { ClusterIds } from '../../src/clustermesh/cluster-ids.ts';
import { readMeshCluster } from '../../src/clustermesh/reader.ts';
import type { EtcdAccess } from '../../src/etcd/access.ts';
import type { EtcdConnection } from '../../src/etcd/connection.ts';
import { type RunningEtcd, startEtcd } from '../peers/etcd.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { CiliumWriter } from './cilium-writer.ts';
import { Delivered, OWN } from './mesh-lab.ts';
import { type Relay, startRelay } from './relay.ts';
import { grantAsCilium } from './rights.ts';
import { runs } from '../../src/testing/runs.ts';

const names = ['c1', 'c2'] as const;
type Name = (typeof names)[number];
const services = ['a', 'b', 'c', 'd'] as const;

const cluster = fc.constantFrom(...names);
const service = fc.constantFrom(...services);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), cluster, service, host: fc.nat(250) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), cluster, service }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('spoil' as const), cluster, service }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('away' as const), cluster }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('back' as const), cluster }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cut' as const), cluster }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('swap' as const), cluster }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drop' as const), cluster }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('want' as const), cluster }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('renumber' as const), cluster }) },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'wipe' as const }) },
);

/** Ten times as fast. */
const clock: Clock = {
  now: () => 10 * systemClock.now(),
  date: () => systemClock.date(),
  after: (ms, fn) => systemClock.after(ms / 10, fn),
};

/** One cluster of the mesh, as far as it is known here. */
interface Peer {
  readonly name: Name;
  writer: CiliumWriter;
  relay: Relay;
  /** What its etcd has: back end, or undefined for a value that cannot be used. */
  readonly stored: Map<string, string | undefined>;
  /** What it has said last; undefined: it is not read. */
  said: Map<string, string> | undefined;
  isAway: boolean;
  sink: Delivered;
}

withPeers(['etcd'], 'a mesh that is read from a real etcd', () => {
  let etcd: RunningEtcd;
  let admin: EtcdConnection;
  let files: EtcdAccess;

  beforeAll(async () => {
    etcd = await startEtcd({ prepare: (root) => grantAsCilium(root, 'own') });
    admin = await etcd.connect('admin-own');
    files = await etcd.access('local');
  });
  afterAll(() => etcd?.stop());
  printLogOnFailure(() => etcd);

  test('whatever happens, what is delivered is what each cluster has said last', { timeout: 600_000 }, async () => {
    const numRuns = runs(3);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40 }), async (steps) => {
        const lab = new Lab();
        try {
          await lab.start();
          for (const each of steps) {
            await lab.take(each);
            await lab.check();
          }
        } finally {
          await lab.end();
        }
      }),
      { numRuns, endOnFailure: true },
    );
  });

  class Lab {
    readonly #peers = new Map<Name, Peer>();
    readonly #ids = new ClusterIds(OWN);
    readonly #wanted = new Map<string, WantedCluster<EtcdAccess>>();
    readonly #relays: Relay[] = [];
    readonly #clusters = new Clusters<EtcdAccess>({
      start: (name, access, sink, signal) =>
        readMeshCluster(
          {
            ...{ name, access, sink, own: OWN, ids: this.#ids, importsServices: false, clock, random: () => 0 },
            keepAlive: { time: 200, timeout: 200 },
          },
          { signal },
        ),
      sinkOf: (name) => (this.#peers.get(name as Name)!.sink = new Delivered()),
      served: () => undefined,
      kinds: ['Service', 'EndpointSlice'],
      hold: () => () => undefined,
      clock,
      random: () => 0,
    });

    async start(): Promise<void> {
      for (const [i, name] of names.entries()) {
        const writer = new CiliumWriter(() => admin, name, 3 + i, 'cache');
        const relay = await this.#relay();
        const stored = new Map<string, string | undefined>();
        const sink = new Delivered();
        this.#peers.set(name, { name, writer, relay, stored, said: undefined, isAway: false, sink });
      }
      await this.#writeAll();
      for (const peer of this.#peers.values()) this.#want(peer);
      await this.check();
    }

    async take(each: typeof step extends fc.Arbitrary<infer S> ? S : never): Promise<void> {
      for (const { writer } of this.#peers.values()) await writer.heartbeat();
      if (each.do === 'restart') return this.#restart(false);
      if (each.do === 'wipe') return this.#restart(true);
      const peer = this.#peers.get(each.cluster)!;
      const { writer, stored } = peer;
      switch (each.do) {
        case 'write': {
          const address = `10.${peer.name === 'c1' ? 1 : 2}.0.${each.host + 1}`;
          stored.set(each.service, address);
          await writer.service({ namespace: 'n', name: each.service, backends: { [address]: 80 } });
          break;
        }
        case 'remove':
          stored.delete(each.service);
          await writer.remove('services', `n/${each.service}`);
          break;
        case 'spoil':
          stored.set(each.service, undefined);
          await writer.put('services', `n/${each.service}`, '{"cluster": 7}');
          break;
        case 'away':
          peer.isAway = true;
          peer.relay.freeze();
          break;
        case 'back':
          if (!peer.isAway) return;
          peer.isAway = false;
          peer.relay.cut();
          peer.relay.thaw();
          break;
        case 'cut':
          peer.relay.cut();
          break;
        case 'swap':
          // Not until it was read once: a cluster that is read for the first time has nothing to be swapped.
          if (peer.said === undefined || peer.isAway) return;
          peer.relay = await this.#relay();
          peer.said = new Map();
          this.#want(peer);
          // What cannot be used was never read over the new way.
          break;
        case 'drop':
          this.#wanted.delete(peer.name);
          this.#clusters.want(this.#wanted);
          peer.said = undefined;
          return;
        case 'want':
          if (peer.said !== undefined || peer.isAway) return;
          peer.said = new Map();
          this.#want(peer);
          break;
        case 'renumber':
          if (peer.isAway) return;
          peer.writer = writer.as(writer.id + 10);
          await peer.writer.config();
          peer.said &&= new Map();
          for (const [name, address] of stored)
            if (address !== undefined) await peer.writer.service({ namespace: 'n', name, backends: { [address]: 80 } });
      }
      this.#hear(peer);
    }

    /** What is delivered is what was said; of those that cannot be heard, still. */
    async check(): Promise<void> {
      for (const peer of this.#peers.values()) this.#hear(peer);
      for (const { name, said, sink, isAway } of this.#peers.values()) {
        // Until then, the former way serves.
        if (said !== undefined && !isAway) await expect.poll(() => this.#phaseOf(name)).toBe('synced');
        const expected = Array.from(said ?? [], ([service, address]) => [`n/${service}`, [`${address}:80`]]);
        await expect.poll(() => [name, sink.backends]).toEqual([name, Object.fromEntries(expected) as object]);
      }
    }

    async end(): Promise<void> {
      await this.#clusters.end();
      for (const relay of this.#relays) relay.stop();
      await this.#peers.get('c1')!.writer.delete('cilium/', 'cilium0');
    }

    #phaseOf(name: Name): string | undefined {
      return this.#clusters.statuses().find(({ id, phase }) => id === name && phase !== 'closing')?.phase;
    }

    #want({ name, relay }: Peer): void {
      const access = { ...files, endpoints: [`https://127.0.0.1:${relay.port}`] };
      this.#wanted.set(name, { owner: 'file', access });
      this.#clusters.want(this.#wanted);
      const peer = this.#peers.get(name)!;
      peer.said ??= new Map();
    }

    /** Values that cannot be used leave what was said before. */
    #hear({ said, stored, isAway }: Peer): void {
      if (said === undefined || isAway) return;
      for (const name of said.keys()) if (!stored.has(name)) said.delete(name);
      for (const [name, address] of stored) if (address !== undefined) said.set(name, address);
    }

    async #restart(wiped: boolean): Promise<void> {
      await etcd.restart(wiped ? { wiped, prepare: (root) => grantAsCilium(root, 'own') } : {});
      admin = await etcd.connect('admin-own');
      if (wiped) await this.#writeAll();
    }

    async #writeAll(): Promise<void> {
      for (const { writer, stored } of this.#peers.values()) {
        await writer.begin();
        for (const [name, address] of stored)
          if (address === undefined) await writer.put('services', `n/${name}`, '{"cluster": 7}');
          else await writer.service({ namespace: 'n', name, backends: { [address]: 80 } });
        await writer.finish();
      }
    }

    async #relay(): Promise<Relay> {
      const relay = await startRelay(etcd.port);
      this.#relays.push(relay);
      return relay;
    }
  }
});
