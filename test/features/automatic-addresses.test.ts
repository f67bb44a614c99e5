import { isObject } from '../../src/api/json.ts';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { conditions } from './conditions.ts';
import { serviceEntry } from './objects.ts';
import { Cluster, Directory } from './sources.ts';

const ports = [{ number: 9000, name: 'tcp', protocol: 'TCP' }];
const entry = (name: string, spec: object = {}) =>
  serviceEntry(name, {
    hosts: [`${name}.example.com`],
    ports,
    resolution: 'STATIC',
    endpoints: [{ address: '192.0.2.9' }],
    ...spec,
  });

type Addresses = readonly { readonly value: string; readonly host: string }[];

function statusOf(cluster: Cluster, object: KubernetesObject): Readonly<Record<string, unknown>> {
  const { status } = cluster.object(object);
  return isObject(status) ? status : {};
}

const addressesOf = (cluster: Cluster, object: KubernetesObject) =>
  (statusOf(cluster, object)['addresses'] ?? []) as Addresses;

const both = (host: string) => [
  { host, value: expect.stringMatching(/^240\.240\.\d+\.\d+$/) as string },
  { host, value: expect.stringMatching(/^2001:2::/) as string },
];

test('entries without addresses get some in their status, and keep them when the server starts again', async () => {
  const cluster = await Cluster.create();
  const [a, b, fixed] = [entry('a'), entry('b'), entry('fixed', { addresses: ['192.0.2.1'] })];
  const other = { conditions: [{ type: 'Other', status: 'True' }], validationMessages: [{ level: 'INFO' }] };
  await cluster.apply({ ...a, status: other } as KubernetesObject, b, fixed);
  const program = await cluster.start();
  await cluster.changed(() => {
    expect(addressesOf(cluster, a)).toEqual(both('a.example.com'));
    expect(addressesOf(cluster, b)).toEqual(both('b.example.com'));
    expect(conditions(cluster, fixed)).toMatchObject({ Programmed: {} });
  });
  expect(addressesOf(cluster, fixed)).toEqual([]);
  expect(statusOf(cluster, a)).toMatchObject({ validationMessages: [{ level: 'INFO' }] });
  expect(conditions(cluster, a)).toMatchObject({ Other: { status: 'True' }, Accepted: { status: 'True' } });
  const before = addressesOf(cluster, a);
  await program.stop();

  const c = entry('c');
  await cluster.apply(c);
  await cluster.start({}, 'two');
  await cluster.changed(() => expect(addressesOf(cluster, c)).toEqual(both('c.example.com')));
  expect(addressesOf(cluster, a)).toEqual(before);
});

test('proxies that capture DNS use the addresses, others do not', async () => {
  const cluster = await Cluster.create();
  const a = entry('a');
  await cluster.apply(a);
  const program = await cluster.start();
  await cluster.changed(() => expect(addressesOf(cluster, a)).toHaveLength(2));
  const [v4] = addressesOf(cluster, a);
  await program.connect(true, { texts: { DNS_CAPTURE: 'true' } }, (proxy) =>
    expect(proxy.listeners()).toContain(`${v4!.value}_9000`),
  );
  const plain = await program.connect(true);
  expect(plain.listeners()).toContain('0.0.0.0_9000');
});

test('of two entries with the same address, the older keeps it; one that opts out has none', async () => {
  const cluster = await Cluster.create();
  const aged = (object: KubernetesObject, creationTimestamp: string, address: string) =>
    ({
      ...object,
      metadata: { ...object.metadata, creationTimestamp },
      status: { addresses: [{ value: address, host: `${object.metadata.name}.example.com` }] },
    }) as KubernetesObject;
  const old = aged(entry('old'), '2026-01-01T00:00:00Z', '240.240.7.7');
  const young = aged(entry('young'), '2026-02-01T00:00:00Z', '240.240.7.7');
  const out = aged(entry('out'), '2026-02-01T00:00:00Z', '240.240.8.8');
  await cluster.apply(old, young, {
    ...out,
    metadata: { ...out.metadata, labels: { 'networking.istio.io/enable-autoallocate-ip': 'false' } },
  });
  await cluster.start();
  await cluster.changed(() => {
    expect(addressesOf(cluster, young)).toEqual(both('young.example.com'));
    expect(addressesOf(cluster, young)[0]!.value).not.toBe('240.240.7.7');
    expect(addressesOf(cluster, old)).toHaveLength(2);
    expect(addressesOf(cluster, out)).toEqual([]);
  });
  expect(addressesOf(cluster, old)[0]!.value).toBe('240.240.7.7');
});

test('an address that somebody writes is taken from whoever was given it', async () => {
  const cluster = await Cluster.create();
  const a = entry('a');
  await cluster.apply(a);
  await cluster.start();
  await cluster.changed(() => {
    expect(addressesOf(cluster, a)).toHaveLength(2);
    expect(conditions(cluster, a)).toHaveProperty('Programmed');
  });
  const [taken] = addressesOf(cluster, a);
  await cluster.apply(entry('b', { addresses: [taken!.value] }));
  await cluster.changed(() => expect(addressesOf(cluster, a)[0]!.value).not.toBe(taken!.value));
  expect(addressesOf(cluster, a)).toEqual(both('a.example.com'));
});

test('in files, the same entries have the same addresses wherever they are read', async () => {
  const listeners = async (): Promise<readonly string[]> => {
    const directory = await Directory.create();
    await directory.apply(entry('a'), entry('b'));
    const program = await directory.start();
    const proxy = await program.connect(true, { texts: { DNS_CAPTURE: 'true' } }, (each) =>
      expect(each.listeners().filter((name) => name.startsWith('240.240.'))).toHaveLength(2),
    );
    return proxy.listeners();
  };
  expect(await listeners()).toEqual(await listeners());
});
