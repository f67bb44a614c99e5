import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kinds } from '../../src/api/kinds.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { blockOf } from '../docs/markdown.ts';
import { SDS } from '../features/proxy.ts';
import { CHART, IMAGES, NAMESPACE, renderChart } from '../chart/chart.ts';
import { covers, permissionsOf, printPermission } from '../chart/permissions.ts';
import { OpenSsl } from '../../src/identity/testing/openssl.ts';
import { secureCall, signCertificate } from '../harness/secure-call.ts';
import type { ApiObject, RunningApiServer } from '../peers/api-server.ts';
import { startEnvoy, type RunningEnvoy } from '../peers/envoy.ts';
import { pathOf } from '../peers/peer.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { ACCOUNT, install, type Installed, type Replica } from './installed.ts';
import { ALL, object, reviews, routes, rule, web } from './shop.ts';
import { ask, startBackend, startFrontend, startSteadyClient, type Backend, type Frontend } from './traffic.ts';

const peers = ['envoy', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'] as const;

withPeers(peers, 'Fairlead installed by its chart', () => {
  const stopping = new AbortController();
  const backends = new Map<string, Backend>();
  let cluster: Installed;
  let frontend: Frontend;
  let envoy: RunningEnvoy;
  let first: Replica;
  let second: Replica;
  let httpPort = 0;
  let webPort = 0;
  const outage = { begin: 0, end: 0 };
  const restore = { begin: 0, end: 0 };
  printLogOnFailure(() => ({
    log: () => [first, second].map((replica) => `--- ${replica?.pod}\n${replica?.process.log()}`).join('\n'),
  }));

  beforeAll(async () => {
    for (const name of ['v1', 'v2', 'v3', 'ratings']) backends.set(name, await startBackend(name));
    [httpPort = 0, webPort = 0] = await freePorts(2);
    const values = [
      ...['--set', 'meshConfig.outboundTrafficPolicy.mode=REGISTRY_ONLY'],
      ...['--set', 'credentials.namespaces={shop}'],
    ];
    // A Role is made there.
    const before = async (api: RunningApiServer): Promise<void> =>
      void (await api.kubectl('create', 'namespace', 'shop'));
    [cluster, frontend] = await Promise.all([install({ before, values }), startFrontend()]);
    const [one = '', two = ''] = await cluster.pods();
    first = await cluster.start(one);
    await poll('a leader', async () => ((await first.metric('fairlead_leader')) === 1 ? true : undefined), first);
    second = await cluster.start(two);
    await Promise.all([first.ready(), second.ready()]);
    frontend.use(first.securePort, second.securePort);
    // Without interception a proxy listens on the port of every Service that it can reach; 443 is not everybody's.
    await apply(object('Sidecar', 'default', { egress: [{ hosts: ['./*'] }] }));
    await accepted('sidecar/default');
    envoy = await startEnvoy({
      adsPort: frontend.port,
      delta: true,
      tls: await cluster.certify('shop', 'client'),
      node: {
        id: 'sidecar~10.244.1.1~client.shop~shop.svc.cluster.local',
        metadata: { NAMESPACE: 'shop', SERVICE_ACCOUNT: 'client', INTERCEPTION_MODE: 'NONE' },
      },
    });
  });
  afterAll(async () => {
    stopping.abort();
    await envoy?.stop();
    frontend?.close();
    await cluster?.stop();
    for (const backend of backends.values()) backend.close();
  });

  const apply = (...objects: readonly object[]): Promise<string> =>
    cluster.api.apply(objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  const kubectl = (...args: string[]): Promise<string> => cluster.api.kubectl('-n', 'shop', ...args);
  const accepted = (object: string, seconds = 10): Promise<string> =>
    kubectl('wait', '--for=condition=Accepted', object, `--timeout=${seconds}s`);
  const client = (host = reviews) => startSteadyClient(httpPort, host, stopping.signal);
  const port = (name: string): number => backends.get(name)?.port ?? expect.fail(`there is no ${name}`);
  const entry = (host: string, versions: Readonly<Record<string, string>>): object =>
    object('ServiceEntry', host.split('.')[0]!, {
      hosts: [host],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: httpPort, name: 'http', protocol: 'HTTP' }],
      endpoints: Object.entries(versions).map(([version, backend]) => ({
        address: '127.0.0.1',
        ports: { http: port(backend) },
        labels: { version },
      })),
    });

  const serverName = `fairlead.${NAMESPACE}.svc`;
  const rootsNow = async (): Promise<string | undefined> => {
    const path = '/api/v1/namespaces/shop/configmaps/istio-ca-root-cert';
    const map = (await cluster.api.call('GET', path).catch(() => ({}))) as { readonly data?: Record<string, string> };
    return map.data?.['root-cert.pem'];
  };
  const tokenOf = async (account: string, ...audiences: string[]): Promise<string> => {
    const tokens = `/api/v1/namespaces/shop/serviceaccounts/${account}/token`;
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences } };
    return ((await cluster.api.call('POST', tokens, request))['status'] as { token: string }).token;
  };

  test('signs certificates for the service accounts that the API server vouches for', async () => {
    const roots = await poll('the roots in the namespace', rootsNow);
    await cluster.api.kubectl(
      '-n',
      'shop',
      'patch',
      'configmap',
      'istio-ca-root-cert',
      '-p',
      '{"data":{"root-cert.pem":"x"}}',
    );
    await poll('the roots again', async () => ((await rootsNow()) === roots ? true : undefined));
    const csr = new OpenSsl().request('rsa:2048');
    for (const { securePort } of [first, second]) {
      const chain = await signCertificate(securePort, await callAs('default', roots), csr);
      expect(chain).toEqual([expect.any(String), roots]);
      expect(new X509Certificate(chain[0]!).subjectAltName).toBe('URI:spiffe://cluster.local/ns/shop/sa/default');
      expect(chain.at(-1)).toBe(roots);
    }
    const wrong = secureCall(roots, { token: await tokenOf('default') }, serverName);
    expect(await signCertificate(first.securePort, wrong, csr)).toMatch(/^UNAUTHENTICATED/);
  });

  const callAs = async (account: string, roots: string) =>
    secureCall(roots, { token: await tokenOf(account, 'istio-ca') }, serverName);

  test('gives Secrets to routers whose service account may list them', async () => {
    const openssl = new OpenSsl();
    openssl.cacerts('ec -pkeyopt ec_paramgen_curve:P-256');
    const [certificate, key] = [openssl.read('root.pem'), openssl.read('root.key')];
    const metadata = (name: string): object => ({ name, namespace: 'shop' });
    const stringData = { 'tls.crt': certificate, 'tls.key': key };
    const tls = { mode: 'MUTUAL', credentialName: 'site', caCertCredentialName: 'configmap://shop/clients' };
    const server = { port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: ['site.example'], tls };
    await apply(
      { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls', metadata: metadata('site'), stringData },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('clients'), data: { 'ca.crt': certificate } },
      object('Gateway', 'site', { selector: { app: 'router' }, servers: [server] }),
    );
    await kubectl('create', 'serviceaccount', 'router');
    await kubectl('create', 'role', 'secrets', '--verb=get,list,watch', '--resource=secrets');
    await kubectl('create', 'rolebinding', 'secrets', '--role=secrets', '--serviceaccount=shop:router');
    const roots = (await rootsNow())!;
    const connect = async (account: string, ...names: string[]): Promise<XdsClient> => {
      const client = new XdsClient(first.securePort, true, undefined, await callAs(account, roots));
      const node = { id: 'router~10.0.0.1~a.shop~shop.svc.cluster.local', labels: { app: 'router' } };
      client.send({ typeUrl: SDS, node, subscribe: names });
      return client;
    };
    for (const name of ['configmap://shop/clients', 'kubernetes://site']) {
      const router = await connect('router', name);
      await router.nextWith(SDS, name);
      router.close();
    }
    const other = await connect('default', 'kubernetes://site');
    await poll('that it is told', async () => {
      const { message } = await observed('gateways/site', 'ResolvedRefs');
      return message.includes('Service account shop/default must be allowed to list Secrets') ? true : undefined;
    });
    expect(other.received.flatMap(({ resources }) => [...resources.keys()])).toEqual([]);
    other.close();
    await kubectl('delete', 'gateway/site');
  });

  test('runs two Pods that the strictest standard admits, one of which leads', async () => {
    expect(await cluster.pods()).toHaveLength(2);
    expect(await holder(cluster)).toBe(first.pod);
    expect(await second.metric('fairlead_leader')).toBe(0);
  });

  test('routes what kubectl applies, through every change without a lost request', async () => {
    await apply(entry(reviews, { v1: 'v1', v2: 'v2' }), rule({ stable: 'v1', next: 'v2' }), routes('stable'));
    await accepted('virtualservice/reviews');
    await envoy.ready();
    await poll('the first answer', async () => ((await ask(httpPort, reviews)) === '200 v1' ? true : undefined));

    const steady = client();
    await steady.until('200 v1');
    await apply(routes('next'));
    await steady.until('200 v2');
    await apply(rule({ stable: 'v1', next: 'v1' }));
    await steady.until('200 v1');
    await apply(entry(reviews, { v1: 'v3', v2: 'v2' }));
    await steady.until('200 v3');
    await apply(rule({ stable: 'v1', next: 'v1', canary: 'v2' }), routes('canary'));
    await steady.until('200 v2');
    expect(await steady.stop()).toEqual(['200 v1', '200 v2', '200 v1', '200 v3', '200 v2']);
  });

  test('deletes objects without a lost request of others', async () => {
    const ratings = 'ratings.shop.example';
    await apply(entry(ratings, { v1: 'ratings' }));
    await poll('the other host', async () => ((await ask(httpPort, ratings)) === '200 ratings' ? true : undefined));
    const steady = client();
    await steady.until('200 v2');
    await kubectl('delete', 'virtualservice/reviews');
    await steady.until('200 v3');
    await kubectl('delete', 'destinationrule/reviews');
    await poll('no subsets', async () => {
      const { clusters } = await envoy.configDump();
      return clusters.some(({ name }) => name.includes('|stable|')) ? undefined : true;
    });
    await kubectl('delete', 'serviceentry/ratings');
    await poll('no such host', async () => ((await ask(httpPort, ratings)) === '502' ? true : undefined));
    await steady.more(10);
    expect(new Set(await steady.stop())).toEqual(new Set(['200 v2', '200 v3']));
  });

  test('says in the status what is wrong, where, and of which generation', async () => {
    await apply(rule({ stable: 'v1' }), routes('stable'));
    await accepted('virtualservice/reviews');
    await kubectl('wait', '--for=condition=ResolvedRefs', 'virtualservice/reviews', '--timeout=10s');
    const before = await observed('virtualservices/reviews', 'ResolvedRefs');

    const broken = routes('stable', 'missing.shop.example');
    await apply(broken);
    await kubectl('wait', '--for=condition=ResolvedRefs=False', 'virtualservice/reviews', '--timeout=10s');
    const after = await observed('virtualservices/reviews', 'ResolvedRefs');
    expect(after).toMatchObject({ status: 'False', reason: 'RefNotFound' });
    expect(after.message).toContain('spec.http[0].route[0].destination.host');
    expect(after.message).toContain('missing.shop.example');
    expect(after.observedGeneration).toBe(before.observedGeneration + 1);
    expect(await observed()).toMatchObject({ status: 'True' });

    expect(await columns('virtualservice/reviews')).toMatchObject({
      NAME: 'reviews',
      HOSTS: `["${reviews}"]`,
      ACCEPTED: 'True',
      RESOLVEDREFS: 'False',
    });
    await apply(routes('stable'));
    await kubectl('wait', '--for=condition=ResolvedRefs', 'virtualservice/reviews', '--timeout=10s');
  });

  test('says in an Event what is not accepted, as kubectl describe shows it', async () => {
    const twice = object('VirtualService', 'reviews-again', {
      hosts: [reviews],
      http: [{ directResponse: { status: 200 } }],
    });
    await apply(twice);
    await kubectl('wait', '--for=condition=Accepted=False', 'virtualservice/reviews-again', '--timeout=10s');
    const events = await poll('an Event', async () => {
      const [, shown] = (await kubectl('describe', 'virtualservice/reviews-again')).split('Events:');
      return shown?.includes('Conflicted') === true ? shown : undefined;
    });
    expect(events).toMatch(/Warning +Conflicted .* fairlead +.*VirtualService\/shop\/reviews/);
    await kubectl('delete', 'virtualservice/reviews-again');
  });

  async function columns(name: string): Promise<Readonly<Record<string, string>>> {
    const [titles = '', row = ''] = (await kubectl('get', name)).split('\n');
    const found = [...titles.matchAll(/\S+(?: \S+)*/g)];
    return Object.fromEntries(
      found.map(({ 0: title, index }, i) => [title, row.slice(index, found[i + 1]?.index).trim()]),
    );
  }

  async function conditionOf(type: string, path = 'virtualservices/reviews'): Promise<Condition | undefined> {
    const found = await cluster.api.call('GET', `/apis/networking.istio.io/v1/namespaces/shop/${path}`);
    const { conditions = [] } = (found['status'] ?? {}) as { conditions?: Condition[] };
    return conditions.find(
      (condition) => condition.type === type && condition.observedGeneration === found.metadata?.['generation'],
    );
  }

  /** The condition is about the newest generation. */
  const observed = (path = 'virtualservices/reviews', type = 'Accepted'): Promise<Condition> =>
    poll(`${type} of ${path}`, () => conditionOf(type, path));

  test('follows the Pods behind a Service, with their localities', async () => {
    await apply(...web(webPort));
    const name = `outbound|${webPort}||web.shop.svc.cluster.local`;
    const addresses = (count: number) =>
      poll(`${count} endpoints`, async () => {
        const { endpoints } = await envoy.configDump();
        const found = (endpoints.find((each) => each.name === name)?.resource ?? {}) as Assignment;
        const all = (found.endpoints ?? []).flatMap(({ lb_endpoints = [], locality }) =>
          lb_endpoints.map(({ endpoint }) => ({ ...locality, ...endpoint.address.socket_address })),
        );
        return all.length === count ? all : undefined;
      });
    for (const each of await addresses(2))
      expect(each).toMatchObject({
        region: 'region-1',
        zone: 'zone-1',
        address: expect.stringMatching(/^10\.244\.0\./) as string,
        port_value: 9080,
      });
    await kubectl('scale', 'deployment/web', '--replicas=3');
    await addresses(3);
    await kubectl('scale', 'deployment/web', '--replicas=1');
    await addresses(1);
  });

  test('follows the mesh config of the chart without a restart', async () => {
    const unknownHosts = async (): Promise<string | undefined> => {
      const { routes: tables } = await envoy.configDump();
      const table = tables.find(({ name }) => name === String(httpPort))?.resource as RouteTable | undefined;
      return table?.virtual_hosts.map(({ name }) => name).find((name) => /^(block_all|allow_any)$/.test(name));
    };
    expect(await unknownHosts()).toBe('block_all');
    const pods = await cluster.pods();
    const values = ['--reuse-values', '--set', 'meshConfig.outboundTrafficPolicy.mode=ALLOW_ANY'];
    await cluster.api.helm('upgrade', 'fairlead', 'charts/fairlead', '-n', NAMESPACE, ...values);
    await poll('other hosts', async () => ((await unknownHosts()) === 'allow_any' ? true : undefined));
    expect(await cluster.pods()).toEqual(pods);
  });

  test('gives conditions to every kind, also while others write the same objects', async () => {
    await apply(...ALL.map(({ kind, name, spec, vary }) => object(kind, name, { ...spec, ...vary(0) })));
    await Promise.all(ALL.map(({ kind, name }) => accepted(`${kind.toLowerCase()}/${name}`)));
    await Promise.all(ALL.map((each) => untilConflict(each)));
    await Promise.all(ALL.map(({ kind, name }) => accepted(`${kind.toLowerCase()}/${name}`)));
  }, 300_000);

  /**
   * Changes the spec, so that there is a condition to be written, and goes on with changes of an annotation, until
   * Fairlead was late with its write and read the object again.
   */
  async function untilConflict({ kind, name, spec, vary }: (typeof ALL)[number]): Promise<void> {
    const { plural = '', group, version } = kinds.find((each) => each.kind === kind) ?? {};
    const path = `/apis/${group}/${version}/namespaces/shop/${plural}/${name}`;
    let round = 0;
    const oneRound = async (): Promise<true | undefined> => {
      let current = { ...(await cluster.api.call('GET', path)), spec: { ...spec, ...vary(++round) } };
      // Longer than proxies are waited for, so that there is one write for both.
      for (let write = 0; write < 120; write++) {
        const annotations = { 'example.com/write': `${round}.${write}` };
        const next = { ...current, metadata: { ...current.metadata, annotations } };
        const written = await cluster.api.call('PUT', path, next).catch(() => cluster.api.call('GET', path));
        current = { ...written, spec: next.spec };
      }
      const requests = await cluster.audit.requests();
      return requests.some((r) => r.verb === 'get' && r.resource === plural && r.name === name) ? true : undefined;
    };
    // What takes time is the rounds, of which a busy machine has few in the usual patience.
    await poll(`a conflict over ${kind}`, oneRound, { timeoutMs: 120_000 });
  }

  test('serves on while the API server is away, and what changed after it', async () => {
    const steady = client();
    await steady.until('200 v3');
    outage.begin = Date.now();
    await cluster.api.restart();
    outage.end = Date.now();
    // The watches come back together: neither is seen without the other.
    await apply(rule({ stable: 'v1', next: 'v2' }), routes('next'));
    await steady.until('200 v2');
    expect(await steady.stop()).toEqual(['200 v3', '200 v2']);
    await observed('destinationrules/reviews');
    await observed('virtualservices/reviews');
  });

  test('goes on with the other replica when the leader dies: routes at once, conditions when the Lease has run out', async () => {
    const steady = client();
    await steady.until('200 v2');
    await first.process.stop();
    await apply(routes('stable'));
    await steady.until('200 v3');
    expect(await steady.stop()).toEqual(['200 v2', '200 v3']);
    await apply(
      object('VirtualService', 'late', { hosts: ['late.shop.example'], http: [{ directResponse: { status: 204 } }] }),
    );
    await accepted('virtualservice/late', 40);
    expect(await holder(cluster)).toBe(second.pod);
    expect(await second.metric('fairlead_leader')).toBe(1);
  }, 60_000);

  test('hands the Lease over when the leader is told to end', async () => {
    first = await cluster.start(first.pod);
    await first.ready();
    expect(await first.metric('fairlead_leader')).toBe(0);
    process.kill(second.process.pid, 'SIGTERM');
    expect(await second.process.exited).toBe(0);
    await poll('the new leader', async () => ((await holder(cluster)) === first.pod ? true : undefined), first);
    await apply(
      object('VirtualService', 'later', { hosts: ['later.shop.example'], http: [{ directResponse: { status: 204 } }] }),
    );
    await accepted('virtualservice/later');
  });

  test('keeps what was good of an object while that is not', async () => {
    const route = (value: string, status = 204) => {
      const headers = { response: { set: { 'x-kind': value } } };
      const http = [{ headers, directResponse: { status } }];
      return object('VirtualService', 'kept', { hosts: ['kept.shop.example'], http });
    };
    const path = '/apis/fairlead.dev/v1alpha1/namespaces/shop/generationsinforce';
    const keeps = (newest?: number): Promise<true> =>
      poll(`what is kept beside generation ${newest}`, async () => {
        const { items } = (await cluster.api.call('GET', path)) as unknown as { items: { spec: { newest: number } }[] };
        return items[0]?.spec.newest === newest ? true : undefined;
      });
    await apply(route('plain'));
    await accepted('virtualservice/kept');
    await apply(route('%REQ('));
    await keeps(2);
    await apply(route('%REQ(', 200));
    await keeps(3);
    await apply(route('mended'));
    await keeps(undefined);
  });

  test('namespaces move to a canary of another revision, one by one and back, without a lost request', async () => {
    const cartFrontend = await startFrontend();
    const proxies = { shop: frontend, cart: cartFrontend };
    const cart = 'cart.example';
    const [cartPort = 0] = await freePorts(1);
    await cluster.api.kubectl('create', 'namespace', 'cart');
    const inCart = (kind: string, spec: object): object => {
      const made = object(kind, 'cart', spec) as { readonly metadata: object };
      return { ...made, metadata: { ...made.metadata, namespace: 'cart' } };
    };
    const toRatings = inCart('ServiceEntry', {
      hosts: [cart],
      exportTo: ['.'],
      resolution: 'STATIC',
      ports: [{ number: cartPort, name: 'http', protocol: 'HTTP' }],
      endpoints: [{ address: '127.0.0.1', ports: { http: port('ratings') } }],
    });
    await apply(inCart('Sidecar', { egress: [{ hosts: ['./*'] }] }), toRatings);
    const answering = (status: number): object =>
      inCart('VirtualService', { hosts: [cart], http: [{ directResponse: { status } }] });

    // The same values as those of the stable release, with a revision: neither takes anything from the other.
    // It goes by the name of the stable one: these Envoys move as they are, where Pods would be replaced.
    const values = [
      ...['--set', 'revision=canary,replicas=1'],
      ...['--set', 'extraArgs={--secure-names=fairlead.istio-system.svc}'],
    ];
    await cluster.api.helm(
      'install',
      'canary',
      CHART,
      '-n',
      NAMESPACE,
      '--wait',
      '--timeout',
      '30s',
      ...IMAGES,
      ...values,
    );
    const [pod = ''] = await cluster.pods('canary');
    const canary = await cluster.start(pod);
    await canary.ready();

    const ports = { stable: first.securePort, canary: canary.securePort };
    const move = async (namespace: keyof typeof proxies, to: keyof typeof ports): Promise<void> => {
      const label = to === 'canary' ? 'istio.io/rev=canary' : 'istio.io/rev-';
      await cluster.api.kubectl('label', 'namespace', namespace, label);
      // Its Pods would be replaced by others that connect to the other revision.
      proxies[namespace].cut();
      proxies[namespace].use(ports[to]);
    };
    const streams = (stable: number, other: number): Promise<true> =>
      poll(`${stable} streams to stable and ${other} to canary`, async () => {
        const found = await Promise.all([first, canary].map((replica) => replica.metric('pilot_xds{.*}')));
        return found[0] === stable && found[1] === other ? true : undefined;
      });

    // It has another port than before it ended.
    for (const each of Object.values(proxies)) each.use(ports.stable);
    const cartEnvoy = await startEnvoy({
      adsPort: cartFrontend.port,
      delta: true,
      tls: await cluster.certify('cart', 'client'),
      node: {
        id: 'sidecar~10.244.1.2~client.cart~cart.svc.cluster.local',
        metadata: { NAMESPACE: 'cart', SERVICE_ACCOUNT: 'client', INTERCEPTION_MODE: 'NONE' },
      },
    });
    try {
      await cartEnvoy.ready();
      await poll('cart', async () => ((await ask(cartPort, cart)) === '200 ratings' ? true : undefined));
      await streams(2, 0);
      const shopClient = client();
      const cartClient = startSteadyClient(cartPort, cart, stopping.signal);
      await shopClient.until('200 v3');

      await move('cart', 'canary');
      await streams(1, 1);
      // Both revisions follow objects without a label, also while they share them.
      await apply(routes('next'), answering(204));
      await Promise.all([shopClient.until('200 v2'), cartClient.until('204')]);
      await move('shop', 'canary');
      await streams(0, 2);
      // Without a mesh config of its own, the canary has that of all.
      await cluster.api.kubectl('-n', NAMESPACE, 'delete', 'configmap', 'istio-canary');
      const config = '{"data":{"mesh":"outboundTrafficPolicy: {mode: REGISTRY_ONLY}"}}';
      await cluster.api.kubectl('-n', NAMESPACE, 'patch', 'configmap', 'istio', '-p', config);
      await poll('other hosts', async () => ((await ask(httpPort, 'other.example')) === '502' ? true : undefined));
      await apply(routes('stable'));
      await shopClient.until('200 v3');
      await move('shop', 'stable');
      await streams(1, 1);
      await move('cart', 'stable');
      await streams(2, 0);
      await cluster.api.helm('uninstall', 'canary', '-n', NAMESPACE, '--wait', '--timeout', '30s');
      await canary.process.stop();
      await apply(routes('next'), answering(200));
      await Promise.all([shopClient.until('200 v2'), cartClient.until('200')]);
      expect(await shopClient.stop()).toEqual(['200 v3', '200 v2', '200 v3', '200 v2']);
      expect(await cartClient.stop()).toEqual(['200 ratings', '204', '200']);
      expect(Object.values(await cartEnvoy.stats('update_rejected')).filter((value) => value > 0)).toEqual([]);
    } finally {
      await cartEnvoy.stop();
      cartFrontend.close();
    }
  }, 90_000);

  test('never had anything refused by a proxy', async () => {
    const rejected = await envoy.stats('update_rejected');
    expect(Object.entries(rejected).filter(([, value]) => value > 0)).toEqual([]);
  });

  test('begins with no other root when its keys are lost, and goes on when they are restored from a backup', async () => {
    const roots = await rootsNow();
    const signed = async (): Promise<string> => {
      const chain = await signCertificate(first.securePort, await callAs('default', roots!), csr);
      return typeof chain === 'string' ? chain : chain.at(-1)!;
    };
    const csr = new OpenSsl().request('rsa:2048');
    expect(await signed()).toBe(roots);
    // In a directory of its own: the file holds the keys.
    const directory = await mkdtemp(join(tmpdir(), 'fairlead-backup-'));
    try {
      const run = async (block: string): Promise<void> => {
        const command = blockOf(block);
        expect(command).toContain('kubectl');
        const env = {
          PATH: `${dirname(pathOf('kubectl'))}:${process.env['PATH']}`,
          KUBECONFIG: cluster.api.kubeconfig,
        };
        await promisify(execFile)('bash', ['-eo', 'pipefail', '-c', command], { cwd: directory, env });
      };
      await run('operations.md#backup');
      process.kill(first.process.pid, 'SIGTERM');
      await first.process.exited;
      const names = ['istio-ca-secret', 'fairlead-ca'];
      for (const name of names)
        await cluster.api.kubectl('-n', NAMESPACE, 'patch', 'secret', name, '-p', '{"data":null}');
      first = await cluster.start(first.pod);
      await poll('the refusal', () =>
        Promise.resolve(/Pods trust another root/.test(first.process.log()) || undefined),
      );
      restore.begin = Date.now();
      await run('operations.md#restore');
      await first.ready();
      restore.end = Date.now();
      expect(await signed()).toBe(roots);
      expect(await rootsNow()).toBe(roots);
      for (const name of names) {
        const path = `/api/v1/namespaces/${NAMESPACE}/secrets/${name}`;
        const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
        expect(await cluster.api.call('GET', path)).toMatchObject({ metadata: { labels } });
      }
    } finally {
      await rm(directory, { recursive: true });
    }
  }, 60_000);

  test('was never denied anything, and used each of its permissions', async () => {
    const requests = await cluster.audit.requests();
    const isIn = (period: typeof outage, { time }: (typeof requests)[0]): boolean =>
      period.begin <= time && time <= period.end;
    const denied = requests.filter(({ code }) => code === 401 || code === 403);
    const unexpected = denied.filter((request) => {
      // An API server that starts refuses everybody until it has read the rules.
      if (isIn(outage, request)) return false;
      // `kubectl replace --force` deletes first. Who sees that would create an empty one, which is not granted.
      const { verb, resource } = request;
      return !(isIn(restore, request) && verb === 'create' && resource === 'secrets');
    });
    expect(unexpected).toEqual([]);
    const objects = await renderChart({ credentials: { namespaces: ['shop'] } });
    const granted = permissionsOf(objects, ACCOUNT, NAMESPACE);
    const unused = granted.filter((permission) => !requests.some((request) => covers(permission, request)));
    expect(unused.map(printPermission)).toEqual([]);
  });
});

interface Assignment {
  readonly endpoints?: readonly {
    readonly locality?: object;
    readonly lb_endpoints?: readonly { readonly endpoint: { readonly address: { readonly socket_address: object } } }[];
  }[];
}

interface RouteTable {
  readonly virtual_hosts: readonly { readonly name: string }[];
}

async function holder(cluster: Installed): Promise<unknown> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fairlead`;
  const lease = (await cluster.api.call('GET', path)) as ApiObject & { spec?: { holderIdentity?: string } };
  return lease.spec?.holderIdentity?.replace(`${NAMESPACE}/`, '');
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}
