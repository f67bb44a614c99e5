import { status as Status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bodiesOf, Script } from './script.ts';
import { BARRIER_TIMES } from '../../src/ads/protocol/barrier-times.ts';
import { CDS, EDS, LDS, RDS, ServedMesh } from './served-mesh.ts';

describe.each([
  ['delta', true],
  ['state of the world', false],
])('over %s', (_, delta) => {
  let mesh: ServedMesh;
  let script: Script;

  beforeEach(async () => {
    mesh = await ServedMesh.start({ times: { lingerMs: 20 }, tickMs: 10 });
    script = new Script(mesh, delta);
  });

  afterEach(async () => {
    script.client.close();
    await mesh.stop();
  });

  test('a wildcard gets everything, and then changes', async () => {
    mesh.publish({ [LDS]: { a: '1', b: '1' } });
    script.subscribe(LDS, []);
    expect(await script.take(LDS)).toEqual(['a@1', 'b@1']);
    mesh.publish({ [LDS]: { b: '2' } });
    expect(await script.take(LDS)).toEqual(delta ? ['b@2'] : ['a@1', 'b@2']);
    mesh.publish({ [LDS]: { a: undefined } });
    const response = await script.next(LDS);
    expect(bodiesOf(response)).toEqual(delta ? [] : ['b@2']);
    expect(response.removed).toEqual(delta ? ['a'] : []);
  });

  test('the address of a client is told apart from what describes the proxy', async () => {
    script.subscribe(CDS, []);
    await script.take(CDS);
    expect(mesh.peers).toEqual(['127.0.0.1']);
    expect(JSON.stringify([...mesh.proxies.values()])).not.toContain('127.0.0.1');
  });

  test('a wildcard is answered although there is nothing', async () => {
    script.subscribe(CDS, []);
    expect(await script.take(CDS)).toEqual([]);
  });

  test('names get what was asked for, and nothing else', async () => {
    mesh.publish({ [EDS]: { a: '1', b: '1', c: '1' } });
    script.subscribe(EDS, ['a', 'b']);
    expect(await script.take(EDS)).toEqual(['a@1', 'b@1']);
    mesh.publish({ [EDS]: { c: '2' } });
    mesh.publish({ [EDS]: { a: '2' } });
    expect(await script.take(EDS)).toEqual(['a@2']);
  });

  test('a name that does not exist is answered, and sent when it appears', async () => {
    script.subscribe(EDS, ['a']);
    expect(await script.take(EDS)).toEqual(['a@absent']);
    mesh.publish({ [EDS]: { a: '1' } });
    expect(await script.take(EDS)).toEqual(['a@1']);
  });

  test('an assignment that vanishes is left to the client, which is told of it when it comes back changed', async () => {
    mesh.publish({ [EDS]: { a: '1' } });
    script.subscribe(EDS, ['a']);
    expect(await script.take(EDS)).toEqual(['a@1']);
    mesh.publish({ [EDS]: { a: undefined } });
    expect(await script.client.settled(RDS)).toEqual([]);
    mesh.publish({ [EDS]: { a: '1' } });
    expect(await script.client.settled(RDS, ['marker-1'])).toEqual([]);
    mesh.publish({ [EDS]: { a: '2' } });
    expect(await script.take(EDS)).toEqual(['a@2']);
  });

  test('a further name is answered alone', async () => {
    mesh.publish({ [EDS]: { a: '1', b: '1' } });
    script.subscribe(EDS, ['a']);
    expect(await script.take(EDS)).toEqual(['a@1']);
    script.subscribe(EDS, ['a', 'b']);
    expect(await script.take(EDS)).toEqual(['b@1']);
  });

  test('a name that was given up is not sent any more, and answered when it is wanted again', async () => {
    mesh.publish({ [EDS]: { a: '1', b: '1' } });
    script.subscribe(EDS, ['a', 'b']);
    await script.take(EDS);
    script.subscribe(EDS, ['a']);
    // The server has read it.
    expect(await script.client.settled(RDS)).toEqual([]);
    mesh.publish({ [EDS]: { b: '2' } });
    mesh.publish({ [EDS]: { a: '2' } });
    expect(await script.take(EDS)).toEqual(['a@2']);
    script.subscribe(EDS, ['a', 'b']);
    expect(await script.take(EDS)).toEqual(['b@2']);
  });

  test('one response waits for its answer, and the next brings the newest state once', async () => {
    mesh.publish({ [EDS]: { a: '1', b: '1' } });
    script.subscribe(EDS, ['a', 'b']);
    await script.take(EDS);
    mesh.publish({ [EDS]: { a: '2' } });
    const unanswered = await script.next(EDS);
    for (const content of ['3', '4', '5']) mesh.publish({ [EDS]: { a: content } });
    mesh.publish({ [EDS]: { b: '2' } });
    expect(await script.client.settled(RDS)).toEqual([]);
    script.ack(unanswered);
    expect(await script.take(EDS)).toEqual(['a@5', 'b@2']);
  });

  test('a change that is taken back is not sent', async () => {
    mesh.publish({ [EDS]: { a: '1', b: '1' } });
    script.subscribe(EDS, ['a', 'b']);
    await script.take(EDS);
    mesh.publish({ [EDS]: { b: '2' } });
    const unanswered = await script.next(EDS);
    mesh.publish({ [EDS]: { a: '2' } });
    mesh.publish({ [EDS]: { a: '1' } });
    script.ack(unanswered);
    expect(await script.client.settled(RDS)).toEqual([]);
  });

  test('a push goes in the order of clusters, assignments, listeners, tables', async () => {
    mesh.publish({ [CDS]: { c: '1' }, [EDS]: { c: '1' }, [LDS]: { l: '1' }, [RDS]: { r: '1' } });
    script.subscribe(CDS, []);
    script.subscribe(LDS, []);
    script.subscribe(RDS, ['r']);
    script.subscribe(EDS, ['c']);
    for (const typeUrl of [CDS, EDS, LDS, RDS]) await script.take(typeUrl);
    mesh.publish({ [RDS]: { r: '2' }, [LDS]: { l: '2' }, [EDS]: { c: '2' }, [CDS]: { c: '2' } });
    const last = await script.next(RDS);
    expect(bodiesOf(last)).toEqual(['r@2']);
    expect(script.client.received.map((response) => response.typeUrl)).toEqual([CDS, EDS, LDS]);
  });

  test('the assignment of a changed cluster comes right behind it, changed or not', async () => {
    mesh.publish({ [CDS]: { c: '1', d: '1' }, [EDS]: { c: '1', d: '1' } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    script.subscribe(EDS, ['c', 'd']);
    await script.take(EDS);
    mesh.publish({ [CDS]: { c: '2' } });
    expect(bodiesOf(await script.next(EDS))).toEqual(['c@1']);
    expect(bodiesOf(await script.next(CDS))).toContain('c@2');
  });

  test('clusters do not wait for answers that are held back', async () => {
    mesh.publish({ [CDS]: { c: '1' } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    mesh.publish({ [CDS]: { c: '2' } });
    const second = await script.next(CDS);
    mesh.publish({ [CDS]: { c: '3' } });
    const third = await script.next(CDS);
    expect(bodiesOf(third)).toEqual(['c@3']);
    if (delta) script.ack(second);
    script.ack(third);
    mesh.publish({ [CDS]: { c: '4' } });
    expect(await script.take(CDS)).toEqual(['c@4']);
  });

  test('a cluster stays until no table names it, and a while longer', async () => {
    const naming = (content: string, cluster: string): { content: string; clusters: string[] } => {
      return { content, clusters: [cluster] };
    };
    mesh.publish({ [CDS]: { c: '1', d: '1' }, [EDS]: { c: '1', d: '1' }, [RDS]: { r: naming('c', 'c') } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    script.subscribe(RDS, ['r']);
    await script.take(RDS);
    mesh.publish({ [CDS]: { c: undefined }, [RDS]: { r: naming('d', 'd') } });
    const table = await script.next(RDS);
    expect(await script.client.settled(EDS)).toEqual([]);
    script.ack(table);
    const response = await script.next(CDS);
    expect(bodiesOf(response)).toEqual(delta ? [] : ['d@1']);
    expect(response.removed).toEqual(delta ? ['c'] : []);
  });

  test('a table that left the configuration is served until it is given up, and what it names stays', async () => {
    const table = { content: '1', clusters: ['c'] };
    mesh.publish({ [CDS]: { c: '1', d: '1' }, [RDS]: { r: table } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    script.subscribe(RDS, ['r']);
    await script.take(RDS);
    mesh.publish({ [CDS]: { c: undefined }, [RDS]: { r: undefined } });
    script.subscribe(RDS, ['r', 'new']);
    expect(await script.take(RDS)).toEqual(['new@absent']);
    expect(await script.client.settled(EDS)).toEqual([]);
    script.subscribe(RDS, ['new']);
    const response = await script.next(CDS);
    expect(bodiesOf(response)).toEqual(delta ? [] : ['d@1']);
  });

  test('a table that names a new cluster waits for it', async () => {
    const naming = (cluster: string): { content: string; clusters: string[] } => ({
      content: cluster,
      clusters: [cluster],
    });
    mesh.publish({ [CDS]: { c: '1' }, [EDS]: { c: '1' }, [RDS]: { r: naming('c'), s: naming('c') } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    script.subscribe(EDS, ['c']);
    await script.take(EDS);
    script.subscribe(RDS, ['r', 's']);
    await script.take(RDS);
    mesh.publish({
      [CDS]: { d: '1' },
      [EDS]: { d: '1' },
      [RDS]: { r: naming('d'), s: { content: 'changed', clusters: ['c'] } },
    });
    expect(await script.take(RDS)).toEqual(['s@changed']);
    const held = await script.next(CDS);
    script.subscribe(EDS, ['c', 'd']);
    expect(await script.take(EDS)).toEqual(['d@1']);
    expect(await script.take(RDS)).toEqual(['r@d']);
    script.ack(held);
    expect(mesh.server.counts().timeouts).toBe(0);
  });

  test('a wait that does not end is ended, and counted', async () => {
    const table = { content: '1', clusters: ['d'] };
    script.subscribe(CDS, []);
    await script.take(CDS);
    script.subscribe(RDS, ['r']);
    expect(await script.take(RDS)).toEqual(['r@absent']);
    mesh.publish({ [CDS]: { d: '1' }, [EDS]: { d: '1' }, [RDS]: { r: table } });
    await script.next(CDS);
    expect(mesh.server.counts().timeouts).toBe(0);
    mesh.pass(BARRIER_TIMES.timeoutMs);
    expect(await script.take(RDS)).toEqual(['r@1']);
    expect(mesh.server.counts().timeouts).toBe(1);
  });

  test('a rejected cluster is withdrawn, the others are sent again, and its version is not repeated', async () => {
    script.subscribe(CDS, []);
    await script.take(CDS);
    mesh.publish({ [CDS]: { bad: '1', good: '1' } });
    script.nack(await script.next(CDS), 'Error adding/updating cluster(s) bad: no such thing');
    const again = await script.next(CDS);
    script.ack(again);
    expect(bodiesOf(again)).toEqual(['good@1']);
    expect(again.removed).toEqual(delta ? ['bad'] : []);
    mesh.publish({ [CDS]: { good: '2' } });
    expect(await script.take(CDS)).toEqual(['good@2']);
    mesh.publish({ [CDS]: { bad: '2' } });
    expect(await script.take(CDS)).toEqual(delta ? ['bad@2'] : ['bad@2', 'good@2']);
    expect(mesh.rejections).toMatchObject([{ typeUrl: CDS, name: 'bad', nodeId: expect.any(String) }]);
  });

  test('a live cluster that is rejected is given back as it was, with its assignment behind', async () => {
    mesh.publish({ [CDS]: { a: '1', b: '1' }, [EDS]: { a: '1', b: '1' } });
    script.subscribe(CDS, []);
    const first = await script.next(CDS);
    script.ack(first);
    script.subscribe(EDS, ['a', 'b']);
    await script.take(EDS);
    mesh.publish({ [CDS]: { a: '2' } });
    await script.take(EDS);
    script.nack(await script.next(CDS), 'Error adding/updating cluster(s) a: no', first.version);
    expect(await script.take(CDS)).toEqual(delta ? ['a@1'] : ['a@1', 'b@1']);
    expect(await script.take(EDS)).toEqual(['a@1']);
  });

  test('of assignments the rejected one is found by halves, and the others arrive', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    mesh.publish({ [EDS]: Object.fromEntries(names.map((name) => [name, '1'])) });
    script.subscribe(EDS, names);
    const first = await script.next(EDS);
    script.ack(first);
    mesh.publish({ [EDS]: Object.fromEntries(names.map((name) => [name, '2'])) });
    const arrived = new Set<string>();
    for (let done = false; !done;) {
      const response = await script.next(EDS);
      const bodies = bodiesOf(response);
      if (bodies.includes('d@2')) script.nack(response, 'malformed IP address', first.version);
      else {
        for (const body of bodies) arrived.add(body);
        script.ack(response);
      }
      done = mesh.rejections.some((rejection) => rejection.name === 'd') && arrived.size === 7;
    }
    // The rejected one is given back as it was: behind a changed cluster it would be empty now.
    expect([...arrived].sort()).toEqual(['a@2', 'b@2', 'c@2', 'd@1', 'e@2', 'f@2', 'g@2']);
    expect(await script.client.settled(RDS)).toEqual([]);
  });

  test('a rejected table leaves the client what it had', async () => {
    mesh.publish({ [RDS]: { r: '1', s: '1' } });
    script.subscribe(RDS, ['r', 's']);
    const first = await script.next(RDS);
    script.ack(first);
    mesh.publish({ [RDS]: { r: '2' } });
    script.nack(await script.next(RDS), 'invalid perl operator', first.version);
    expect(await script.take(RDS)).toEqual(['r@1']);
    mesh.publish({ [RDS]: { s: '2' } });
    expect(await script.take(RDS)).toEqual(['s@2']);
    expect(mesh.rejections).toMatchObject([{ typeUrl: RDS, name: 'r', message: 'invalid perl operator' }]);
  });

  test('a stream that moves to another world gets the difference', async () => {
    mesh.publish({ [EDS]: { a: '1', b: '1' }, [LDS]: { l: '1', m: '1' } });
    mesh.publish({ [EDS]: { a: '1', c: '1' }, [LDS]: { l: '1', n: '1' } }, 'other');
    script.subscribe(EDS, ['a', 'b', 'c']);
    expect(await script.take(EDS)).toEqual(['a@1', 'b@1', 'c@absent']);
    script.subscribe(LDS, []);
    expect(await script.take(LDS)).toEqual(['l@1', 'm@1']);
    const [stream] = [...mesh.proxies.keys()];
    mesh.move(stream!, { roots: ['other'], qualifiers: [] });
    expect(await script.take(EDS)).toEqual(['c@1']);
    const response = await script.next(LDS);
    expect(bodiesOf(response)).toEqual(delta ? ['n@1'] : ['l@1', 'n@1']);
    expect(response.removed).toEqual(delta ? ['m'] : []);
  });

  test('an unknown type is ignored, with one warning', async () => {
    const unknown = 'type.googleapis.com/istio.v1.Something';
    script.subscribe(LDS, []);
    await script.take(LDS);
    script.subscribe(unknown, []);
    script.subscribe(unknown, []);
    mesh.publish({ [LDS]: { l: '1' } });
    expect(await script.take(LDS)).toEqual(['l@1']);
    expect(mesh.warnings).toHaveLength(1);
    expect(mesh.warnings[0]).toContain(unknown);
  });

  test('what a stream held is given up when it ends', async () => {
    mesh.publish({ [EDS]: { a: '1' } });
    script.subscribe(EDS, ['a']);
    await script.take(EDS);
    expect(mesh.server.counts()).toMatchObject({ streams: 1, worlds: 1, roots: 1, nameSets: 1 });
    script.client.close();
    await expect.poll(() => mesh.ended.length).toBe(1);
    expect(mesh.server.counts()).toMatchObject({ streams: 0, worlds: 0, roots: 0, nameSets: 0 });
  });

  test('a proxy that cannot be served is told why', async () => {
    mesh.world = () => ({ error: 'metadata INSTANCE_IPS: "x" is not an address' });
    script.subscribe(CDS, []);
    expect(await script.client.closed).toMatchObject({
      code: Status.INVALID_ARGUMENT,
      details: 'metadata INSTANCE_IPS: "x" is not an address',
    });
    expect(mesh.ended).toHaveLength(1);
    expect(mesh.server.counts()).toMatchObject({ streams: 0, worlds: 0, waitingForWorld: 0 });
  });

  test('a proxy that can no longer be served is told why', async () => {
    mesh.publish({ [CDS]: { a: '1' } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    for (const stream of mesh.proxies.keys()) mesh.move(stream, { error: 'no longer' });
    expect(await script.client.closed).toMatchObject({ code: Status.INVALID_ARGUMENT, details: 'no longer' });
    expect(mesh.server.counts()).toMatchObject({ streams: 0, worlds: 0 });
  });

  test('says what it sent and what was accepted', async () => {
    mesh.publish({ [EDS]: { a: '1' } });
    script.subscribe(EDS, ['a']);
    const response = await script.next(EDS);
    expect(mesh.server.streams()).toMatchObject([
      {
        nodeId: expect.stringContaining('sidecar~'),
        types: [{ shortName: 'eds', sent: response.nonce, acked: '', synced: false }],
      },
    ]);
    script.ack(response);
    expect(await script.client.settled(RDS)).toEqual([]);
    expect(mesh.server.streams()[0]!.types[0]).toMatchObject({
      acked: response.nonce,
      synced: true,
      names: new Set(['a']),
    });
  });

  test('names the clusters whose answer is missing for long', async () => {
    mesh.publish({ [CDS]: { a: '1', b: '1' } });
    script.subscribe(CDS, []);
    await script.take(CDS);
    mesh.publish({ [CDS]: { b: '2', cold: '1' } });
    const response = await script.next(CDS);
    const overdue = () => mesh.server.streams()[0]!.types[0]!.overdue;
    expect(overdue()).toEqual([]);
    mesh.pass(BARRIER_TIMES.overdueMs);
    expect(overdue()).toEqual(['cold']);
    script.ack(response);
    await expect.poll(overdue).toEqual([]);
  });
});
