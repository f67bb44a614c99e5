import { beforeEach, describe, expect, test } from 'vitest';
import type { EndpointSlice } from '../api/core.ts';
import type { GlobalService } from '../model/global-service.ts';
import { contentHash } from '../model/hash.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { Exporter } from './exporter.ts';
import type { LeasedConnection, LeasedStore } from './key-writer.ts';
import { decodeSlice } from './slice-value.ts';

const own = { name: 'home', id: 7, limit: 255 } as const;

const HEARTBEAT = 'cilium/.heartbeat';
const CONFIG = 'cilium/cluster-config/home';
const SERVICES = 'cilium/state/services/v1/home/';
const SLICES = 'cilium/state/endpointslices/v1/home/';
const CANARIES = ['nodes', 'services', 'endpointslices', 'identities', 'ip'].map(
  (kind) => `cilium/synced/home/cilium/state/${kind}/v1`,
);

/** Keys, as an etcd would have them, and what is asked of it. */
class FakeStore implements LeasedStore {
  readonly keys = new Map<string, { readonly value: string | Uint8Array; readonly isOurs: boolean }>();
  /** Since it was asked last. */
  log: string[] = [];
  /** How the next requests end; for all keys, or for one. */
  failing = new Map<string, Error>();
  reachable = true;
  /** Requests wait while it is set; those for one key alone if it is said. */
  gate: Promise<void> | undefined;
  gated: string | undefined;
  connection: (LeasedConnection & { fail(reason: string): void }) | undefined;
  onLost: (keys: readonly string[]) => void = () => undefined;

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<LeasedConnection> {
    if (!this.reachable) throw new Error('nobody answers');
    const { promise: ended, resolve } = Promise.withResolvers<Error>();
    let failure: Error | undefined;
    const fail = (reason: string): void => resolve((failure ??= new Error(reason)));
    const ask = async (line: string, key: string): Promise<void> => {
      if (this.gated === undefined || this.gated === key) await this.gate;
      if (failure !== undefined) throw failure;
      if (signal.aborted) throw new Error('closed');
      this.log.push(line);
      const refused = this.failing.get(key);
      if (refused !== undefined) throw refused;
    };
    return (this.connection = {
      ...{ endpoint: 'https://etcd:2379', ended, fail },
      get failure() {
        return failure;
      },
      put: async (key, value) => {
        await ask(`put ${key}`, key);
        this.keys.set(key, { value, isOurs: true });
      },
      delete: async (key) => {
        await ask(`delete ${key}`, key);
        this.keys.delete(key);
      },
      list: async (prefix) => {
        await ask(`list ${prefix}`, prefix);
        return [...this.keys].flatMap(([key, { value, isOurs }]) =>
          key.startsWith(prefix) ? [{ key, valueHash: contentHash(value), isOurs }] : [],
        );
      },
      close: () => Promise.resolve(fail('closed')),
    });
  }

  /** The leases of these keys are gone. */
  lose(keys: readonly string[]): void {
    for (const key of keys) this.keys.delete(key);
    this.onLost(keys);
  }

  /** Writes in order, by the last part of their keys. */
  asked(): string[] {
    return this.log.splice(0).filter((line) => !line.startsWith('list'));
  }
}

const service = (name: string, ...addresses: readonly string[]): GlobalService => ({
  ...{ namespace: 'shop', name, labels: {}, selector: {}, frontends: [] },
  backends: addresses.map((address) => ({ address, ports: [] })),
});

let clock: FakeClock;
let store: FakeStore;
let services: Map<string, GlobalService>;
let slices: Map<string, EndpointSlice>;
let exporter: Exporter;
let term: AbortController;
let running: Promise<void>;
let states: number;
let known: PromiseWithResolvers<void>;

beforeEach(() => {
  clock = new FakeClock();
  store = new FakeStore();
  services = new Map([
    ['shop/a', service('a', '10.9.0.1')],
    ['shop/b', service('b')],
  ]);
  slices = new Map();
  states = 0;
  known = Promise.withResolvers();
  known.resolve();
  exporter = exporting();
});

function exporting(): Exporter {
  return new Exporter({
    own,
    known: known.promise,
    services: { entries: () => services.entries(), get: (key) => services.get(key) },
    slices: { entries: () => slices.entries(), get: (key) => slices.get(key) },
    open: (onLost) => Object.assign(store, { onLost }),
    onState: () => states++,
    clock,
    random: () => 1,
  });
}

function lead(): void {
  term = new AbortController();
  running = exporter.lead(term.signal);
}

async function set(name: string, value: GlobalService | undefined): Promise<void> {
  if (value === undefined) services.delete(`shop/${name}`);
  else services.set(`shop/${name}`, value);
  exporter.changed('services', [`shop/${name}`]);
  await clock.settle();
}

async function started(): Promise<void> {
  lead();
  await clock.settle();
  store.asked();
}

describe('a term', () => {
  test('begins with everything, canaries last', async () => {
    lead();
    await clock.settle();
    const asked = store.asked();
    const first = [HEARTBEAT, CONFIG, `${SERVICES}shop/a`, `${SERVICES}shop/b`].map((key) => `put ${key}`);
    expect(asked.slice(0, 4).sort()).toEqual([...first].sort());
    expect(asked.slice(4).sort()).toEqual(CANARIES.map((key) => `put ${key}`).sort());
    expect(store.keys.get(CONFIG)?.value).toBe(
      '{"id":7,"capabilities":{"syncedCanaries":true,"maxConnectedClusters":255,"endpointSlicesExportMode":"services-and-endpointslices"}}',
    );
    expect(JSON.parse(String(store.keys.get(`${SERVICES}shop/a`)?.value))).toMatchObject({
      cluster: 'home',
      clusterID: 7,
      backends: { '10.9.0.1': {} },
    });
    expect(store.keys.get(HEARTBEAT)?.value).toBe('2030-01-01T00:00:00.000Z');
    expect(exporter.status()).toEqual({
      endpoint: 'https://etcd:2379',
      ...{ isWhole: true, keys: 9, pending: 0, refused: new Map() },
    });
  });

  test('waits until the services are known: nothing is deleted because nobody has read them', async () => {
    const key = `${SERVICES}shop/a`;
    store.keys.set(key, { value: 'of another replica', isOurs: false });
    known = Promise.withResolvers();
    exporter = exporting();
    const all = services;
    services = new Map();
    lead();
    await clock.advance(120_000);
    expect(store.log).toEqual([]);
    services = all;
    known.resolve();
    await clock.settle();
    expect(store.asked()).toContain(`put ${key}`);
  });

  test('may end before the services are known', async () => {
    known = Promise.withResolvers();
    exporter = exporting();
    lead();
    await clock.settle();
    term.abort();
    await running;
    expect([store.log, clock.pending]).toEqual([[], 0]);
  });

  test('leaves everything there when it ends, and begins anew', async () => {
    await started();
    term.abort();
    await running;
    expect([store.asked(), store.keys.size, exporter.status(), clock.pending]).toEqual([[], 9, undefined, 0]);
    // Nobody leads.
    await set('c', service('c'));
    expect(store.asked()).toEqual([]);
    // Another replica wrote, by its own leases, and this one did not see what was deleted meanwhile.
    for (const [key, { value }] of store.keys) store.keys.set(key, { value, isOurs: false });
    services.delete('shop/b');
    lead();
    await clock.settle();
    const asked = store.asked();
    expect(asked).toHaveLength(10);
    expect(asked).toContain(`delete ${SERVICES}shop/b`);
    expect(asked).toContain(`put ${SERVICES}shop/c`);
  });

  test('has a heartbeat every minute', async () => {
    await started();
    await clock.advance(59_999);
    expect(store.asked()).toEqual([]);
    await clock.advance(1);
    expect(store.asked()).toEqual([`put ${HEARTBEAT}`]);
    await clock.advance(120_000);
    expect(store.asked()).toHaveLength(2);
    expect(store.keys.get(HEARTBEAT)?.value).toBe('2030-01-01T00:03:00.000Z');
  });
});

test('canaries wait for the slowest write', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  [store.gate, store.gated] = [promise, `${SERVICES}shop/a`];
  await started();
  expect(CANARIES.some((key) => store.keys.has(key))).toBe(false);
  expect(exporter.status()).toMatchObject({ isWhole: false, keys: 3, pending: 6 });
  resolve();
  await clock.settle();
  expect(CANARIES.every((key) => store.keys.has(key))).toBe(true);
});

test('a term that ends during a write says nothing of it', async () => {
  await started();
  const { promise, resolve } = Promise.withResolvers<void>();
  store.gate = promise;
  await set('a', service('a', '10.9.0.9'));
  const before = states;
  term.abort();
  resolve();
  await running;
  expect([states, clock.pending]).toEqual([before, 0]);
});

describe('a change', () => {
  test('of a slice writes that slice, and deletes it with its service', async () => {
    const set = async (...addresses: readonly string[]): Promise<void> => {
      const endpoints = addresses.map((address) => ({ addresses: [address], conditions: { ready: false } }));
      slices.set('shop/a-1', {
        ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', endpoints },
        metadata: { namespace: 'shop', name: 'a-1', labels: { 'kubernetes.io/service-name': 'a' } },
      });
      exporter.changed('endpointslices', ['shop/a-1']);
      await clock.settle();
    };
    await started();
    await set('10.9.0.1');
    await set('10.9.0.1');
    await set('10.9.0.2');
    const key = `${SLICES}shop/a-1`;
    expect(store.asked()).toEqual([`put ${key}`, `put ${key}`]);
    expect(decodeSlice('shop/a-1', store.keys.get(key)!.value as Uint8Array, own)).toMatchObject({
      value: { endpoints: [{ addresses: ['10.9.0.2'], conditions: { ready: false } }], ports: [] },
    });
    slices.clear();
    exporter.changed('endpointslices', ['shop/a-1']);
    await clock.settle();
    expect(store.asked()).toEqual([`delete ${key}`]);
  });

  test('writes its key, and nothing else', async () => {
    await started();
    await set('a', service('a', '10.9.0.1', '10.9.0.2'));
    await set('b', service('b'));
    expect(store.asked()).toEqual([`put ${SERVICES}shop/a`]);
    await set('b', undefined);
    await set('c', undefined);
    expect(store.asked()).toEqual([`delete ${SERVICES}shop/b`]);
    expect(store.keys.has(`${SERVICES}shop/b`)).toBe(false);
  });

  test('during a write is written after it, the newest only', async () => {
    await started();
    const { promise, resolve } = Promise.withResolvers<void>();
    store.gate = promise;
    for (const n of [1, 2, 3]) await set('a', service('a', `10.9.1.${n}`));
    store.gate = undefined;
    resolve();
    await clock.settle();
    expect(store.asked()).toEqual([`put ${SERVICES}shop/a`, `put ${SERVICES}shop/a`]);
    expect(store.keys.get(`${SERVICES}shop/a`)?.value).toContain('10.9.1.3');
  });

  test('that is taken back during a write leaves nothing behind', async () => {
    await started();
    const { promise, resolve } = Promise.withResolvers<void>();
    store.gate = promise;
    await set('c', service('c'));
    await set('c', undefined);
    store.gate = undefined;
    resolve();
    await clock.settle();
    expect(store.asked()).toEqual([`put ${SERVICES}shop/c`, `delete ${SERVICES}shop/c`]);
  });
});

describe('trouble', () => {
  test('of the store is waited for, and canaries with it', async () => {
    store.reachable = false;
    lead();
    await clock.settle();
    expect(exporter.status()).toMatchObject({ isWhole: false, failure: { error: { message: 'nobody answers' } } });
    await clock.advance(3_000);
    store.reachable = true;
    await clock.advance(60_000);
    expect(store.keys.size).toBe(9);
    expect(exporter.status()?.failure).toBeUndefined();
  });

  test('with a connection writes again only what is not there', async () => {
    await started();
    await set('a', service('a', '10.9.0.9'));
    store.asked();
    store.connection?.fail('broken');
    await set('b', undefined);
    expect(exporter.status()).toMatchObject({ failure: { error: { message: 'broken' } } });
    await clock.advance(1_000);
    expect(store.asked()).toEqual([`delete ${SERVICES}shop/b`]);
  });

  test('with a connection in the middle of a write does not lose it', async () => {
    await started();
    const { promise, resolve } = Promise.withResolvers<void>();
    store.gate = promise;
    await set('a', service('a', '10.9.0.9'));
    store.connection?.fail('broken');
    store.gate = undefined;
    resolve();
    await clock.advance(1_000);
    expect(store.keys.get(`${SERVICES}shop/a`)?.value).toContain('10.9.0.9');
    expect(exporter.status()?.refused.size).toBe(0);
  });

  test('with one key holds up nothing else, and it is tried again', async () => {
    const key = `${SERVICES}shop/a`;
    store.failing.set(key, new Error('request is too large'));
    await started();
    expect([...store.keys.keys()].sort()).toEqual([...CANARIES, HEARTBEAT, CONFIG, `${SERVICES}shop/b`].sort());
    expect(exporter.status()).toMatchObject({ isWhole: true, refused: new Map([[key, 'request is too large']]) });
    const before = states;
    await clock.advance(30_000);
    const tries = store.asked().filter((line) => line === `put ${key}`).length;
    expect(tries).toBeGreaterThan(2);
    expect(tries).toBeLessThan(8);
    expect(states).toBe(before);
    store.failing.clear();
    await clock.advance(60_000);
    expect([store.keys.has(key), exporter.status()?.refused.size]).toEqual([true, 0]);
  });

  test('with every key is told for the first few only', async () => {
    for (let i = 0; i < 100; i++) {
      services.set(`shop/s${i}`, service(`s${i}`));
      store.failing.set(`${SERVICES}shop/s${i}`, new Error('mvcc: database space exceeded'));
    }
    await started();
    expect([exporter.status()?.isWhole, exporter.status()?.refused.size]).toEqual([true, 100]);
    expect(states).toBeLessThan(10);
  });

  test('of a service that is too large to be written holds up nothing else, and ends with it', async () => {
    const ports = Array.from({ length: 1_000 }, (_, i) => ({ name: `p${i}`, port: i + 1, protocol: 'TCP' as const }));
    const backends = Array.from({ length: 41 }, (_, i) => ({ address: `10.9.0.${i}`, ports }));
    services.set('shop/a', { ...service('a'), backends });
    await started();
    expect([...store.keys.keys()].sort()).toEqual([...CANARIES, HEARTBEAT, CONFIG, `${SERVICES}shop/b`].sort());
    const why = 'has more than 40000 pairs of address and port';
    expect(exporter.status()).toMatchObject({ isWhole: true, refused: new Map([[`${SERVICES}shop/a`, why]]) });
    await set('a', service('a'));
    expect([store.keys.has(`${SERVICES}shop/a`), exporter.status()?.refused.size]).toEqual([true, 0]);
  });

  test('with one key ends when it is no longer wanted', async () => {
    store.failing.set(`${SERVICES}shop/a`, new Error('request is too large'));
    await started();
    store.failing.clear();
    await set('a', undefined);
    expect(exporter.status()?.refused.size).toBe(0);
  });

  test('with a lease writes its keys again, canaries last', async () => {
    await started();
    const lost = [CONFIG, `${SERVICES}shop/a`, CANARIES[1]!];
    store.lose(lost);
    await clock.settle();
    expect(store.asked()).toEqual(lost.map((key) => `put ${key}`));
    expect(exporter.status()).toMatchObject({ keys: 9, pending: 0 });
  });

  test('with a lease in the middle of a write writes that key again', async () => {
    await started();
    const { promise, resolve } = Promise.withResolvers<void>();
    store.gate = promise;
    await set('a', service('a', '10.9.0.9'));
    store.lose([`${SERVICES}shop/a`]);
    store.gate = undefined;
    resolve();
    await clock.settle();
    expect(store.asked()).toEqual([`put ${SERVICES}shop/a`, `put ${SERVICES}shop/a`]);
  });

  test('by others is set right within five minutes', async () => {
    await started();
    store.keys.delete(`${SERVICES}shop/a`);
    store.keys.set(`${SERVICES}shop/b`, { value: 'else', isOurs: false });
    store.keys.set(`${SERVICES}shop/x`, { value: '{}', isOurs: false });
    const [canary] = CANARIES;
    store.keys.delete(canary!);
    store.keys.delete(CONFIG);
    await clock.advance(300_000);
    expect(
      store
        .asked()
        .filter((line) => !line.endsWith(HEARTBEAT))
        .sort(),
    ).toEqual(
      [
        `delete ${SERVICES}shop/x`,
        ...[`${SERVICES}shop/a`, `${SERVICES}shop/b`, canary, CONFIG].map((key) => `put ${key}`),
      ].sort(),
    );
  });

  test('with listing does not keep keys from being written, and is said until it is over', async () => {
    store.failing.set(SERVICES, new Error('permission denied'));
    await started();
    expect(store.keys.size).toBe(9);
    expect(exporter.status()?.unlisted?.message).toBe('permission denied');
    store.failing.clear();
    await clock.advance(300_000);
    expect(exporter.status()?.unlisted).toBeUndefined();
  });
});

test('many services are written, eight at a time', async () => {
  services = new Map(Array.from({ length: 1_000 }, (_, i) => [`shop/s${i}`, service(`s${i}`)]));
  lead();
  while (exporter.status()?.isWhole !== true) await clock.settle();
  const asked = store.asked();
  expect(asked).toHaveLength(1_007);
  expect(asked.slice(-5).sort()).toEqual(CANARIES.map((key) => `put ${key}`).sort());
});
