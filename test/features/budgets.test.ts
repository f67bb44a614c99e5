import { status as Status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { serviceOf } from '../../src/engine/catalog.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { field, nodeField } from '../harness/raw-ads.ts';
import type { Program } from './program.ts';
import { CDS, LDS } from './proxy.ts';
import { rule, split, reviews } from './shop.ts';
import { Directory } from './sources.ts';

/** A first request for clusters, with text metadata. */
function firstRequest(id: string, metadata: Readonly<Record<string, string>>): Uint8Array {
  return Buffer.concat([nodeField(id, metadata), field(2, CDS)]);
}

interface Outcome {
  readonly served: number;
  readonly codes: readonly number[];
}

/** Opens a stream for each metadata, and closes it when it is answered, if `close`. */
async function connectAll(program: Program, all: readonly Record<string, string>[], close: boolean): Promise<Outcome> {
  let served = 0;
  const codes: number[] = [];
  for (const [i, metadata] of all.entries()) {
    const client = new XdsClient(program.serving.ports.grpc!, true);
    onTestFinished(() => client.close());
    client.sendBytes(firstRequest(`sidecar~10.9.0.1~p${i}.shop~shop.svc.cluster.local`, metadata));
    const error = await Promise.race([client.closed, client.next(CDS).then(() => undefined)]);
    if (error === undefined) served++;
    else codes.push(error.code);
    if (close) client.close();
  }
  return { served, codes };
}

async function start(): Promise<{ program: Program; directory: Directory }> {
  const directory = await Directory.create();
  await directory.apply(...reviews, rule, split(80, 20));
  const program = await directory.start();
  await program.logged('Ready');
  return { directory, program };
}

const idle = Array.from({ length: 40 }, (_, i) => ({ IDLE_TIMEOUT: `${i + 1}s` }));

test.each([
  ['at one time', false],
  ['one after the other', true],
])('one address has a bounded number of kinds of proxies made, %s, and others are served', async (_, close) => {
  const { program } = await start();
  const { served, codes } = await connectAll(program, idle, close);
  expect(served).toBe(16);
  expect(new Set(codes)).toEqual(new Set([Status.RESOURCE_EXHAUSTED]));
  expect(program.serving.engine.admission.refusals.traits).toBe(24);
  const scopes = program.serving.engine.mesh.graph.collections.find(({ name }) => name === 'scopes')!;
  expect(scopes.size).toBeLessThanOrEqual(16);
  // A kind that is there already.
  expect(await connectAll(program, [{ IDLE_TIMEOUT: '3s' }], false)).toEqual({ served: 1, codes: [] });
});

test('metadata that nothing depends on, and namespaces, split nobody', async () => {
  const { program } = await start();
  const odd = Array.from({ length: 40 }, (_, i) => ({
    ISTIO_VERSION: `1.${i}.0`,
    MESH_ID: `m${i}`,
    TLS_SERVER_CERT_CHAIN: `/server/${i}`,
    NAMESPACE: `n${i}`,
  }));
  expect(await connectAll(program, odd, false)).toEqual({ served: 40, codes: [] });
});

test('refusals are one line each, with a count, and no more than a bounded number of lines', async () => {
  const { program } = await start();
  const message = 'Proxy rejected resources';
  const refuse = async (i: number): Promise<void> => {
    const client = new XdsClient(program.serving.ports.grpc!, true);
    client.sendBytes(firstRequest(`sidecar~10.9.0.1~p${i}.shop~shop.svc.cluster.local`, {}));
    const { nonce, resources } = await client.next(CDS);
    client.send({ typeUrl: CDS, nonce, error: [...resources.keys()].join(' ') });
    if (i === 0) expect(await program.logged(message)).toMatchObject({ resources: resources.size });
    // Asked for behind the refusal: when it is answered, that was read.
    client.send({ typeUrl: LDS, subscribe: ['*'] });
    await client.next(LDS);
    client.close();
  };
  const begin = performance.now();
  await refuse(0);
  for (let i = 1; i < 200; i += 20) await Promise.all(Array.from({ length: 20 }, (_, j) => refuse(i + j)));
  const mostLines = 100 + (performance.now() - begin) / 1_000;
  expect(program.log.filter(({ msg }) => msg === message).length).toBeLessThanOrEqual(mostLines);
});

test('what is made for a client that took nothing goes with it', async () => {
  const { program } = await start();
  await connectAll(program, [{ IDLE_TIMEOUT: '1s' }], true);
  await expect.poll(() => program.serving.engine.mesh.inputs.proxies.size).toBe(0);
});

test('a proxy with a stream for each type counts once, and once more when all of them are gone', async () => {
  const { program } = await start();
  const { engine, ports } = program.serving;
  const node = { id: 'sidecar~10.9.0.1~a.shop~shop.svc.cluster.local', labels: { app: 'client' } };
  const clients = (['Cluster', 'Endpoint', 'Listener', 'Route'] as const).map((kind) => {
    const { name, stream, delta } = serviceOf(kind);
    const methods = { stream: `/${name}/${stream}`, delta: `/${name}/${delta}` };
    const client = new XdsClient(ports.grpc!, true, undefined, undefined, methods);
    onTestFinished(() => client.close());
    client.send({ typeUrl: '', node, subscribe: [kind === 'Endpoint' || kind === 'Route' ? 'x' : '*'] });
    return client;
  });
  for (const client of clients) {
    const { typeUrl, nonce } = await client.next();
    client.send({ typeUrl, nonce });
  }
  const sizeOf = (collection: string): number =>
    engine.mesh.graph.collections.find(({ name }) => name === collection)!.size;
  expect(['resolvedProxies', 'scopes', 'workloadClasses'].map(sizeOf)).toEqual([4, 1, 1]);
  for (const client of clients) client.end();
  await expect.poll(() => engine.mesh.inputs.proxies.size).toBe(1);
});
