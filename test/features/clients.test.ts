import { connect } from 'node:http2';
import { status as Status } from '@grpc/grpc-js';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { type Request, XdsClient } from '../conformance/xds-client.ts';
import { framed } from '../harness/byte-streams.ts';
import { testProtos } from '../harness/mesh.ts';
import { meshConfig } from './objects.ts';
import type { Program } from './program.ts';
import { CDS, type Proxy } from './proxy.ts';
import { clusterOf, REVIEWS, reviews, rule, split, splitRoutes } from './shop.ts';
import { Directory } from './sources.ts';

describe.each([
  ['delta', true],
  ['state of the world', false],
])('a client that is broken, over %s', (_, delta) => {
  let directory: Directory;
  let program: Program;
  let other: Proxy;
  const clients: XdsClient[] = [];

  async function open(): Promise<XdsClient> {
    directory = await Directory.create();
    await directory.apply(...reviews, rule, split(80, 20));
    program = await directory.start();
    other = await program.connect(delta);
    const client = new XdsClient(program.serving.ports.grpc!, delta);
    clients.push(client);
    return client;
  }

  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });

  /** Somebody else is served as ever. */
  async function unnoticed(): Promise<void> {
    expect(other.takeChanges()).toEqual({});
    await directory.apply(split(50, 50));
    const sent = await program.sent(other, (p) => expect(p.routes('80')[REVIEWS]).toEqual(splitRoutes(50, 50)));
    expect(sent).toEqual({ rds: ['~80'] });
  }

  test.each([
    ['garbage', Buffer.from('this is not protobuf')],
    ['half a message', Buffer.from([0x12, 0x7f, 0x01])],
    ['a huge message', Buffer.alloc(17 << 20, 0x61)],
  ])('and sends %s has its stream ended', async (what, bytes) => {
    const client = await open();
    client.sendBytes(bytes);
    const code = what === 'a huge message' ? Status.RESOURCE_EXHAUSTED : Status.INVALID_ARGUMENT;
    expect(await client.closed).toMatchObject({ code });
    await unnoticed();
  });

  const first = (id: string): Request => ({ typeUrl: CDS, node: { id } });
  test.each<[string, Request, RegExp]>([
    ['no node', { typeUrl: CDS }, /node/],
    ['no id', first(''), /id/],
    ['half an id', first('sidecar~10.0.0.1'), /missing parts/],
    ['an id without address', first('sidecar~~client.shop~shop.svc.cluster.local'), /IP address/],
    ['a type that is not served', first('waypoint~10.0.0.1~client.shop~shop.svc.cluster.local'), /waypoint/],
  ])('and has %s is told so', async (__, request, message) => {
    const client = await open();
    client.send(request);
    expect(await client.closed).toMatchObject({
      code: Status.INVALID_ARGUMENT,
      details: expect.stringMatching(message) as string,
    });
    await unnoticed();
  });

  test('and refuses everything is heard, and nobody else gets less', async () => {
    const client = await open();
    client.send(first('plain'));
    const { nonce } = await client.next(CDS);
    client.send({ typeUrl: CDS, nonce, error: 'no', names: [] });
    const said = await program.logged('Proxy rejected resources');
    expect(said).toMatchObject({ nodeId: 'plain', typeUrl: CDS, message: 'no' });
    await unnoticed();
  });

  test('and asks for what nobody serves is not answered, and said once', async () => {
    const client = await open();
    client.send(first('plain'));
    await client.next(CDS);
    for (let i = 0; i < 3; i++) client.send({ typeUrl: 'type.googleapis.com/unknown', names: ['a'], subscribe: ['a'] });
    await program.logged('Proxy requested an unsupported resource type');
    await unnoticed();
    expect(program.log.filter(({ msg }) => msg.includes('unsupported resource type'))).toHaveLength(1);
    expect(client.received).toEqual([]);
  });

  test('and stops reading is owed the newest state, once, while others get each', async () => {
    await open();
    const { ads } = program.serving.engine;
    const session = connect(`http://127.0.0.1:${program.serving.ports.grpc}`, {
      settings: { initialWindowSize: 1024 },
    });
    onTestFinished(() => session.destroy());
    const method = delta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources';
    const stream = session.request({
      ':method': 'POST',
      ':path': `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`,
      'content-type': 'application/grpc',
    });
    stream.pause();
    const before = ads.counts().pushes['cds']!;
    const node = { id: 'sidecar~10.0.0.77~deaf.shop~shop.svc.cluster.local' };
    const type = delta ? types.deltaDiscoveryRequest : types.discoveryRequest;
    stream.write(framed(testProtos().encode(type, { node, typeUrl: CDS })));
    await expect.poll(() => ads.counts().pushes['cds']).toBe(before + 1);
    const timeout = (seconds: number) => meshConfig(`connectTimeout: ${seconds}s`);
    for (const seconds of [1, 2, 3, 4, 5]) {
      await directory.apply(timeout(seconds));
      await program.sent(other, (p) =>
        expect(p.cluster(clusterOf()).connectTimeout).toEqual({ seconds: `${seconds}` }),
      );
    }
    expect(ads.counts()).toMatchObject({ streams: 3, pendingStreams: 1, failures: 0 });
    expect(ads.counts().pushes['cds']).toBe(before + 1 + 5);
    await unnoticed();
  });
});
