import { Resolver } from 'node:dns/promises';
import { credentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { startDnsServer } from '../../src/agent/dns/dns-server.ts';
import { followNames, type NameStreamState } from '../../src/agent/dns/name-stream.ts';
import { Names } from '../../src/agent/dns/names.ts';
import { Responder } from '../../src/agent/dns/responder.ts';
import { systemClock } from '../../src/clock.ts';
import { NAME_TABLE } from '../../src/model/named-host.ts';
import { readNameTable } from '../harness/names.ts';
import { Directory } from './sources.ts';
import { Waiters } from './waiters.ts';
import { XdsClient } from '../conformance/xds-client.ts';

const entry = (name: string, address: string) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec: {hosts: [${name}.example.com], addresses: [${address}], resolution: STATIC, ports: [{name: tcp, number: 9000, protocol: TCP}]}
`;

const node = {
  id: 'sidecar~10.0.0.1~client.shop~shop.svc.cluster.local',
  cluster: 'client.shop',
  metadata: { NAMESPACE: 'shop', DNS_CAPTURE: 'true', LABELS: { app: 'client' }, list: [1, true, null] },
};

/** The agent's part of a proxy: names from the program, and a DNS server for them. */
async function agent(port: number) {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const changed = new Waiters();
  const states: NameStreamState[] = [];
  const table = new Names({ namespace: 'shop', domain: 'cluster.local', search: '' });
  const following = followNames({
    address: `127.0.0.1:${port}`,
    credentials: () => Promise.resolve(credentials.createInsecure()),
    node,
    names: {
      apply(changes) {
        table.apply(changes);
        changed.wake();
      },
    },
    // Impatient.
    clock: { ...systemClock, after: (ms, fn) => systemClock.after(ms / 100, fn) },
    random: Math.random,
    changed: (state) => {
      states.push(state);
      changed.wake();
    },
    signal: end.signal,
  });
  const responder = new Responder({
    names: table,
    upstream: { ask: () => Promise.resolve(undefined) },
    forwardedAlways: [],
    random: Math.random,
  });
  const resolver = new Resolver();
  const dns = await startDnsServer({ addresses: ['127.0.0.1'], port: 0, responder, signal: end.signal });
  resolver.setServers([`127.0.0.1:${dns}`]);
  return { table, resolver, states, until: (assertion: () => void) => changed.until(assertion), following, end };
}

test('an agent answers with the names of the mesh as they change, keeps them without a control plane, and is no proxy', async () => {
  const directory = await Directory.create();
  await directory.write('a.yaml', entry('a', '192.0.2.1'));
  const program = await directory.start();
  await program.logged('Ready');
  const { grpc } = program.serving.ports;
  const { table, resolver, states, until, following, end } = await agent(grpc!);
  await until(() => expect(table.size).toBe(1));
  expect(await resolver.resolve4('a.example.com')).toEqual(['192.0.2.1']);

  await directory.write('a.yaml', entry('a', '192.0.2.2'));
  await directory.write('b.yaml', entry('b', '192.0.2.3'));
  await until(() => expect(table.lookup('b.example.com')).toBeDefined());
  await until(() => expect([...table.lookup('a.example.com')!.v4]).toEqual([192, 0, 2, 2]));

  const { ads } = program.serving.engine;
  expect(ads.streams()).toEqual([]);
  expect(ads.counts()).toMatchObject({ streams: 0, agentStreams: 1 });

  await program.stop();
  await until(() => expect(states.at(-1)).toMatchObject({ isConnected: false }));
  expect(await resolver.resolve4('a.example.com')).toEqual(['192.0.2.2']);

  await directory.write('b.yaml', '');
  const again = await directory.start({ grpcAddress: `127.0.0.1:${grpc}` });
  await again.logged('Ready');
  await until(() => expect(table.lookup('b.example.com')).toBeUndefined());
  expect(states[0]).toEqual({ isConnected: true });
  expect(states.at(-1)).toEqual({ isConnected: true });
  end.abort();
  await following;
});

test.each([
  ['delta', true],
  ['state of the world', false],
])("Istio's agents get the whole table on the stream of their proxy: %s", async (_, delta) => {
  const directory = await Directory.create();
  await directory.write('a.yaml', entry('a', '192.0.2.1'));
  const program = await directory.start();
  const proxy = await program.connect(delta);
  proxy.close();
  const client = new XdsClient(program.serving.ports.grpc!, delta, () => '');
  onTestFinished(() => client.close());
  client.send({ typeUrl: NAME_TABLE, node });
  const first = await client.next(NAME_TABLE);
  expect([...first.resources.values()].map(readNameTable)).toEqual([
    { 'a.example.com': { ips: ['192.0.2.1'], registry: 'External' } },
  ]);
  client.send({ typeUrl: NAME_TABLE, nonce: first.nonce, version: first.version });
  await directory.write('a.yaml', entry('a', '192.0.2.2'));
  const second = await client.next(NAME_TABLE);
  expect([...second.resources.values()].map(readNameTable)).toEqual([
    { 'a.example.com': { ips: ['192.0.2.2'], registry: 'External' } },
  ]);
});
