import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ConnectedProxy } from '../../src/ads/types.ts';
import { kindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { Fleet, keyOf, sidecarOf, type Versions, versionsOf } from '../harness/fleet.ts';
import { TestMesh } from '../harness/mesh.ts';
import { traffic } from './object-pool.ts';
import { gateway, object, sidecar, virtualService } from './objects.ts';
import { runs } from '../../src/testing/runs.ts';

/**
 * Whom the rollout of an object waits for, compared with what proxies have with and without the object, computed from
 * scratch.
 */

const security = (kind: string) => (name: string, spec: object, namespace?: string) => ({
  ...object('security.istio.io/v1', kind, name, {}, namespace),
  spec,
});
const peers = security('PeerAuthentication');
const policy = security('AuthorizationPolicy');

/** Each in some variants. */
const pool: typeof traffic = [
  ...traffic,
  (v) => sidecar('own', { workloadSelector: { labels: { app: 'b' } }, egress: [{ hosts: [v === 0 ? './*' : '~/*'] }] }),
  (v) => peers('default', { mtls: { mode: ['STRICT', 'DISABLE', 'PERMISSIVE'][v] } }),
  (v) => peers('mesh', { mtls: { mode: ['STRICT', 'DISABLE', 'PERMISSIVE'][v] } }, 'istio-system'),
  (v) => policy('a', { selector: { matchLabels: { app: 'a' } }, action: ['ALLOW', 'DENY', 'AUDIT'][v], rules: [{}] }),
  (v) => policy('all', { rules: [{ to: [{ operation: { paths: [`/${v}`] } }] }] }),
  (v) =>
    gateway('way-in', {
      selector: { istio: 'ingress' },
      servers: [
        { port: { number: 8080, name: 'http', protocol: 'HTTP' }, hosts: [v === 0 ? '*' : `h${v}.example.com`] },
      ],
    }),
  (v) =>
    virtualService('outside', {
      hosts: [v === 0 ? 'h1.example.com' : `h${v}.example.com`],
      gateways: v === 1 ? ['way-in', 'mesh'] : ['way-in'],
      http: [{ route: [{ destination: { host: 'a' } }] }],
    }),
];
const CUSTOM = pool.flatMap((make, i) => (kindOf(make(0).apiVersion, make(0).kind)!.custom ? [i] : []));

const PROXIES: readonly ConnectedProxy[] = [
  sidecarOf('a-1 10.1.0.1', 'shop', { app: 'a', version: 'v0' }),
  sidecarOf('b-1 10.1.1.1', 'shop', { app: 'b', version: 'v0' }),
  sidecarOf('far-1 10.2.0.1', 'far', { app: 'far' }),
  sidecarOf('in-1 10.3.0.1', 'shop', { istio: 'ingress' }, 'router'),
];

interface Change {
  readonly which: number;
  /** Undefined: it is deleted. */
  readonly variant: number | undefined;
}

/** What proxies have, made from nothing but these objects. */
function fromScratch(objects: Iterable<KubernetesObject>, proxies: readonly ConnectedProxy[]): Map<string, Versions> {
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([...objects]);
  for (const proxy of proxies) mesh.connect(proxy);
  return new Map(proxies.map(({ stream }) => [stream, versionsOf(mesh.store, mesh.mesh, stream)]));
}

/** What has left may be kept for as long as it is used, and nobody waits for that; listeners go at once. */
function differs(before: Versions, after: Versions): 'no' | 'goes' | 'changes' {
  for (const [key, version] of after) if (before.get(key) !== version) return 'changes';
  const gone = [...before.keys()].filter((key) => !after.has(key));
  if (gone.some((key) => key.startsWith('lds '))) return 'changes';
  return gone.length > 0 ? 'goes' : 'no';
}

class History {
  readonly fleet = new Fleet();
  readonly #present = new Map<number, KubernetesObject>();
  #generation = 0;
  #streams = 0;

  constructor(first: readonly Change[]) {
    this.commit(first);
    PROXIES.forEach((proxy, i) => this.fleet.connect(proxy, i % 2 === 0));
    this.fleet.rest();
  }

  commit(changes: readonly Change[]): void {
    const writes = changes.map(({ which, variant }) => {
      const made = pool[which]!(variant ?? 0);
      if (variant === undefined) {
        this.#present.delete(which);
        return [made, undefined] as const;
      }
      const object = { ...made, metadata: { ...made.metadata, uid: String(which), generation: ++this.#generation } };
      this.#present.set(which, object);
      return [object, object] as const;
    });
    this.fleet.apply(...writes);
  }

  versions(): Map<string, Versions> {
    return new Map([...this.fleet.proxies.keys()].map((stream) => [stream, this.fleet.versions(stream)]));
  }

  waitingFor(which: number): string[] {
    return [...(this.fleet.progress.rollouts.get(keyOf(pool[which]!(0)))?.waiting() ?? [])].map(({ stream }) => stream);
  }

  /** Proxies are silent, and each has had its turn. */
  take(changes: readonly Change[]): void {
    const before = this.versions();
    const former = new Map(this.#present);
    this.commit(changes);
    this.fleet.serve();
    const after = this.versions();
    const custom = changes.filter(({ which }) => CUSTOM.includes(which));
    for (const change of custom) this.#compare(change, changes, former, before, after);
    for (const proxy of PROXIES) this.#compareNew(proxy, custom, former, changes.length === 1);
    this.fleet.rest();
    for (const { which, variant } of custom) {
      const about = pool[which]!(0);
      expect(this.waitingFor(which), `${about.kind} is forgotten`).toEqual([]);
      const { progress = { state: 'gone' } } = this.fleet.progress.get(keyOf(about)) ?? {};
      expect(progress.state, about.kind).toMatch(variant === undefined ? /gone/ : /acknowledged|concernsNobody/);
    }
  }

  #compare(
    { which }: Change,
    changes: readonly Change[],
    former: ReadonlyMap<number, KubernetesObject>,
    before: ReadonlyMap<string, Versions>,
    after: ReadonlyMap<string, Versions>,
  ): void {
    let without = before;
    if (changes.length > 1) {
      const others = new Map(this.#present);
      const was = former.get(which);
      if (was === undefined) others.delete(which);
      else others.set(which, was);
      const all = fromScratch(others.values(), PROXIES);
      without = new Map([...after.keys()].map((stream) => [stream, all.get(stream) ?? after.get(stream)!]));
    }
    const waiting = this.waitingFor(which);
    const { kind, metadata } = pool[which]!(0);
    for (const [stream, now] of after) {
      const about = `${kind} ${metadata.name} concerns ${stream}`;
      const isWaiting = waiting.includes(stream);
      if (differs(without.get(stream)!, now) === 'changes') expect(isWaiting, about).toBe(true);
      if (differs(before.get(stream)!, now) === 'no') expect(isWaiting, about).toBe(false);
    }
  }

  /**
   * Those that come while it is under way are waited for if it makes a difference to what they get. Others may be, in
   * vain: resources name more objects than matter, and a proxy may be back with what there was before.
   */
  #compareNew(
    proxy: ConnectedProxy,
    changes: readonly Change[],
    former: ReadonlyMap<number, KubernetesObject>,
    isAlone: boolean,
  ): void {
    const stream = `${proxy.stream}-${++this.#streams}`;
    const unfinished = changes.filter(
      ({ which, variant }) => variant !== undefined && this.waitingFor(which).length > 0,
    );
    if (unfinished.length === 0) return;
    const connected = this.fleet.connect({ ...proxy, stream }, this.#streams % 2 === 0);
    connected.serve();
    const now = this.fleet.versions(stream);
    for (const { which } of unfinished) {
      const others = new Map(this.#present);
      others.delete(which);
      const made = (objects: Iterable<KubernetesObject>): Versions => fromScratch(objects, [proxy]).get(proxy.stream)!;
      const without = made(others.values());
      const was = former.get(which);
      const before = was === undefined ? without : made([...others.values(), was]);
      const { kind, metadata } = pool[which]!(0);
      const about = `${kind} ${metadata.name} concerns ${proxy.stream} that comes while it is under way`;
      // What is gone, it has no more, or has from elsewhere.
      const isNew = (former: Versions): boolean => [...now].some(([key, version]) => former.get(key) !== version);
      // What comes to be in a commit for more than one reason is not told apart.
      if (isAlone && isNew(without) && isNew(before)) expect.soft(this.waitingFor(which), about).toContain(stream);
    }
    this.fleet.disconnect(stream);
  }
}

const variant = fc.integer({ min: 0, max: 2 });
const change = (which: fc.Arbitrary<number>): fc.Arbitrary<Change> =>
  fc.record({
    which,
    variant: fc.oneof({ weight: 4, arbitrary: variant }, { weight: 1, arbitrary: fc.constant(undefined) }),
  });
const any = fc.integer({ min: 0, max: pool.length - 1 });
const single = change(any).map((each) => [each]);
const several = fc.uniqueArray(change(any), { minLength: 2, maxLength: 3, selector: ({ which }) => which });
const first = fc.uniqueArray(fc.record({ which: any, variant }), { minLength: 4, selector: ({ which }) => which });

test.each([
  ['one at a time', single],
  ['several at a time', fc.oneof(single, several)],
])('objects that change %s concern the proxies for which that makes a difference', (_, commits) => {
  fc.assert(
    fc.property(first, fc.array(commits, { minLength: 1, maxLength: 8 }), (objects, history) => {
      const run = new History(objects);
      for (const changes of history) run.take(changes);
    }),
    { numRuns: runs(15) },
  );
});
