import { X509Certificate } from 'node:crypto';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { readPem } from '../../src/identity/pem.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { PROBE } from '../../src/kube/writing/webhook-entries.ts';
import { CHART, IMAGES, NAMESPACE, renderChart } from '../chart/chart.ts';
import { ApiError, type ApiObject } from '../peers/api-server.ts';
import { pathOf } from '../peers/peer.ts';
import { poll, run } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { ACCOUNT, install, type Installed, type Replica } from './installed.ts';

const peers = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'] as const;

const ROOTS = `/api/v1/namespaces/${NAMESPACE}/configmaps/istio-ca-root-cert`;
const VALUES = [...IMAGES, '--set', 'validation.enabled=true', '--set', 'validation.failurePolicy=Fail'];

withPeers(peers, 'the webhooks of the chart at a real API server', () => {
  let cluster: Installed;
  let replica: Replica;
  printLogOnFailure(() => ({ log: () => `${replica?.process.log()}\n${cluster?.api.log()}` }));

  beforeAll(async () => {
    cluster = await install({ values: VALUES });
    const [pod = ''] = await cluster.pods();
    // While no replica runs, objects are stored and Pods are created as before.
    await cluster.api.kubectl('create', 'namespace', 'shop');
    await cluster.api.kubectl('label', 'namespace', 'shop', 'istio-injection=enabled');
    await apply(routes('old', '('));
    expect(await containersOf('shop', 'early')).toEqual(['app']);
    replica = await cluster.start(pod);
    await replica.ready();
    await lead(replica);
  });
  afterAll(() => cluster?.stop());

  /** There is no network of Services here: the API server finds the process by the name of this machine. */
  async function lead({ webhookPort }: Replica): Promise<void> {
    const { api } = cluster;
    const spec = { type: 'ExternalName', externalName: 'localhost', clusterIP: null, clusterIPs: null };
    await api.kubectl('-n', NAMESPACE, 'patch', 'service', 'fairlead', '--type=merge', '-p', JSON.stringify({ spec }));
    for (const kind of ['mutating', 'validating'] as const) {
      const ports = (await webhooksOf(kind)).map((_, index) => ({
        op: 'replace',
        path: `/webhooks/${index}/clientConfig/service/port`,
        value: webhookPort,
      }));
      await api.kubectl(
        'patch',
        `${kind}webhookconfiguration`,
        names[kind],
        '--type=json',
        '-p',
        JSON.stringify(ports),
      );
    }
  }

  const names = { mutating: `fairlead-${NAMESPACE}-injection`, validating: `fairlead-${NAMESPACE}-validation` };

  interface Webhook {
    readonly name: string;
    readonly rules?: readonly object[];
    readonly failurePolicy: string;
    readonly clientConfig: { readonly caBundle?: string };
  }

  async function webhooksOf(kind: keyof typeof names): Promise<readonly Webhook[]> {
    const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations/${names[kind]}`;
    return (await cluster.api.call('GET', path))['webhooks'] as readonly Webhook[];
  }

  /** The roots in each entry, by the organization that they name. */
  async function bundlesOf(kind: keyof typeof names): Promise<string[]> {
    return (await webhooksOf(kind)).map(({ clientConfig: { caBundle = '' } }) =>
      (readPem(Buffer.from(caBundle, 'base64').toString()) ?? [])
        .map(({ der }) => new X509Certificate(der).subject)
        .sort()
        .join(),
    );
  }

  const policies = async (): Promise<string[]> => (await webhooksOf('validating')).map((each) => each.failurePolicy);

  /** The API server has reached a replica, and refuses from now on what it cannot ask about. */
  const closed = (kind: keyof typeof names): Promise<true> =>
    poll(
      `${kind} webhooks to be closed`,
      async () => {
        const webhooks = (await webhooksOf(kind)).filter(({ name }) => name !== PROBE);
        return webhooks.every(({ failurePolicy, rules = [] }) => failurePolicy === 'Fail' && rules.length > 0)
          ? true
          : undefined;
      },
      { timeoutMs: 90_000 },
    );

  /** As tools apply them that render the chart without a cluster. */
  async function applyRendered(...args: string[]): Promise<void> {
    const objects = (await renderChart({ validation: { enabled: true, failurePolicy: 'Fail' } })).filter(({ kind }) =>
      kind.endsWith('WebhookConfiguration'),
    );
    const directory = await mkdtemp(join(tmpdir(), 'fairlead-rendered-'));
    const file = join(directory, 'rendered.json');
    await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    await cluster.api.kubectl('apply', '-f', file, ...args);
    await rm(directory, { recursive: true });
  }

  const apply = (...objects: readonly object[]): Promise<string> =>
    cluster.api.apply(objects.map((object) => JSON.stringify(object)).join('\n---\n'));

  /** A VirtualService that the CRD allows whatever the pattern is. */
  const routes = (name: string, regex: string, namespace = 'shop'): object => ({
    apiVersion: 'networking.istio.io/v1',
    kind: 'VirtualService',
    metadata: { name, namespace },
    spec: { hosts: [`${name}.example`], http: [{ match: [{ uri: { regex } }], directResponse: { status: 200 } }] },
  });

  const pod = (name: string, labels: object = {}): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: { containers: [{ name: 'app', image: 'app', ports: [{ containerPort: 8080 }] }] },
  });

  /** The names of all containers of a Pod as it would be stored. */
  async function containersOf(namespace: string, name: string, labels: object = {}): Promise<string[]> {
    const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
    return namesIn(await cluster.api.call('POST', path, pod(name, labels)));
  }

  function namesIn({ spec }: ApiObject): string[] {
    const { containers, initContainers = [] } = spec as Record<'containers' | 'initContainers', { name: string }[]>;
    return [...initContainers, ...containers].map(({ name }) => name).sort();
  }

  const injected = ['app', 'istio-init', 'istio-proxy'];

  test('helm refuses to inject beside an istiod of the same revision, which would write its own roots there', async () => {
    const name = 'istio-sidecar-injector';
    const metadata = { name, labels: { 'istio.io/rev': 'default' } };
    const apiVersion = 'admissionregistration.k8s.io/v1';
    await apply({ apiVersion, kind: 'MutatingWebhookConfiguration', metadata, webhooks: [] });
    const upgrade = (...values: string[]): Promise<string> =>
      cluster.api.helm('upgrade', 'fairlead', CHART, '-n', NAMESPACE, '--dry-run=server', ...VALUES, ...values);
    await expect(upgrade()).rejects.toThrow('an istiod injects for revision default already');
    await upgrade('--set', 'revision=canary');
    await upgrade('--set', 'injection.enabled=false');
    await cluster.api.kubectl('delete', 'mutatingwebhookconfiguration', name);
    await upgrade();
  });

  test('the API server is told the roots, and closes both webhooks once it has reached a replica', async () => {
    for (const kind of ['mutating', 'validating'] as const)
      await poll(`roots of ${kind}`, async () => {
        const bundles = await bundlesOf(kind);
        return bundles.every((bundle) => bundle === 'O=cluster.local') ? true : undefined;
      });
    for (const kind of ['mutating', 'validating'] as const) await closed(kind);
    expect((await cluster.api.kubectl('get', 'replicareports', '-A', '-o', 'name')).trim().split('\n')).toHaveLength(1);
    expect((await cluster.api.kubectl('get', 'gateways', '-A', '-o', 'name')).trim()).toBe('');
  });

  test('an object is refused with the sentence of check, and by server-side dry run, too', async () => {
    const sentence = 'spec.http[0].match[0].uri.regex: ';
    const denial = `admission webhook "validation.fairlead.dev" denied the request: ${sentence}`;
    await expect(apply(routes('bad', '('))).rejects.toThrow(denial);
    const path = '/apis/networking.istio.io/v1/namespaces/shop/virtualservices?dryRun=All';
    await expect(cluster.api.call('POST', path, routes('bad', '('))).rejects.toThrow(sentence);
    await apply(routes('good', 'a+'));
  });

  test('an object that was wrong before can be labelled and corrected, and not made worse', async () => {
    const { api } = cluster;
    await api.kubectl('-n', 'shop', 'label', 'virtualservice', 'old', 'team=mesh');
    const worse = routes('old', '(') as { spec: { http: object[] } };
    worse.spec.http.push({ match: [{ uri: { regex: ')' } }], directResponse: { status: 200 } });
    await expect(apply(worse)).rejects.toThrow('spec.http[1].match[0].uri.regex: ');
    await apply(routes('old', 'a'));
    await api.kubectl('-n', 'shop', 'delete', 'virtualservice', 'old');
  });

  test('a Pod gets its proxy where labels want it, by a dry run without effect', async () => {
    const { api } = cluster;
    expect(await containersOf('shop', 'web')).toEqual(expect.arrayContaining(injected));
    expect(await containersOf('shop', 'web', { 'sidecar.istio.io/inject': 'false' })).toEqual(['app']);
    await api.kubectl('create', 'namespace', 'plain');
    expect(await containersOf('plain', 'web')).toEqual(['app']);
    expect(await containersOf('plain', 'web', { 'sidecar.istio.io/inject': 'true' })).toEqual(
      expect.arrayContaining(injected),
    );
    await api.kubectl('label', 'namespace', 'kube-system', 'istio-injection=enabled');
    expect(await containersOf('kube-system', 'web')).toEqual(['app']);
    expect((await api.kubectl('-n', 'shop', 'get', 'pods', '-o', 'name')).trim()).toBe('');
  });

  test('Pods of a Deployment get it at once when their namespace is labelled', async () => {
    const { api } = cluster;
    for (const name of ['one', 'two', 'three']) {
      await api.kubectl('create', 'namespace', name);
      await api.kubectl('label', 'namespace', name, 'istio-injection=enabled');
      await api.kubectl('-n', name, 'create', 'deployment', 'web', '--image=app');
      const found = await poll(`Pod of ${name}`, async () => {
        const { items } = (await api.call('GET', `/api/v1/namespaces/${name}/pods`)) as unknown as {
          items: ApiObject[];
        };
        return items[0];
      });
      expect(namesIn(found)).toEqual(expect.arrayContaining(['istio-init', 'istio-proxy']));
    }
  });

  test('a Pod that cannot be injected is refused, with what to write instead', async () => {
    const bad = pod('bad') as { metadata: object };
    const annotations = { 'traffic.sidecar.istio.io/excludeInboundPorts': 'http' };
    const refusal = cluster.api.call('POST', '/api/v1/namespaces/shop/pods', {
      ...bad,
      metadata: { ...bad.metadata, annotations },
    });
    await expect(refusal).rejects.toThrow(/denied the request: .*traffic\.sidecar\.istio\.io\/excludeInboundPorts/);
  });

  test('the metrics say what was asked', async () => {
    expect(await replica.metric('sidecar_injection_success_total')).toBeGreaterThan(3);
    expect(await replica.metric('sidecar_injection_failure_total')).toBe(1);
    expect(await replica.metric('fairlead_injection_template_problems')).toBe(0);
    expect(
      await replica.metric('galley_validation_failed\\{group="networking.istio.io",resource="virtualservices"\\}'),
    ).toBeGreaterThan(1);
  });

  test.each([['as client-side apply does'], ['as server-side apply does', '--server-side', '--force-conflicts']])(
    'what a tool renders and applies, %s, leaves alone what the control plane has written',
    async (_, ...args) => {
      const portless = async (kind: keyof typeof names): Promise<unknown> =>
        (await webhooksOf(kind)).map((each) => ({ ...each, clientConfig: each.clientConfig.caBundle }));
      const before = [await portless('mutating'), await portless('validating')];
      await applyRendered(...args);
      expect([await portless('mutating'), await portless('validating')]).toEqual(before);
      await lead(replica);
    },
  );

  test('while no replica answers, Pods are not created, until the configuration is deleted; made anew, it is open', async () => {
    await poll('a Pod', () => containersOf('shop', 'web').catch(retried));
    await replica.process.stop();
    await expect(containersOf('shop', 'web')).rejects.toThrow('failed calling webhook');
    await cluster.api.kubectl('delete', 'mutatingwebhookconfiguration', names.mutating);
    await poll('a Pod', () => containersOf('shop', 'web').catch(retried));
    await applyRendered();
    expect((await webhooksOf('mutating')).filter(({ rules = [] }) => rules.length > 0).map(({ name }) => name)).toEqual(
      [PROBE],
    );
    expect(await containersOf('shop', 'web')).toEqual(['app']);
  });

  test('another root comes beside the old one', async () => {
    const { api } = cluster;
    const entries = await selfSigned('plugged', new Date());
    const stringData = entries;
    await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'cacerts', namespace: NAMESPACE }, stringData });
    const [, other = ''] = await cluster.pods();
    await replica.process.stop();
    replica = await cluster.start(other);
    await replica.ready();
    await poll('both roots', async () => {
      const bundles = [...(await bundlesOf('mutating')), ...(await bundlesOf('validating'))];
      return bundles.every((bundle) => bundle === 'O=cluster.local,O=plugged') ? true : undefined;
    });
    await lead(replica);
    await closed('mutating');
    await poll('an answer', () => containersOf('shop', 'web').catch(retried));
    await expect(apply(routes('bad', '('))).rejects.toThrow('denied the request');
    await api.kubectl('-n', 'shop', 'get', 'virtualservice', 'good');
  });

  /** The API server does not see changed configurations at once. */
  const retried = (error: unknown): undefined => {
    if (!(error instanceof ApiError)) throw error;
  };

  test('the notes of the chart have the command that brings an upgrade the definitions of a new chart', async () => {
    const { api } = cluster;
    const directory = await mkdtemp(join(tmpdir(), 'fairlead-chart-'));
    const chart = join(directory, 'fairlead');
    await cp(CHART, chart, { recursive: true });
    const file = join(chart, 'crds/replicareports.yaml');
    const text = await readFile(file, 'utf8');
    const newer = text.replace(/^( +description: ).*$/m, '$1Newer than before.');
    expect(newer).not.toBe(text);
    await writeFile(file, newer);
    const notes = await api.helm('get', 'notes', 'fairlead', '-n', NAMESPACE);
    expect(notes).not.toContain('does not use');
    const inherited = ['--dry-run=server', ...VALUES, '--set', 'global.network=n,global.proxy.image=p'];
    const others = await api.helm('upgrade', 'fairlead', CHART, '-n', NAMESPACE, ...inherited);
    expect(others).toContain('Of `global`, this chart does not use: network, proxy.');
    const command = /^ *(helm show crds .*)$/m.exec(notes)?.[1]?.replace('<chart>', chart) ?? expect.fail(notes);
    for (const tool of ['helm', 'kubectl'] as const) await symlink(pathOf(tool), join(directory, tool));
    const PATH = `${directory}:${process.env['PATH']}`;
    const env = { ...process.env, KUBECONFIG: api.kubeconfig, HOME: directory, PATH };
    const { code, stderr } = await run('bash', ['-c', `set -o pipefail; ${command}`], { env });
    expect([code, stderr]).toEqual([0, '']);
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/replicareports.fairlead.dev';
    expect(JSON.stringify(await api.call('GET', path))).toContain('Newer than before.');
    await rm(directory, { recursive: true });
  });

  describe("with the control plane's stolen token", () => {
    const policies = '/apis/admissionregistration.k8s.io/v1';
    const hooks = (kind: keyof typeof names): string =>
      `${policies}/${kind}webhookconfigurations/${names[kind]}?dryRun=All`;
    let thief: Agent;
    let token = '';

    beforeAll(async () => {
      const { api } = cluster;
      thief = new Agent({ connect: { ca: api.ca } });
      token = (await api.kubectl('-n', NAMESPACE, 'create', 'token', ACCOUNT)).trim();
    });
    afterAll(() => thief.destroy());

    /** What the API server answers: its status and message. */
    async function attempt(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<string> {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const answer = await request(cluster.api.url + path, {
        method,
        dispatcher: thief,
        headers: { authorization: `Bearer ${token}`, 'content-type': type },
        body: body === undefined ? null : JSON.stringify(body),
      });
      const { message = '' } = (await answer.body.json()) as { readonly message?: string };
      return `${answer.statusCode} ${message}`;
    }

    const changed = async (kind: keyof typeof names, change: (webhook: Json) => object): Promise<object> => ({
      webhooks: ((await webhooksOf(kind)) as unknown as Json[]).map((each) => ({ ...each, ...change(each) })),
    });
    const client = ({ clientConfig }: Json): Json => clientConfig as Json;

    test.each<[what: string, kind: keyof typeof names, change: (webhook: Json) => object]>([
      ['its address', 'mutating', () => ({ clientConfig: { url: 'https://evil.example/' } })],
      [
        'its Service',
        'mutating',
        (each) => ({ clientConfig: { ...client(each), service: { name: 'a', namespace: 'b' } } }),
      ],
      [
        'its path',
        'validating',
        (each) => ({
          clientConfig: { ...client(each), service: { ...(client(each)['service'] as Json), path: '/inject' } },
        }),
      ],
      [
        'what it is asked about',
        'mutating',
        () => ({ rules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }] }),
      ],
      ['in which namespaces', 'mutating', () => ({ namespaceSelector: {} })],
      ['about which objects', 'mutating', () => ({ objectSelector: {} })],
      ['under which conditions', 'mutating', () => ({ matchConditions: [{ name: 'a', expression: 'true' }] })],
      ['that it must answer', 'mutating', () => ({ failurePolicy: 'Ignore' })],
      ['how often it is asked', 'mutating', () => ({ reinvocationPolicy: 'Never' })],
      ['that validation must answer', 'validating', () => ({ failurePolicy: 'Ignore' })],
      ['its time', 'validating', () => ({ timeoutSeconds: 1 })],
    ])('nothing of a webhook can be changed: %s', async (_, kind, change) => {
      expect(await attempt('PATCH', hooks(kind), await changed(kind, change))).toMatch(
        /^422 .*ValidatingAdmissionPolicy 'fairlead-istio-system-(injection|validation)'.*only changes caBundle/,
      );
    });

    test('but its roots', async () => {
      const { 'ca-cert.pem': other = '' } = await selfSigned('other.example', new Date());
      const caBundle = Buffer.from(other).toString('base64');
      for (const kind of ['mutating', 'validating'] as const) {
        const body = await changed(kind, (each) => ({ clientConfig: { ...client(each), caBundle } }));
        expect(await attempt('PATCH', hooks(kind), body)).toMatch(/^200 /);
      }
    });

    test('no webhook is added or taken away, and none becomes another object', async () => {
      const [first] = (await webhooksOf('mutating')) as unknown as Json[];
      const all = (await changed('mutating', () => ({}))) as { readonly webhooks: Json[] };
      for (const body of [
        { webhooks: [...all.webhooks, { ...first, name: 'more.example.com' }] },
        { webhooks: all.webhooks.slice(1) },
        { webhooks: [] },
        { metadata: { labels: { a: 'b' } } },
        { metadata: { finalizers: ['a.example/b'] } },
        { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'shop', uid: 'u' }] } },
      ])
        expect(await attempt('PATCH', hooks('mutating'), body)).toMatch(/^422 .*ValidatingAdmissionPolicy/);
    });

    test('all members of a webhook are compared', async () => {
      const { components } = (await cluster.api.call(
        'GET',
        '/openapi/v3/apis/admissionregistration.k8s.io/v1',
      )) as unknown as {
        readonly components: { readonly schemas: Readonly<Record<string, { readonly properties: Json }>> };
      };
      for (const [type, policy] of [
        ['Mutating', names.mutating],
        ['Validating', names.validating],
      ] as const) {
        const { spec } = await cluster.api.call('GET', `${policies}/validatingadmissionpolicies/${policy}`);
        const { expression } = (spec as { readonly validations: { readonly expression: string }[] }).validations[0]!;
        const members = Object.keys(
          components.schemas[`io.k8s.api.admissionregistration.v1.${type}Webhook`]!.properties,
        );
        expect(members.filter((member) => !expression.includes(member))).toEqual([]);
      }
    });

    test.each<
      [
        what: string,
        method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
        path: string,
        body: object | undefined,
        answer: RegExp,
      ]
    >([
      [
        'a token of an account is not made, not even by a Secret',
        'POST',
        `/api/v1/namespaces/${NAMESPACE}/secrets`,
        {
          metadata: { name: 'stolen', annotations: { 'kubernetes.io/service-account.name': 'default' } },
          type: 'kubernetes.io/service-account-token',
        },
        /^403 /,
      ],
      [
        'no other Secret is made',
        'POST',
        `/api/v1/namespaces/${NAMESPACE}/secrets`,
        { metadata: { name: 'a' } },
        /^403 /,
      ],
      ['no Secret of another namespace is read', 'GET', '/api/v1/namespaces/shop/secrets', undefined, /^403 /],
      ['no Secret of all is read', 'GET', '/api/v1/secrets', undefined, /^403 /],
      [
        'no ConfigMap is made but that of the roots',
        'POST',
        '/api/v1/namespaces/kube-system/configmaps',
        { metadata: { name: 'aws-auth' } },
        /^422 .*only creates the ConfigMap istio-ca-root-cert/,
      ],
      [
        'no finalizer is added to the roots',
        'PATCH',
        ROOTS,
        { metadata: { finalizers: ['a.example/b'] } },
        /^422 .*sets no finalizers/,
      ],
      ['the roots do not become immutable', 'PATCH', ROOTS, { immutable: true }, /^422 .*makes no ConfigMap immutable/],
      [
        'no object that is in force is made with a finalizer',
        'POST',
        '/apis/fairlead.dev/v1alpha1/namespaces/kube-system/generationsinforce',
        {
          apiVersion: 'fairlead.dev/v1alpha1',
          kind: 'GenerationInForce',
          metadata: { name: 'a', finalizers: ['a.example/b'] },
          spec: {
            object: { kind: 'VirtualService', name: 'a', uid: 'a' },
            ...{ newest: 2, reason: 'Invalid', former: [{ apiVersion: 'networking.istio.io/v1', generation: 1 }] },
          },
        },
        /^422 .*sets no finalizers/,
      ],
      [
        'no Lease of others is made',
        'POST',
        '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases',
        { metadata: { name: 'kube-scheduler' } },
        /^422 .*only creates its Leases/,
      ],
      [
        'no Gateway is made',
        'POST',
        `/apis/networking.istio.io/v1/namespaces/${NAMESPACE}/gateways`,
        { apiVersion: 'networking.istio.io/v1', kind: 'Gateway', metadata: { name: 'mine' }, spec: { servers: [] } },
        /only asks whether a Gateway would be refused/,
      ],
      [
        'the policies stay',
        'DELETE',
        `${policies}/validatingadmissionpolicybindings/fairlead-${NAMESPACE}-writes`,
        undefined,
        /^403 /,
      ],
    ])('%s', async (_, method, path, body, answer) => {
      expect(await attempt(method, path, body)).toMatch(answer);
    });
  });

  test('an upgrade takes neither the roots away nor the failure policy back, nor the authority', async () => {
    const { api } = cluster;
    const authority = async (): Promise<unknown[]> =>
      Promise.all(
        ['istio-ca-secret', 'fairlead-ca'].map(async (name) => {
          const { data, metadata } = await api.call('GET', `/api/v1/namespaces/${NAMESPACE}/secrets/${name}`);
          expect(metadata).toMatchObject({ annotations: { 'meta.helm.sh/release-name': 'fairlead' } });
          return data;
        }),
      );
    await replica.process.stop();
    const before = [await bundlesOf('mutating'), await bundlesOf('validating'), await policies(), await authority()];
    await api.helm('upgrade', 'fairlead', CHART, '-n', NAMESPACE, ...VALUES, '--set', 'log.level=debug');
    expect([await bundlesOf('mutating'), await bundlesOf('validating'), await policies(), await authority()]).toEqual(
      before,
    );
    expect(before[3]).toEqual([
      expect.objectContaining({ 'ca-key.pem': expect.any(String) as string }),
      expect.objectContaining({ 'rotation.json': expect.any(String) as string }),
    ]);
    expect(await policies()).toEqual(['Fail']);
  });

  test('without a replica, Pods and objects that nobody asks for are stored, and others wait', async () => {
    const { api } = cluster;
    expect(await containersOf('plain', 'web')).toEqual(['app']);
    expect(await containersOf('kube-system', 'web')).toEqual(['app']);
    expect(await containersOf(NAMESPACE, 'web').catch(String)).not.toContain('failed calling webhook');
    await expect(containersOf('shop', 'web')).rejects.toThrow('failed calling webhook');
    await expect(apply(routes('late', 'a'))).rejects.toThrow('failed calling webhook');
    await apply(routes('late', 'a', 'kube-system'));
    // The policy is what a replica writes; a configuration that is made anew asks about nothing before one does.
    await api.kubectl('delete', 'validatingwebhookconfiguration', names.validating);
    await api.helm('upgrade', 'fairlead', CHART, '-n', NAMESPACE, ...IMAGES, '--set', 'validation.enabled=true');
    expect((await webhooksOf('validating')).map(({ rules }) => rules)).toEqual([undefined]);
    await poll('that it is ignored', () => apply(routes('late', 'a')).catch(() => undefined), { timeoutMs: 60_000 });
    await api.helm('uninstall', 'fairlead', '-n', NAMESPACE);
    await api.kubectl('-n', NAMESPACE, 'get', 'secret', 'istio-ca-secret', 'fairlead-ca');
    expect(await containersOf('shop', 'web')).toEqual(['app']);
  });
});
