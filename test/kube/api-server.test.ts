import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { KindName } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { releaseEndpoints } from '../../src/commands/endpoint-release.ts';
import { EndpointLab } from '../../src/engine/testing/endpoint-lab.ts';
import { ApiError } from '../../src/kube/client/api-error.ts';
import { type CallOptions, KubeClient } from '../../src/kube/client/client.ts';
import { systemClock } from '../../src/base/clock.ts';
import { PooledKubeConfig } from '../../src/kube/client/credentials.ts';
import { EventRecorder } from '../../src/kube/writing/event-recorder.ts';
import { readKubeConfig } from '../../src/kube/client/kube-config.ts';
import { LeaderElector } from '../../src/kube/writing/lease.ts';
import { FairleadOperator, type FairleadOperatorOptions } from '../../src/kube/reading/operator.ts';
import { Outages } from '../../src/kube/client/outages.ts';
import { StatusWriter } from '../../src/kube/writing/status-writer.ts';
import { RecordingLog } from '../../src/kube/testing/recording-log.ts';
import { RecordingSink } from '../../src/kube/testing/recording-sink.ts';
import { startApiServer, type RunningApiServer } from '../peers/api-server.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { istioStyle } from './istio-style-crd.ts';

withPeers(['etcd', 'kube-apiserver', 'kubectl'], 'a real API server', () => {
  let server: RunningApiServer;
  let ending: AbortController;
  let log: RecordingLog;
  let sink: RecordingSink;
  let operators: FairleadOperator[];
  let namespace: string;
  let tests = 0;

  beforeAll(async () => {
    server = await startApiServer({ controllers: false });
    await server.apply(namespaceOf('istio-system'));
  });
  afterAll(() => server?.stop());
  printLogOnFailure(() => server);

  beforeEach(async () => {
    ending = new AbortController();
    log = new RecordingLog();
    sink = new RecordingSink();
    operators = [];
    namespace = `test-${++tests}`;
    await server.apply(namespaceOf(namespace));
  });
  afterEach(async () => {
    ending.abort();
    await Promise.all(operators.map((operator) => operator.shutdown()));
  });

  function clientOf(path = server.kubeconfig): KubeClient {
    return new KubeClient({ config: new PooledKubeConfig(() => readKubeConfig({ path })) });
  }

  async function start(options: Partial<FairleadOperatorOptions> = {}): Promise<FairleadOperator> {
    const { signal } = ending;
    const operator = new FairleadOperator({
      client: clientOf(),
      sink,
      log,
      signal,
      rootNamespace: 'istio-system',
      meshConfigs: ['istio'],
      ...options,
    });
    operators.push(operator);
    await operator.start();
    return operator;
  }

  async function started(options: Partial<FairleadOperatorOptions> = {}): Promise<FairleadOperator> {
    const operator = await start(options);
    await operator.whenReady();
    return operator;
  }

  const service = (name: string, port = 80): object => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace },
    spec: { selector: { app: name }, ports: [{ name: 'http', port }] },
  });
  const put = (...objects: object[]): Promise<string> =>
    server.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  const mine = (kind: KindName): string[] => sink.names(kind).filter((name) => name.startsWith(`${namespace}/`));
  const found = (kind: KindName, name: string): KubernetesObject | undefined => sink.get(kind, namespace, name);
  const portOf = (name: string): unknown =>
    (found('Service', name) as { spec?: { ports?: { port: number }[] } } | undefined)?.spec?.ports?.[0]?.port;

  test('delivers what the model reads of every core kind', async () => {
    await put(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } },
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'a' } } },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'istio', namespace: 'istio-system' },
        data: { mesh: 'trustDomain: example' },
      },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other', namespace: 'istio-system' }, data: { a: 'b' } },
      service('reviews'),
      {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'reviews', namespace },
        subsets: [{ addresses: [{ ip: '10.244.0.1' }], ports: [{ name: 'http', port: 8080 }] }],
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'reviews-1', namespace, labels: { 'kubernetes.io/service-name': 'reviews' } },
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 8080 }],
        endpoints: [
          { addresses: ['10.244.0.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', namespace, name: 'p' } },
        ],
      },
    );
    await put({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace, labels: { app: 'reviews' } },
      spec: {
        nodeName: 'n1',
        containers: [{ name: 'app', image: 'x', ports: [{ name: 'http', containerPort: 8080 }] }],
      },
    });
    const conditions = [{ type: 'Ready', status: 'True' }];
    const status = { phase: 'Running', podIP: '10.244.0.1', podIPs: [{ ip: '10.244.0.1' }], conditions };
    await server.call('PATCH', `/api/v1/namespaces/${namespace}/pods/p/status`, { status });

    await started();
    expect(found('Pod', 'p')).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace, uid: expect.any(String), labels: { app: 'reviews' } },
      spec: {
        nodeName: 'n1',
        serviceAccountName: 'default',
        containers: [{ name: 'app', ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }] }],
      },
      status: { phase: 'Running', podIP: '10.244.0.1', conditions },
    });
    expect(found('Service', 'reviews')).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'reviews', namespace, uid: expect.any(String), creationTimestamp: expect.any(String) },
      spec: {
        type: 'ClusterIP',
        clusterIP: expect.stringMatching(/^10\.96\./),
        clusterIPs: [expect.stringMatching(/^10\.96\./)],
        ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }],
        selector: { app: 'reviews' },
        internalTrafficPolicy: 'Cluster',
      },
    });
    expect(found('EndpointSlice', 'reviews-1')).toEqual({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'reviews-1', namespace, labels: { 'kubernetes.io/service-name': 'reviews' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: [
        { addresses: ['10.244.0.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', namespace, name: 'p' } },
      ],
    });
    expect(found('Endpoints', 'reviews')).toMatchObject({ subsets: [{ addresses: [{ ip: '10.244.0.1' }] }] });
    expect(sink.get('Node', '', 'n1')).toEqual({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'a' } },
    });
    expect(sink.names('Namespace')).toContain(`/${namespace}`);
    expect(sink.names('ConfigMap')).toEqual(['istio-system/istio']);
    expect(sink.get('ConfigMap', 'istio-system', 'istio')).toMatchObject({ data: { mesh: 'trustDomain: example' } });

    await server.call('PATCH', `/api/v1/namespaces/${namespace}/pods/p/status`, { status: { phase: 'Failed' } });
    await sink.until(() => mine('Pod').length === 0);
  });

  test('delivers changes, deletes, and an object that is created anew', async () => {
    await put(service('a'), service('b'));
    await started({ pageSize: 1 });
    expect(mine('Service')).toEqual([`${namespace}/a`, `${namespace}/b`]);
    await put(service('a', 81), service('c'));
    await sink.until(() => portOf('a') === 81 && mine('Service').length === 3);
    const before = found('Service', 'a')?.metadata.uid;
    await server.kubectl('delete', 'service', '-n', namespace, 'a', 'b');
    await put(service('a', 82));
    await sink.until(() => portOf('a') === 82 && mine('Service').length === 2);
    expect(found('Service', 'a')?.metadata.uid).not.toBe(before);
  });

  test('serves on while the server is killed, and goes on when it is back', async () => {
    await put(service('a'));
    const operator = await started();
    sink.calls.length = 0;
    const restarted = server.restart();
    await log.until('unreachable, retrying');
    expect(mine('Service')).toEqual([`${namespace}/a`]);
    expect(operator.ready()).toBe(true);
    await restarted;
    await put(service('a', 81), service('b'));
    await sink.until(() => portOf('a') === 81 && mine('Service').length === 2);
    expect(operator.ready()).toBe(true);
    expect(sink.calls.filter((call) => call.startsWith('delete'))).toEqual([]);
    expect(operator.stats().malformedObjects).toBe(0);
  });

  test('is waited for when it is not there yet', async () => {
    const restarted = server.restart();
    const operator = await start();
    await log.until('unreachable, retrying');
    expect(operator.ready()).toBe(false);
    await restarted;
    await operator.whenReady();
    expect(log.messages().filter((message) => message.includes('unreachable, retrying'))).toHaveLength(1);
  });

  test('may refuse the credentials at first, and the rights after that', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'fairlead-token-'));
    const token = join(directory, 'token');
    writeFileSync(token, 'expired');
    const kubeconfig = join(directory, 'kubeconfig');
    const ca = Buffer.from(server.ca).toString('base64');
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: server.url, 'certificate-authority-data': ca } }],
        users: [{ name: 'u', user: { tokenFile: token } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    );
    await put({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'fairlead', namespace } }, service('a'));
    const operator = await start({ client: clientOf(kubeconfig) });
    await log.until('refusing the credentials');
    writeFileSync(token, await server.kubectl('create', 'token', '-n', namespace, 'fairlead'));
    await log.until('denying access');
    expect(operator.ready()).toBe(false);
    await put({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', name: 'fairlead', namespace }],
    });
    await operator.whenReady();
    expect(mine('Service')).toEqual([`${namespace}/a`]);
    await rm(directory, { recursive: true });
  });

  test('loses endpoints from a list: they are held while their Pods are ready, and released', async () => {
    const shop = 'shop';
    await server.apply(namespaceOf(shop));
    const { metadata, ...rest } = service('reviews') as { metadata: object };
    await put(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: shop } },
      { ...rest, metadata: { ...metadata, namespace: shop } },
    );
    const ips = ['10.244.1.1', '10.244.1.2'];
    const targets: object[] = [];
    for (const [i, ip] of ips.entries()) {
      const name = `p${i}`;
      const spec = { nodeName: 'n1', containers: [{ name: 'app', image: 'x' }] };
      await put({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: shop, labels: { app: 'reviews' } },
        spec,
      });
      const conditions = [{ type: 'Ready', status: 'True' }];
      const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions };
      const pod = await server.call('PATCH', `/api/v1/namespaces/${shop}/pods/${name}/status`, { status });
      const { uid } = pod['metadata'] as { uid: string };
      targets.push({ addresses: [ip], targetRef: { kind: 'Pod', namespace: shop, name, uid } });
    }
    const slice = (endpoints: readonly object[]): object => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'reviews-1', namespace: shop, labels: { 'kubernetes.io/service-name': 'reviews' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints,
    });
    await put(slice(targets));
    const client = new InterruptedClient({
      config: new PooledKubeConfig(() => readKubeConfig({ path: server.kubeconfig })),
    });
    const lab = new EndpointLab(systemClock);
    const operator = await started({ client, sink: lab.sink });
    expect(lab.served()).toEqual(ips);

    client.interrupt();
    await put(slice([]));
    client.resume();
    await expect.poll(() => operator.stats().kinds.EndpointSlice?.lists, { timeout: 15_000 }).toBe(2);
    expect([lab.served(), lab.held()]).toEqual([ips, ips.map((ip) => `reviews ${ip}`)]);
    await server.kubectl('delete', 'pod', '-n', shop, 'p1', '--force', '--grace-period=0');
    await expect.poll(() => lab.served()).toEqual(ips.slice(0, 1));

    const events = new EventRecorder({
      ...{ api: clientOf(), identity: 'ns/one', clock: systemClock, random: Math.random, log },
      outages: new Outages({ log, clock: systemClock }),
      signal: ending.signal,
    });
    const uid = lab.mesh.inputs.objects.Service.get(`Kubernetes/${shop}/reviews`)?.metadata.uid ?? '';
    const object = { apiVersion: 'v1', kind: 'Service', namespace: shop, name: 'reviews', uid };
    events.report({ key: 'held/1', object, reason: 'EndpointsHeld', message: 'are held' });
    await events.idle();
    expect(await server.kubectl('describe', 'service', '-n', shop, 'reviews')).toMatch(
      /EndpointsHeld .* fairlead +are held/,
    );

    const source = { kind: 'kubernetes', kubeconfig: server.kubeconfig } as const;
    await releaseEndpoints({ source, rootNamespace: '' }, { namespace: shop, name: 'reviews' }, ending.signal);
    await expect.poll(() => [lab.served(), lab.held()]).toEqual([[], []]);
    lab.end();
  });

  test('lets one of two replicas lead, and the other one when that ends', async () => {
    const [a, b] = ['a', 'b'].map((identity) => {
      const stop = new AbortController();
      let elected: () => void;
      const leads = new Promise<void>((fulfil) => (elected = fulfil));
      const elector = new LeaderElector({
        api: clientOf(),
        namespace,
        name: 'fairlead',
        identity,
        clock: systemClock,
        random: Math.random,
        log,
        onElected: () => elected(),
        leaseDuration: 3_000,
      });
      return { elector, leads, stop, start: () => elector.run({ signal: stop.signal }) };
    }) as [Replica, Replica];
    const runs = [a.start(), b.start()];
    const first = await Promise.race([a.leads.then(() => a), b.leads.then(() => b)]);
    const second = first === a ? b : a;
    expect([first.elector.isLeader(), second.elector.isLeader()]).toEqual([true, false]);
    first.stop.abort();
    await second.leads;
    expect([first.elector.isLeader(), second.elector.isLeader()]).toEqual([false, true]);
    const lease = await server.call('GET', `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/fairlead`);
    expect(lease['spec']).toMatchObject({ holderIdentity: second === a ? 'a' : 'b', leaseDurationSeconds: 3 });
    second.stop.abort();
    await Promise.all(runs);
  });

  describe('with CRDs', () => {
    const gateways = `/apis/networking.istio.io/v1/namespaces/NS/gateways`;
    const gateway = (name: string): object => ({
      apiVersion: 'networking.istio.io/v1',
      kind: 'Gateway',
      metadata: { name, namespace },
      spec: { servers: [{ hosts: ['*'], port: { number: 80, name: 'http', protocol: 'HTTP' } }] },
    });

    test('that appear late and go again: the kind is empty, filled, and empty', async () => {
      const operator = await started();
      expect(operator.stats().kinds.Gateway).toMatchObject({ installed: false, synced: true });
      expect(sink.names('Gateway')).toEqual([]);
      await server.apply(crd('gateways'));
      await server.kubectl('wait', '--for=condition=Established', 'crd/gateways.networking.istio.io');
      await put(gateway('g'));
      await sink.until(() => mine('Gateway').length === 1);
      await server.kubectl('delete', 'crd', 'gateways.networking.istio.io');
      await sink.until(() => mine('Gateway').length === 0);
      await server.apply(crd('gateways'));
      await server.kubectl('wait', '--for=condition=Established', 'crd/gateways.networking.istio.io');
      await put(gateway('h'));
      await sink.until(() => mine('Gateway').join() === `${namespace}/h`);
    });

    test.each<[string, () => string]>([
      ['of ours', () => crd('gateways')],
      ["of Istio's, whose list of conditions is atomic", () => istioStyle],
    ])('%s: conditions are written, beside those of others, also after a conflict', async (_, definition) => {
      await server.apply(definition());
      await server.kubectl('wait', '--for=condition=Established', 'crd/gateways.networking.istio.io');
      await put(gateway('g'));
      const path = `${gateways.replace('NS', namespace)}/g`;
      let latest: () => KubernetesObject | undefined = () => undefined;
      const writer: StatusWriter = new StatusWriter({
        api: clientOf(),
        latest: () => latest(),
        types: ['Accepted'],
        clock: systemClock,
        random: Math.random,
        log,
      });
      const operator = await started({ observed: (...at) => writer.observed(...at) });
      const stale = operator.latest('Gateway', namespace, 'g')!;
      const other = {
        type: 'example.com/Other',
        status: 'True',
        reason: 'Good',
        message: '',
        observedGeneration: 1,
        lastTransitionTime: '2029-01-01T00:00:00Z',
      };
      const body = (await server.call('GET', path)) as Record<string, unknown>;
      await server.call('PUT', `${path}/status`, { ...body, status: { conditions: [other] } });

      latest = () => stale;
      const term = new AbortController();
      writer.lead(term.signal, '');
      const { uid = '', generation = 0 } = stale.metadata;
      const at = { kind: 'Gateway', namespace, name: 'g', uid, generation } as const;
      const accepted = { type: 'Accepted', status: 'True', reason: 'Valid', observedGeneration: generation } as const;
      writer.set('k', { ...at, conditions: [{ ...accepted, message: 'first' }] });
      await server.kubectl('wait', '--for=condition=Accepted', '-n', namespace, 'gateway.networking.istio.io/g');
      const conditionsOf = (object: unknown): unknown =>
        (object as { status?: { conditions?: unknown } }).status?.conditions;
      expect(conditionsOf(await server.call('GET', path))).toEqual([
        other,
        { ...accepted, message: 'first', lastTransitionTime: expect.any(String) },
      ]);
      await writer.idle();
      expect(writer.stats()).toMatchObject({ writes: 1, conflicts: 1, failures: 0 });

      latest = () => operator.latest('Gateway', namespace, 'g');
      writer.set('k', { ...at, conditions: [{ ...accepted, status: 'False', message: 'second' }] });
      await server.kubectl('wait', '--for=condition=Accepted=false', '-n', namespace, 'gateway.networking.istio.io/g');
      expect(conditionsOf(await server.call('GET', path))).toMatchObject([other, { message: 'second' }]);
      // What was written does not change the model.
      expect(sink.calls.filter((call) => call.startsWith('upsert Gateway'))).toEqual([]);
      term.abort();
      await server.kubectl('delete', 'crd', 'gateways.networking.istio.io');
    });
  });
});

/** A connection that can be interrupted: no watch that was open before can be resumed afterwards. */
class InterruptedClient extends KubeClient {
  private line = new AbortController();
  private readonly mayWatch = new Set<string>();
  private wasInterrupted = false;

  override async stream(path: string, options: CallOptions): Promise<AsyncIterable<Uint8Array>> {
    if (this.line.signal.aborted) throw new ApiError('interrupted', { code: 0, reason: 'ECONNRESET', retryable: true });
    if (this.wasInterrupted && !this.mayWatch.has(path)) {
      this.mayWatch.add(path);
      throw new ApiError('too old', { code: 410, reason: 'Expired', retryable: true });
    }
    return super.stream(path, { ...options, signal: AbortSignal.any([options.signal, this.line.signal]) });
  }

  interrupt(): void {
    this.wasInterrupted = true;
    this.line.abort();
  }

  resume(): void {
    this.line = new AbortController();
  }
}

interface Replica {
  readonly elector: LeaderElector;
  readonly leads: Promise<void>;
  readonly stop: AbortController;
  readonly start: () => Promise<void>;
}

function namespaceOf(name: string): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}

function crd(plural: string): string {
  return readFileSync(resolve(import.meta.dirname, `../../crds/${plural}.yaml`), 'utf8');
}
