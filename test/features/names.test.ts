import { Resolver } from 'node:dns/promises';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { startDnsServer } from '../../src/agent/dns/dns-server.ts';
import { hostsOfMesh } from '../../src/agent/dns/hosts.ts';
import { Names } from '../../src/agent/dns/names.ts';
import { Responder } from '../../src/agent/dns/responder.ts';
import { createAgentLog } from '../../src/agent/log.ts';
import { streamOfBytes } from '../../src/agent/xds/socket.ts';
import { dial } from '../../src/agent/xds/dial.ts';
import { LastConfig } from '../../src/agent/xds/last-config.ts';
import { ADS, Relay } from '../../src/agent/xds/relay.ts';
import { CDS } from './proxy.ts';
import { systemClock } from '../../src/base/clock.ts';
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

/** The agent of a proxy: what it relays to Envoy, the names that it keeps for itself, and a DNS server for them. */
async function agent(port: number) {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const changed = new Waiters();
  const sizes: number[] = [];
  const table = new Names({ namespace: 'shop', domain: 'cluster.local', search: '' });
  const log = createAgentLog({ level: 'error', format: 'json' }, () => {});
  const relay = new Relay({
    dial: () => dial({ address: `127.0.0.1:${port}`, token: () => undefined, headers: {} }),
    own: [
      hostsOfMesh({
        apply(changes) {
          table.apply(changes);
          sizes.push(table.size);
          changed.wake();
        },
      }),
    ],
    last: new LastConfig({ file: '/nonexistent/file', clock: systemClock, log, signal: end.signal }),
    clock: systemClock,
    random: Math.random,
    log,
    signal: end.signal,
  });
  const server = new Server();
  onTestFinished(() => server.forceShutdown());
  server.addService({ Delta: { ...streamOfBytes, path: ADS } }, { Delta: relay.serve.bind(relay) });
  const relayPort = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  /** Envoy, which connects again when it has to. */
  const connect = async () => {
    const envoy = new XdsClient(relayPort, true, () => '');
    onTestFinished(() => envoy.close());
    envoy.send({ typeUrl: CDS, node });
    return envoy.next(CDS);
  };
  const responder = new Responder({
    names: table,
    upstream: { ask: () => Promise.resolve(undefined) },
    random: Math.random,
  });
  const resolver = new Resolver();
  const dns = await startDnsServer({ addresses: ['127.0.0.1'], port: 0, responder, signal: end.signal });
  resolver.setServers([`127.0.0.1:${dns}`]);
  return { table, sizes, relay, resolver, connect, until: (assertion: () => void) => changed.until(assertion) };
}

test('an agent answers with the names of the mesh as they change, and keeps them without a control plane', async () => {
  const directory = await Directory.create();
  await directory.write('a.yaml', entry('a', '192.0.2.1'));
  const program = await directory.start();
  await program.logged('Ready');
  const { grpc } = program.serving.ports;
  const { table, sizes, relay, resolver, connect, until } = await agent(grpc!);
  const { typeUrl } = await connect();
  // Envoy gets nothing of what the agent has asked for.
  expect(typeUrl).toBe(CDS);
  await until(() => expect(table.size).toBe(1));
  expect(await resolver.resolve4('a.example.com')).toEqual(['192.0.2.1']);

  await directory.write('a.yaml', entry('a', '192.0.2.2'));
  await directory.write('b.yaml', entry('b', '192.0.2.3'));
  await until(() => expect(table.lookup('b.example.com')).toBeDefined());
  await until(() => expect([...table.lookup('a.example.com')!.v4]).toEqual([192, 0, 2, 2]));

  await program.stop();
  await expect.poll(() => relay.connected).toBe(false);
  expect(await resolver.resolve4('a.example.com')).toEqual(['192.0.2.2']);

  await directory.write('b.yaml', '');
  const again = await directory.start({ grpcAddress: `127.0.0.1:${grpc}` });
  await again.logged('Ready');
  await connect();
  await until(() => expect(table.lookup('b.example.com')).toBeUndefined());
  // It has never been without the others.
  expect(sizes).not.toContain(0);
  expect(table.size).toBe(1);
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
