import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { WAIT_MS } from '../../src/engine/waiting-objects.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { testProtos } from '../harness/mesh.ts';
import { conditions } from './conditions.ts';
import { destinationRule, object, pod, virtualService } from './objects.ts';
import type { Program } from './program.ts';
import { LDS, type Proxy, RDS } from './proxy.ts';
import { clusterOf, hostOf, ratings, reviews, REVIEWS, rule, split, splitRoutes } from './shop.ts';
import { later } from './skipping-clock.ts';
import { Cluster, EVENTS, REPORTS } from './sources.ts';

interface Served {
  readonly cluster: Cluster;
  readonly program: Program;
  readonly proxy: Proxy;
  /** Waits for the condition of the object's present generation. */
  programmed(object: KubernetesObject, expected: object): Promise<void>;
}

async function serve(delta: boolean, ...objects: readonly KubernetesObject[]): Promise<Served> {
  const served = await serveNobody(...objects);
  return { ...served, proxy: await served.program.connect(delta) };
}

async function serveNobody(...objects: readonly KubernetesObject[]): Promise<Omit<Served, 'proxy'>> {
  const cluster = await Cluster.create();
  await cluster.apply(...reviews, ...ratings, ...objects);
  const program = await cluster.start();
  const programmed = (object: KubernetesObject, expected: object): Promise<void> =>
    cluster.changed(() => {
      const { generation } = cluster.object(object).metadata;
      expect(conditions(cluster, object)['Programmed']).toMatchObject({ observedGeneration: generation, ...expected });
    });
  return { cluster, program, programmed };
}

const versions = (...names: readonly string[]) =>
  destinationRule('reviews', { host: 'reviews', subsets: names.map((version) => ({ name: version, labels: {} })) });
const toVersion = (subset: string) =>
  virtualService('reviews', { hosts: ['reviews'], http: [{ route: [{ destination: { host: 'reviews', subset } }] }] });

const acknowledged = { status: 'True', reason: 'Programmed' };
const pending = { status: 'Unknown', reason: 'Pending' };

describe.each([
  ['delta', true],
  ['state of the world', false],
])('%s', (_, delta) => {
  test('an object is programmed when the proxies that it concerns have acknowledged it', async () => {
    const { cluster, program, proxy, programmed } = await serve(delta, rule, split(80, 20));
    await programmed(rule, acknowledged);
    await programmed(split(80, 20), { ...acknowledged, message: 'Acknowledged by the proxy that it concerns.' });
    const other = await program.connect(delta);
    await cluster.apply(split(10, 90));
    await programmed(split(10, 90), { ...acknowledged, message: 'Acknowledged by all 2 proxies that it concerns.' });
    for (const each of [proxy, other]) expect(each.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90));
  });

  test('a delegate is programmed when proxies have the routes of its root that it changes', async () => {
    const root = virtualService('reviews', {
      hosts: ['reviews'],
      http: [{ match: [{ uri: { prefix: '/part' } }], delegate: { name: 'part', namespace: 'team' } }],
    });
    const delegate = (...paths: readonly string[]) =>
      virtualService(
        'part',
        {
          http: paths.map((prefix) => ({
            match: [{ uri: { prefix } }],
            route: [{ destination: { host: 'reviews.shop.svc.cluster.local' } }],
          })),
        },
        'team',
      );
    const { cluster, proxy, programmed } = await serve(delta, root, delegate('/part/a'));
    const byTheProxy = { ...acknowledged, message: 'Acknowledged by the proxy that it concerns.' };
    await programmed(root, byTheProxy);
    await programmed(delegate('/part/a'), byTheProxy);
    proxy.fallSilent();
    await cluster.apply(delegate('/part/a', '/part/b'));
    await programmed(delegate(), pending);
    expect(proxy.routes('80')[REVIEWS]).toEqual([`/part/a -> ${clusterOf()}`, `/part/b -> ${clusterOf()}`]);
  });

  test('one that has not acknowledged it is named, and is the last to be waited for', async () => {
    const { cluster, program, proxy, programmed } = await serve(delta, rule, split(80, 20));
    await programmed(split(80, 20), acknowledged);
    await program.connect(delta);
    proxy.fallSilent();
    await cluster.apply(split(10, 90));
    await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90)));
    program.clock.skip(1_000);
    const message = expect.stringMatching(/^Not acknowledged by 1 proxy since \S+Z: client\.shop\.$/) as string;
    await programmed(split(10, 90), { ...pending, message });
    // What does not concern it does not wait for it.
    const far = virtualService('far', {
      hosts: ['far.example.com'],
      gateways: ['way-in'],
      http: [{ redirect: { uri: '/' } }],
    });
    await cluster.apply(far);
    await program.committed(() => expect(program.object('VirtualService', 'shop', 'far')).toBeDefined());
    const nobody = { status: 'True', reason: 'NoProxies' };
    await later(program, () => conditions(cluster, far)['Programmed']).toMatchObject(nobody);
    proxy.speak();
    await programmed(split(10, 90), acknowledged);
  });

  test('a proxy that is gone is not waited for', async () => {
    const { cluster, program, proxy, programmed } = await serve(delta, rule, split(80, 20));
    await program.connect(delta);
    await programmed(split(80, 20), acknowledged);
    proxy.fallSilent();
    await cluster.apply(split(10, 90));
    await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90)));
    program.clock.skip(1_000);
    await programmed(split(10, 90), pending);
    proxy.close();
    await programmed(split(10, 90), acknowledged);
  });

  test('what names something that is not there yet waits for it, and says so', async () => {
    const { cluster, program, proxy, programmed } = await serve(delta, versions('v1'), toVersion('v1'));
    await programmed(toVersion('v1'), acknowledged);
    await cluster.apply(toVersion('v2'));
    await program.committed(() =>
      expect(program.object('VirtualService', 'shop', 'reviews')).toMatchObject(toVersion('v2')),
    );
    program.clock.skip(1_000);
    const message = expect.stringMatching(
      /^Waits for subset "v2" of "reviews\.shop\.svc\.cluster\.local", which it names, but not beyond \S+Z\. Generation 1 is in force\.$/,
    ) as string;
    await programmed(toVersion('v2'), { status: 'Unknown', reason: 'Waiting', message });
    expect(conditions(cluster, toVersion('v2'))).toMatchObject({
      Accepted: { status: 'True', observedGeneration: 2 },
      ResolvedRefs: { status: 'Unknown', reason: 'Waiting', observedGeneration: 2 },
    });
    await cluster.apply(versions('v2'));
    for (const object of [toVersion('v2'), versions('v2')]) await programmed(object, acknowledged);
    expect(proxy.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf('reviews', 'v2')}`]);
    expect(cluster.server.cluster.objects(EVENTS)).toEqual([]);
  });

  test('what waits in vain is in force as it is written after a while', async () => {
    const { cluster, program, proxy, programmed } = await serve(delta, versions('v1'), toVersion('v1'));
    await programmed(toVersion('v1'), acknowledged);
    await cluster.apply(versions('v2'));
    await program.committed(() =>
      expect(program.object('DestinationRule', 'shop', 'reviews')).toMatchObject(versions('v2')),
    );
    program.clock.skip(1_000);
    const message = expect.stringMatching(
      /^Waits until VirtualService "shop\/reviews" no longer names subset "v1" /,
    ) as string;
    await programmed(versions('v2'), { status: 'Unknown', reason: 'Waiting', message });
    expect(proxy.routes('80')[REVIEWS]).toEqual([`/ -> ${clusterOf('reviews', 'v1')}`]);
    program.clock.skip(WAIT_MS.max);
    await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).toEqual(['/ -> BlackHoleCluster']));
    await programmed(versions('v2'), acknowledged);
  });

  test('what a proxy rejects is not programmed, in its own words; mended, it is', async () => {
    const { cluster, proxy, programmed } = await serve(delta, rule, split(80, 20));
    await programmed(split(80, 20), acknowledged);
    proxy.rejects = ({ typeUrl }) => (typeUrl === RDS ? 'these weights are bad' : undefined);
    await cluster.apply(split(10, 90));
    await programmed(split(10, 90), {
      status: 'False',
      reason: 'Rejected',
      message:
        'Rejected by 1 proxy (client.shop). RouteConfiguration 80: "these weights are bad". Generation 1 is in force.',
    });
    const events = () => cluster.server.cluster.objects(EVENTS).map((event) => event['reason']);
    await expect.poll(events).toEqual(['Rejected']);
    expect(conditions(cluster, rule)['Programmed']).toMatchObject(acknowledged);
    proxy.rejects = () => undefined;
    await cluster.apply(split(60, 40));
    await programmed(split(60, 40), acknowledged);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(60, 40));
  });

  test('an object that concerns no proxy says so once proxies have had time to return, and only until one needs it', async () => {
    const cluster = await Cluster.create();
    await cluster.apply(...reviews, rule);
    const program = await cluster.start();
    await cluster.changed(() => expect(conditions(cluster, rule)['Programmed']).toMatchObject(pending));
    program.clock.skip(50_000);
    await cluster.changed(() =>
      expect(conditions(cluster, rule)['Programmed']).toMatchObject({ status: 'True', reason: 'NoProxies' }),
    );
    await program.connect(delta);
    await cluster.changed(() => expect(conditions(cluster, rule)['Programmed']).toMatchObject(acknowledged));
  });

  test('what was acknowledged before a restart stays so', async () => {
    const { cluster, program, programmed } = await serve(delta, rule);
    await programmed(rule, acknowledged);
    await program.stop();
    const before = cluster.writes().length;
    const next = await cluster.start();
    await next.connect(delta);
    next.clock.skip(60_000);
    const other = destinationRule('ratings', { host: hostOf('ratings') });
    await cluster.apply(other);
    await programmed(other, { status: 'True' });
    expect(
      cluster
        .writes()
        .slice(before)
        .filter((path) => path.includes('/reviews/')),
    ).toEqual([]);
  });

  test('a listener is waited for together with the table that it names', async () => {
    const { cluster, proxy, programmed } = await serve(delta);
    const entry = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'ServiceEntry',
      metadata: { name: 'api', namespace: 'shop' },
      spec: {
        hosts: ['api.example.com'],
        ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
        resolution: 'DNS',
      },
    };
    const held: string[] = [];
    proxy.rejects = ({ typeUrl }) => {
      if (typeUrl === LDS || typeUrl === RDS) held.push(typeUrl);
      return undefined;
    };
    await cluster.apply(entry);
    await programmed(entry, acknowledged);
    expect(held).toEqual([LDS, RDS]);
  });
});

describe('an object that is good no longer', () => {
  const invalid = virtualService('reviews', { hosts: ['reviews'], http: [{ route: [] }] });

  test('stays as it was, also while it is changed again', async () => {
    const { cluster, program, proxy, programmed } = await serve(true, rule, split(80, 20));
    await programmed(split(80, 20), acknowledged);
    await cluster.apply(invalid);
    await programmed(invalid, {
      status: 'False',
      reason: 'Invalid',
      message: 'See Accepted. Generation 1 is in force.',
    });
    expect(conditions(cluster, invalid)['Accepted']).toMatchObject({ status: 'False', observedGeneration: 2 });
    const worse = virtualService('reviews', { hosts: ['reviews'], http: [{ route: [{ weight: -1 }] }] });
    await cluster.apply(worse);
    await programmed(worse, { status: 'False', message: 'See Accepted. Generation 1 is in force.' });
    const other = await program.connect(false);
    for (const each of [proxy, other]) expect(each.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    await cluster.apply(split(10, 90));
    await programmed(split(10, 90), acknowledged);
    for (const each of [proxy, other]) expect(each.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90));
  });

  test('takes its past with it when it is deleted', async () => {
    const { cluster, proxy, programmed } = await serve(true, rule, split(80, 20));
    await programmed(split(80, 20), acknowledged);
    await cluster.delete(split(80, 20));
    await proxy.until(() => expect(proxy.routes('80')[REVIEWS]).not.toEqual(splitRoutes(80, 20)));
    await cluster.apply(invalid);
    await programmed(invalid, { status: 'False', message: expect.not.stringContaining('Generation 1') as string });
    expect(proxy.routes('80')[REVIEWS]).not.toEqual(splitRoutes(80, 20));
  });
});

describe('what every proxy rejects', () => {
  const isBad = (bytes: Uint8Array | undefined): boolean => Buffer.from(bytes ?? []).includes('poison');
  const poisoned = virtualService('reviews', {
    hosts: ['reviews'],
    http: [{ name: 'poison', route: [{ destination: { host: 'reviews' } }] }],
  });

  test('is not in force any more, while everything else goes on', async () => {
    const { cluster, program, proxy, programmed } = await serve(true, rule, split(80, 20));
    const proxies = [proxy, await program.connect(false), await program.connect(true)];
    await programmed(split(80, 20), acknowledged);
    for (const each of proxies)
      each.rejects = ({ resources }) => ([...resources.values()].some(isBad) ? 'there is poison in it' : undefined);
    await cluster.apply(poisoned);
    const message = expect.stringMatching(
      /^Rejected by \d prox.*there is poison in it"\. Generation 1 is in force\.$/,
    ) as string;
    await programmed(poisoned, { status: 'False', reason: 'Rejected', message });
    const newcomer = await program.connect(true);
    for (const each of [...proxies, newcomer]) expect(each.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
    const far = virtualService('ratings', {
      hosts: ['ratings'],
      http: [{ name: 'far', route: [{ destination: { host: 'ratings' } }] }],
    });
    await cluster.apply(far);
    await programmed(far, acknowledged);
    await cluster.apply(split(10, 90));
    await programmed(split(10, 90), acknowledged);
    for (const each of [...proxies, newcomer]) expect(each.routes('80')[REVIEWS]).toEqual(splitRoutes(10, 90));
  });

  test('reaches one proxy of a build, also while it is looked for among objects that change together', async () => {
    const { cluster, program, proxy, programmed } = await serve(true, rule, split(80, 20));
    const proxies = [proxy, await program.connect(false), await program.connect(true)];
    await programmed(split(80, 20), acknowledged);
    const saw = new Set<string>();
    for (const each of proxies)
      each.rejects = ({ resources }) => {
        if (![...resources.values()].some(isBad)) return undefined;
        saw.add(each.id);
        return 'there is poison in it';
      };
    const far = virtualService('ratings', {
      hosts: ['ratings'],
      http: [{ name: 'far', route: [{ destination: { host: 'ratings' } }] }],
    });
    const release = program.serving.engine.committer.hold();
    await cluster.apply(poisoned, far);
    await expect.poll(() => program.serving.engine.committer.stats.pending).toBeGreaterThanOrEqual(3);
    release();
    await programmed(poisoned, { status: 'False', reason: 'Rejected' });
    await programmed(far, acknowledged);
    expect(saw.size).toBe(1);
    const events = cluster.server.cluster.objects(EVENTS).filter(({ reason }) => reason === 'Rejected');
    expect(events).toMatchObject([{ regarding: { name: 'reviews' } }]);
  });

  test('counts against the object also when the first that rejected it has left', async () => {
    const { cluster, program, proxy, programmed } = await serve(true, rule, split(80, 20));
    const proxies = [proxy, await program.connect(true), await program.connect(true)];
    await programmed(split(80, 20), acknowledged);
    let first: string | undefined;
    for (const each of proxies)
      each.rejects = ({ resources }) => {
        if (![...resources.values()].some(isBad)) return undefined;
        first ??= each.id;
        if (first === each.id) each.close();
        return 'there is poison in it';
      };
    await cluster.apply(poisoned);
    await programmed(poisoned, { status: 'False', message: expect.stringContaining('Generation 1') as string });
  });

  test('is found among objects that change together', async () => {
    const { cluster, program, proxy, programmed } = await serve(true, rule, split(80, 20));
    await programmed(split(80, 20), acknowledged);
    proxy.rejects = ({ resources }) => ([...resources.values()].some(isBad) ? 'there is poison in it' : undefined);
    const far = virtualService('ratings', {
      hosts: ['ratings'],
      http: [{ name: 'far', route: [{ destination: { host: 'ratings' } }] }],
    });
    const release = program.serving.engine.committer.hold();
    await cluster.apply(far, poisoned);
    await expect.poll(() => program.serving.engine.committer.stats.pending).toBeGreaterThanOrEqual(3);
    release();
    await programmed(poisoned, { status: 'False', reason: 'Rejected' });
    await programmed(far, acknowledged);
    expect(proxy.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
  });
});

describe('what the proxies of one tenant reject', () => {
  const poisoned = virtualService('reviews', {
    hosts: ['reviews'],
    http: [{ name: 'poison', route: [{ destination: { host: 'reviews' } }] }],
  });
  const of = (namespace: string, i: number) => ({
    id: `sidecar~10.0.1.${i}~client-${i}.${namespace}~${namespace}.svc.cluster.local`,
  });
  const rejects = (proxy: Proxy): void => {
    proxy.rejects = ({ resources }) =>
      [...resources.values()].some((bytes) => Buffer.from(bytes).includes('poison')) ? 'no' : undefined;
  };
  const poison = [`/ -> ${clusterOf()}`];

  async function tenants(...namespaces: readonly string[]) {
    const served = await serveNobody(rule, split(80, 20));
    const proxies: Proxy[] = [];
    for (const [i, namespace] of namespaces.entries())
      proxies.push(await served.program.connect(i % 2 === 0, of(namespace, i)));
    await served.programmed(split(80, 20), acknowledged);
    return { ...served, proxies };
  }

  test('stays in force for the others, if it is not theirs', async () => {
    const { cluster, programmed, proxies } = await tenants('tenant', 'tenant', 'other', 'other');
    const [liar, mate, ...others] = proxies as [Proxy, Proxy, Proxy, Proxy];
    for (const each of [liar, mate]) rejects(each);
    await cluster.apply(poisoned);
    await programmed(poisoned, { status: 'False', reason: 'Rejected' });
    for (const each of others) await each.until(() => expect(each.routes('80')[REVIEWS]).toEqual(poison));
    await programmed(poisoned, { message: expect.not.stringContaining('in force') as string });
  });

  test('is taken back if it is theirs, or another tenant says the same, or nobody else is concerned', async () => {
    for (const namespaces of [
      ['shop', 'other'],
      ['tenant', 'other'],
      ['tenant', 'tenant'],
    ]) {
      const { cluster, program, programmed, proxies } = await tenants(...namespaces);
      for (const each of proxies) rejects(each);
      await cluster.apply(poisoned);
      await programmed(poisoned, { status: 'False', message: expect.stringContaining('Generation 1') as string });
      await program.stop();
    }
  });

  test('does not matter where nobody has proven to be of one', async () => {
    const { cluster, programmed, proxies } = await tenants('', '');
    rejects(proxies[0]!);
    await cluster.apply(poisoned);
    await programmed(poisoned, { status: 'False', reason: 'Rejected' });
    await proxies[1]!.until(() => expect(proxies[1]!.routes('80')[REVIEWS]).toEqual(poison));
  });
});

describe('what shuts proxies out', () => {
  const policy = (kind: string, name: string, spec: object, namespace = 'istio-system') => ({
    ...object('security.istio.io/v1', kind, name, {}, namespace),
    spec,
  });
  const deny = (namespace: string, ...accounts: readonly string[]) => {
    const principals = accounts.map((account) => `cluster.local/ns/${account}`);
    const spec = { action: 'DENY', rules: [{ from: [{ source: { principals } }] }] };
    return policy('AuthorizationPolicy', 'lock', spec, namespace);
  };
  const mode = (mtls: string) => policy('PeerAuthentication', 'default', { mtls: { mode: mtls } });
  const issued = (issuer: string) =>
    policy('RequestAuthentication', 'tokens', {
      jwtRules: [{ issuer, jwks: '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}' }],
    });
  const inbound = (proxy: Proxy): string =>
    JSON.stringify(testProtos().toJson(types.listener, proxy.held(LDS).get('virtualInbound') ?? new Uint8Array()));

  test.each([
    ['the root namespace', deny('istio-system', 'old/sa/old'), deny('istio-system', 'shop/sa/batch'), /shop.sa.batch/],
    ['their own namespace', deny('shop', 'old/sa/old'), deny('shop', 'shop/sa/batch'), /shop.sa.batch/],
    ['the root namespace', mode('PERMISSIVE'), mode('STRICT'), /^(?!.*"raw_buffer")/],
    ['the root namespace', issued('https://old.test'), issued('https://new.test'), /new\.test/],
  ])('in %s is in force for the others, whoever rejects it (%#)', async (_, loose, strict, shut) => {
    const { cluster, program, programmed } = await serveNobody(loose);
    const connect = async (namespace: string, i: number) => {
      const id = `sidecar~10.1.0.${i}~reviews-${i}.${namespace}~${namespace}.svc.cluster.local`;
      const proxy = await program.connect(i % 2 === 0, { id });
      await proxy.until(() => expect(inbound(proxy)).not.toMatch(shut));
      return proxy;
    };
    const namespaces = loose.metadata.namespace === 'shop' ? ['shop', 'shop'] : ['shop', 'shop', 'evil-a', 'evil-b'];
    const liars: Proxy[] = [];
    for (const namespace of namespaces) liars.push(await connect(namespace, 1));
    const honest = await connect('shop', 2);
    for (const liar of liars) liar.rejects = ({ typeUrl }) => (typeUrl === LDS ? 'no". All is well.' : undefined);
    await cluster.apply(strict);
    const words = expect.stringContaining(`${liars.length} proxies (reviews-1.shop`) as string;
    await programmed(strict, { status: 'False', reason: 'Rejected', message: words });
    // Clients have had time to follow another mode.
    program.clock.skip(20_000);
    await honest.until(() => expect(inbound(honest)).toMatch(shut));
    await programmed(strict, { status: 'False', reason: 'Rejected', message: words });
    const { message } = conditions(cluster, strict)['Programmed'] as { readonly message: string };
    expect(message).toMatch(/ Listener virtualInbound: "no\\". All is well\."\.$/);
    await later(program, () => inbound(honest)).toMatch(shut);
    for (const liar of liars) liar.close();
    await programmed(strict, acknowledged);
    expect(inbound(honest)).toMatch(shut);
  });
});

describe('of several replicas', () => {
  const labels = { 'app.kubernetes.io/name': 'fairlead', 'app.kubernetes.io/instance': 'fairlead' };
  const replica = (name: string) => {
    const { metadata, ...rest } = pod(name, '10.9.0.1', labels);
    return { ...rest, metadata: { ...metadata, namespace: 'istio-system' } };
  };

  async function two(...objects: readonly KubernetesObject[]) {
    const cluster = await Cluster.create();
    await cluster.apply(...reviews, ...ratings, replica('one'), replica('two'), rule, ...objects);
    const one = await cluster.start({}, 'istio-system/one');
    await one.logged('Became the leader');
    const other = await cluster.start({}, 'istio-system/two');
    await other.logged('Ready');
    return { cluster, one, other };
  }

  const says = (cluster: Cluster, object: KubernetesObject, expected: object) =>
    cluster.changed(() => {
      const { generation } = cluster.object(object).metadata;
      expect(conditions(cluster, object)['Programmed']).toMatchObject({ observedGeneration: generation, ...expected });
    });

  test('all must say that their proxies have it, and those of any are named', async () => {
    const { cluster, one, other } = await two(split(80, 20));
    const [near, far] = [await one.connect(true), await other.connect(true)];
    const message = 'Acknowledged by all 2 proxies that it concerns.';
    await cluster.apply(split(10, 90));
    await says(cluster, split(10, 90), { ...acknowledged, message });
    far.fallSilent();
    await cluster.apply(split(60, 40));
    await near.until(() => expect(near.routes('80')[REVIEWS]).toEqual(splitRoutes(60, 40)));
    one.clock.skip(1_000);
    await says(cluster, split(60, 40), { ...pending, message: expect.stringContaining('1 proxy') as string });
    far.speak();
    await says(cluster, split(60, 40), { ...acknowledged, message });
    far.rejects = ({ typeUrl }) => (typeUrl === RDS ? 'not here' : undefined);
    await cluster.apply(split(50, 50));
    await says(cluster, split(50, 50), { status: 'False', reason: 'Rejected' });
  });

  test('what all have acknowledged stays so when one comes that has said nothing yet', async () => {
    const { cluster, one, other } = await two(split(80, 20));
    for (const program of [one, other]) await program.connect(true);
    await says(cluster, split(80, 20), acknowledged);
    await cluster.apply(replica('three'));
    await one.committed(() => expect(one.object('Pod', 'istio-system', 'three')).toBeDefined());
    one.clock.skip(8_000);
    one.clock.skip(8_000);
    // Its condition is written for another reason.
    await cluster.delete(rule);
    await cluster.changed(() =>
      expect(conditions(cluster, split(80, 20))).toMatchObject({
        ResolvedRefs: { status: 'False' },
        Programmed: acknowledged,
      }),
    );
  });

  test('one that says nothing is named, and one that is gone is not waited for', async () => {
    const { cluster, one, other } = await two(split(80, 20));
    await cluster.apply(replica('three'));
    await one.connect(true);
    await one.committed(() => expect(one.object('Pod', 'istio-system', 'three')).toBeDefined());
    await cluster.apply(split(10, 90));
    const silent = {
      status: 'Unknown',
      reason: 'ReplicaSilent',
      message: expect.stringMatching(/ from istio-system\/three\.$/) as string,
    };
    await later(one, () => conditions(cluster, split(10, 90))['Programmed']).toMatchObject(silent);
    await cluster.delete(replica('three'));
    await later(one, () => conditions(cluster, split(10, 90))['Programmed']).toMatchObject(acknowledged);
    await other.stop();
  });

  test.each(['Failed', 'Succeeded'])(
    'one that has %s is not waited for, although its report is there',
    async (phase) => {
      const { cluster, one } = await two(split(80, 20));
      await cluster.apply(replica('three'));
      const metadata = { name: 'three', namespace: 'istio-system' };
      const spec = { servingSince: '2029-01-01T00:00:00Z', seen: {}, objects: [] };
      cluster.server.cluster.apply(REPORTS, { metadata, spec });
      await one.connect(true);
      await later(one, () => conditions(cluster, split(80, 20))['Programmed']).toMatchObject({
        reason: 'ReplicaSilent',
      });
      await cluster.apply({ ...replica('three'), status: { phase, podIP: '10.9.0.1' } } as KubernetesObject);
      await later(one, () => conditions(cluster, split(80, 20))['Programmed']).toMatchObject(acknowledged);
    },
  );
});

describe('what a proxy rejects for a reason of its own', () => {
  const reason = "cannot bind '0.0.0.0:80': Address already in use";
  const isChanged = (bytes: Uint8Array | undefined): boolean => Buffer.from(bytes ?? []).includes('changed');
  const changed = virtualService('reviews', {
    hosts: ['reviews'],
    http: [{ name: 'changed', route: [{ destination: { host: 'reviews' } }] }],
  });

  test('is in force for the others, and the object says so', async () => {
    const { cluster, program, proxy, programmed } = await serve(true, rule, split(80, 20));
    const proxies = [proxy, await program.connect(false), await program.connect(true)];
    await programmed(split(80, 20), acknowledged);
    let first: string | undefined;
    for (const each of proxies)
      each.rejects = ({ resources }) => {
        if (![...resources.values()].some(isChanged)) return undefined;
        first ??= each.id;
        return first === each.id ? reason : undefined;
      };
    await cluster.apply(changed);
    await programmed(changed, {
      status: 'False',
      reason: 'Rejected',
      message: `Rejected by 1 proxy (client.shop). RouteConfiguration 80: "${reason}".`,
    });
    for (const each of proxies)
      await each.until(() =>
        expect(each.routes('80')[REVIEWS]).toEqual(each.id === first ? splitRoutes(80, 20) : [`/ -> ${clusterOf()}`]),
      );
  });

  test('counts against the object when two of a build say so', async () => {
    const { cluster, program, proxy, programmed } = await serve(true, rule, split(80, 20));
    const proxies = [proxy, await program.connect(false), await program.connect(true)];
    await programmed(split(80, 20), acknowledged);
    for (const each of proxies)
      each.rejects = ({ resources }) => ([...resources.values()].some(isChanged) ? reason : undefined);
    await cluster.apply(changed);
    await programmed(changed, { status: 'False', message: expect.stringContaining('Generation 1') as string });
    for (const each of proxies) expect(each.routes('80')[REVIEWS]).toEqual(splitRoutes(80, 20));
  });
});
