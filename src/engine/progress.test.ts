import { expect, test } from 'vitest';
import {
  destinationRule,
  object,
  pod,
  service,
  serviceEntry,
  sidecar,
  slice,
  target,
} from '../../test/features/objects.ts';
import { Fleet, keyOf, sidecarOf } from '../../test/harness/fleet.ts';
import { writeOf } from '../../test/harness/mesh.ts';
import { Concern } from '../ads/rollouts/rollout.ts';
import type { KubernetesObject } from '../api/object.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ProgressOfObjects } from './progress.ts';
import { Replicas } from './replicas.ts';

const [one, other] = ['a-1 10.1.0.1', 'b-1 10.1.0.2'].map((id) => sidecarOf(id, 'shop', { app: id.slice(0, 1) })) as [
  ReturnType<typeof sidecarOf>,
  ReturnType<typeof sidecarOf>,
];
const endpoints = (...addresses: readonly string[]): KubernetesObject =>
  slice('a', [target('a-1', '10.1.0.1'), ...addresses]);
const mesh = [service('a', '10.96.0.1'), pod('a-1', '10.1.0.1', { app: 'a' }), endpoints()];

let generation = 0;
const next = (made: KubernetesObject): KubernetesObject => {
  const { metadata } = made;
  return { ...made, metadata: { ...metadata, uid: metadata.name, generation: ++generation } };
};
const rule = (maxConnections: number): KubernetesObject =>
  next(
    destinationRule('a', {
      host: 'a',
      trafficPolicy: { connectionPool: { tcp: { maxConnections } } },
      subsets: [{ name: 'all', labels: { app: 'a' } }],
    }),
  );

/** Everything is acknowledged. */
function fleetWith(...objects: readonly KubernetesObject[]): Fleet {
  const fleet = new Fleet();
  fleet.set(...mesh, ...objects);
  for (const proxy of [one, other]) fleet.connect(proxy, true);
  fleet.rest();
  return fleet;
}

const waitingFor = (fleet: Fleet, object: KubernetesObject): string[] =>
  [...(fleet.progress.rollouts.get(keyOf(object))?.waiting() ?? [])].map(({ stream }) => stream);

test('an object under way does not wait for endpoints that come and go', () => {
  const fleet = fleetWith(rule(1));
  const changed = rule(2);
  fleet.set(changed);
  fleet.serve();
  expect(waitingFor(fleet, changed)).toEqual([one.stream, other.stream]);
  fleet.proxies.get(one.stream)!.speak();
  for (const address of ['10.1.0.7', '10.1.0.8', '10.1.0.9']) {
    fleet.set(endpoints(address));
    fleet.serve();
    expect(waitingFor(fleet, changed)).toEqual([other.stream]);
    fleet.proxies.get(one.stream)!.speak();
  }
  fleet.rest();
  expect(fleet.progress.get(keyOf(changed))?.progress).toEqual({ state: 'acknowledged', proxies: 2 });
});

test.each(['rejectedGenerations', 'waiting'] as const)(
  'an object is under way while it is on its way back, however long that takes: %s',
  (input) => {
    const fleet = fleetWith(rule(1));
    const changed = rule(2);
    const key = keyOf(changed);
    const { uid = '', generation = 0 } = changed.metadata;
    const { rejectedGenerations, waiting } = fleet.mesh.inputs;
    const held = { generation, proxies: 1, rejections: [], isSuspect: true as const };
    const writes = {
      rejectedGenerations: (isHeld: boolean) =>
        rejectedGenerations.write(key, isHeld ? { uid, generations: [held] } : undefined),
      waiting: (isHeld: boolean) => waiting.write(key, isHeld ? { waits: '' } : undefined),
    };
    const write = writes[input];
    fleet.commit([writeOf(fleet.mesh, changed, changed), write(true)]);
    fleet.rest();
    const progress = () => fleet.progress.get(key)?.progress.state;
    expect(progress()).toBe('underway');
    const draft = fleet.graph.draft([write(false)]);
    fleet.rest();
    expect(progress()).toBe('underway');
    draft.publish();
    expect(waitingFor(fleet, changed)).toEqual([one.stream, other.stream]);
    fleet.rest();
    expect(fleet.progress.get(key)?.progress).toEqual({ state: 'acknowledged', proxies: 2 });
  },
);

test('what proxies have said of an earlier generation changes nothing about the newest one', () => {
  const fleet = fleetWith(rule(1));
  const changed = rule(2);
  fleet.set(changed);
  fleet.serve();
  const { uid = '', generation = 0 } = changed.metadata;
  const rollout = fleet.progress.rollouts.get(keyOf(changed))!;
  const concerns = [...rollout.concerns];
  const reject = (of: number) => {
    const generations = [{ generation: of, proxies: 1, rejections: [] }];
    fleet.commit([fleet.mesh.inputs.rejectedGenerations.write(keyOf(changed), { uid, generations })]);
    return concerns.map((each) => rollout.isAbout(each));
  };
  expect(reject(generation - 1)).toEqual(concerns.map(() => true));
  expect(reject(generation)).toEqual(concerns.map(() => false));
});

test('a replica says that it has seen an object no sooner than proxies are told of it', () => {
  const fleet = fleetWith(rule(1));
  const { versions } = fleet.mesh.inputs;
  const replicas = new Replicas({
    progress: fleet.progress,
    servingSince: () => '2030-01-01T00:00:00Z',
    others: () => [],
    isRunning: () => false,
    isConfirmed: () => false,
    rejected: () => {},
  });
  fleet.commit([versions.write('DestinationRule', '1')]);
  const changed = rule(2);
  const says = () => {
    const { seen, objects } = replicas.own()!;
    return [seen, objects.filter(({ key }) => key === keyOf(changed)).map(({ generation }) => generation)];
  };
  const before = says();
  const draft = fleet.graph.draft([writeOf(fleet.mesh, changed, changed), versions.write('DestinationRule', '2')]);
  expect(says()).toEqual(before);
  draft.publish();
  expect(says()).toEqual([{ DestinationRule: '2' }, [changed.metadata.generation]]);
});

test('an object that waited for a service to exist is waited for when it does', () => {
  const fleet = fleetWith();
  const early = next(destinationRule('late', { host: 'late.example.com', trafficPolicy: { tls: { mode: 'SIMPLE' } } }));
  fleet.set(early);
  fleet.rest();
  expect(fleet.progress.get(keyOf(early))?.progress).toEqual({ state: 'concernsNobody' });
  // Proxies have no names of it to ask for.
  const ports = [{ number: 9_000, name: 'tcp', protocol: 'TCP' }];
  fleet.set(next(serviceEntry('late', { hosts: ['late.example.com'], ports, resolution: 'DNS' })));
  fleet.serve();
  expect(waitingFor(fleet, early)).toEqual([one.stream, other.stream]);
});

test('an object that concerns nobody is looked at again when somebody connects', () => {
  const fleet = new Fleet();
  const object = rule(1);
  fleet.set(...mesh, object);
  fleet.rest();
  const key = keyOf(object);
  expect(fleet.progress.get(key)?.progress).toEqual({ state: 'concernsNobody' });
  const told: unknown[] = [];
  fleet.progress.onChange((changed) => {
    if (changed.has(key)) told.push(fleet.progress.get(key)?.progress);
  });
  fleet.connect(one, true).serve();
  fleet.pass(50);
  expect(told).toMatchObject([{ state: 'underway', waiting: [{ stream: one.stream }] }]);
  fleet.rest();
  expect(told.at(-1)).toEqual({ state: 'acknowledged', proxies: 1 });
});

test('a condition that says that all have acknowledged an object counts where it concerns nobody', () => {
  const fleet = new Fleet();
  fleet.progress.recall(() => true);
  const object = rule(1);
  fleet.set(...mesh, object);
  // It is yet to be known whom it concerns.
  fleet.progress.confirm(keyOf(object));
  expect(fleet.progress.get(keyOf(object))).toMatchObject({ isAcknowledged: false });
  fleet.rest();
  expect(fleet.progress.get(keyOf(object))).toMatchObject({ isAcknowledged: true, isRecalled: true });
});

test('what proxies acknowledge after the condition said so is not reported', () => {
  const fleet = fleetWith();
  fleet.progress.recall(() => true);
  const object = rule(1);
  fleet.set(object);
  fleet.rest();
  expect(fleet.progress.get(keyOf(object))).toMatchObject({ isAcknowledged: true, isRecalled: false });
  expect([...fleet.progress.unconfirmed()]).toEqual([]);
});

test('an only proxy that leaves without an answer has not acknowledged it', () => {
  const fleet = new Fleet();
  fleet.set(...mesh);
  fleet.connect(one, true);
  fleet.rest();
  const object = rule(1);
  fleet.set(object);
  fleet.serve();
  fleet.disconnect(one.stream);
  fleet.rest();
  expect(fleet.progress.get(keyOf(object))?.progress).toEqual({ state: 'concernsNobody' });
});

test('what changes together with the class of a proxy concerns the proxy', () => {
  const fleet = fleetWith();
  const own = next(sidecar('own', { workloadSelector: { labels: { app: 'a' } }, egress: [{ hosts: ['~/*'] }] }));
  const changed = rule(3);
  fleet.set(own, changed);
  expect(waitingFor(fleet, changed)).toContain(one.stream);
  fleet.serve();
  expect(waitingFor(fleet, own)).toEqual([one.stream]);
  expect(waitingFor(fleet, changed)).toContain(other.stream);
});

test('a PeerAuthentication is not acknowledged while clients or servers still go by what it was', () => {
  const peers = (mode: string): KubernetesObject =>
    next(object('security.istio.io/v1', 'PeerAuthentication', 'default', { spec: { mtls: { mode } } }));
  const [before, after] = [peers('STRICT'), peers('DISABLE')];
  const fleet = fleetWith(before);
  const { formerPeersOfClients: clients, formerPeersOfServers: servers } = fleet.mesh.inputs;
  const change = writeOf(fleet.mesh, after, after);
  const state = (): unknown => {
    fleet.rest();
    return fleet.progress.get(keyOf(after))?.progress.state;
  };
  fleet.commit([change, ...[clients, servers].map((former) => former.write(change.key, { object: before }))]);
  expect(state()).toBe('underway');
  fleet.commit([clients.write(change.key, undefined)]);
  expect(state()).toBe('underway');
  fleet.commit([servers.write(change.key, undefined)]);
  expect(state()).toBe('acknowledged');
});

test('of deleted objects that a silent proxy holds, only so many are followed', () => {
  const fleet = fleetWith();
  const names = Array.from({ length: 5_000 }, (_, i) => `s${i}`);
  const objects = names.map((name) => next(sidecar(name, { egress: [{ hosts: ['*/*'] }] }, `n-${name}`)));
  const held = rule(1);
  fleet.set(held);
  fleet.rest();
  fleet.delete(held);
  fleet.serve();
  expect(waitingFor(fleet, held)).toHaveLength(2);
  fleet.set(...objects);
  fleet.delete(...objects);
  expect([...fleet.progress.unfinished()].filter(({ isDeleted }) => isDeleted)).toHaveLength(4_096);
  expect(fleet.progress.unfollowed).toBe(905);
  expect(fleet.progress.rollouts.get(keyOf(held))).toBeUndefined();
});

test('observers are told once of all objects, however many clients reject them, when all of the answer is known', async () => {
  const clock = new FakeClock();
  const progress = new ProgressOfObjects({ inputs: new Fleet().mesh.inputs, clock, isInForce: () => true });
  const told: (readonly string[])[] = [];
  progress.onChange((keys) => void told.push([...keys]));
  const rollouts = ['object', 'other'].map((key) => progress.rollouts.begin(key));
  const concern = new Concern('cds', new Map([['a', rollouts]]));
  const rejected = { typeUrl: 'cds', name: 'a', version: 'v', message: 'no', origins: new Set<string>() };
  for (const stream of ['1', '2', '3']) {
    const client = { stream, nodeId: stream, build: '', tenant: '' };
    concern.begin(client);
    concern.reject(client, new Map([['a', rejected]]));
  }
  expect(told).toEqual([]);
  await clock.advance(50);
  expect(told).toEqual([['object', 'other']]);
});
