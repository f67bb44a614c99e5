import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EndpointSlice, Pod } from '../api/core.ts';
import type { ObjectSink } from '../api/source.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { BackendPods } from './backend-pods.ts';
import { PeerIdentities } from './peer-identities.ts';

const cluster = { name: 'east', id: 1, limit: 255 } as const;
const addresses = ['10.0.0.1', '10.0.0.2', '10.0.0.3', 'fd00::1'] as const;
const address = fc.constantFrom(...addresses);
const FIRST = 1 << 16;

const step = fc.oneof(
  fc.record({ do: fc.constant('slice' as const), name: fc.constantFrom('s', 't'), addresses: fc.uniqueArray(address) }),
  fc.record({ do: fc.constant('slices' as const), addresses: fc.uniqueArray(address) }),
  fc.record({
    ...{ do: fc.constant('ip' as const), address, identity: fc.integer({ min: 0, max: 2 }) },
    pod: fc.constantFrom('', 'a', 'b'),
  }),
  fc.record({ do: fc.constant('no ip' as const), address }),
  fc.record({ do: fc.constant('ips' as const), addresses: fc.uniqueArray(address) }),
  fc.record({
    do: fc.constant('identity' as const),
    id: fc.integer({ min: 0, max: 2 }),
    app: fc.constantFrom('x', 'y'),
  }),
  fc.record({ do: fc.constant('no identity' as const), id: fc.integer({ min: 0, max: 2 }) }),
);

test('whatever comes in whatever order, those Pods are delivered that have the address of a back end', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const delivered = new Map<string, Pod>();
      const sink: ObjectSink = {
        replace(_, objects) {
          delivered.clear();
          for (const object of objects) this.upsert('Pod', object);
        },
        upsert: (_, object) => void delivered.set(object.metadata.name, object as Pod),
        delete: (_, __, name) => expect(delivered.delete(name)).toBe(true),
      };
      const identities: PeerIdentities = new PeerIdentities({
        clock: new FakeClock(),
        onRange: (range) => pods.changeAddress(range),
        onIdentity: (id) => pods.changeIdentity(id),
        onReplaced: () => pods.replaceAll(),
      });
      const pods = new BackendPods({ sink, identityAt: (each) => identities.identityAt(each) });
      const at = { prefix: '', cluster };
      const ips = identities.readIps(at);
      const labels = identities.readIdentities(at);
      // What there is to deliver.
      const slices = new Map<string, EndpointSlice>();
      const owners = new Map<string, { readonly pod: string; readonly identity: number }>();
      const apps = new Map<number, string>();

      const ipOf = (key: string) => {
        const { pod, identity } = owners.get(key)!;
        const value = { IP: key, ID: FIRST + identity, K8sNamespace: 'shop', K8sPodName: pod, HostIP: '192.168.0.1' };
        return ips.read(entry(key, JSON.stringify(value)));
      };
      const take = (each: (typeof steps)[number]): void => {
        switch (each.do) {
          case 'slice': {
            const before = slices.get(each.name);
            const now = sliceOf(each.addresses);
            slices.set(each.name, now);
            return pods.changeBackends(before === undefined ? [] : [before], [now]);
          }
          case 'slices':
            slices.clear();
            slices.set('s', sliceOf(each.addresses));
            return pods.replaceBackends([...slices.values()]);
          case 'ip':
            owners.set(each.address, each);
            return ips.upsert(each.address, ipOf(each.address));
          case 'no ip':
            owners.delete(each.address);
            return ips.delete(each.address);
          case 'ips':
            for (const key of owners.keys()) if (!each.addresses.includes(key as never)) owners.delete(key);
            return void ips.replace(new Map([...owners.keys()].map((key) => [key, ipOf(key)])), new Set());
          case 'identity': {
            apps.set(each.id, each.app);
            const key = String(FIRST + each.id);
            const value = `k8s:app=${each.app};k8s:io.cilium.k8s.policy.cluster=east;`;
            return labels.upsert(key, labels.read(entry(key, value)));
          }
          case 'no identity':
            apps.delete(each.id);
            return labels.delete(String(FIRST + each.id));
        }
      };
      for (const each of steps) {
        take(each);
        expect(Object.fromEntries([...delivered].map(([name, pod]) => [name, seen(pod)]))).toEqual(expected());
      }

      function expected(): object {
        const used = new Set(
          [...slices.values()].flatMap(({ endpoints }) => endpoints!.flatMap((one) => one.addresses)),
        );
        const found: Record<string, { addresses: string[]; app: string | undefined }> = {};
        for (const key of [...used].sort()) {
          const { pod, identity } = owners.get(key) ?? { pod: '', identity: 0 };
          if (pod === '') continue;
          found[pod] ??= { addresses: [], app: apps.get(identity) };
          found[pod].addresses.push(key);
        }
        return found;
      }
    }),
  );
});

function seen({ metadata, spec, status }: Pod): object {
  expect(spec?.nodeName).toBe('192.168.0.1');
  return { addresses: status?.podIPs?.map(({ ip }) => ip), app: metadata.labels?.['app'] };
}

function sliceOf(of: readonly string[]): EndpointSlice {
  const metadata = { namespace: 'shop', name: 's' };
  return {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType: 'IPv4', ports: [] },
    endpoints: of.map((each) => ({ addresses: [each] })),
  };
}

const entry = (key: string, value: string) => ({
  key,
  value: Buffer.from(value),
  modRevision: 1n,
  version: 1n,
  lease: 0n,
});
