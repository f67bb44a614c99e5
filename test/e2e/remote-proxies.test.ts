import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createProgram } from '../../src/app.ts';
import { runCli } from '../../src/cli/cli.ts';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { PROBE } from '../../src/kube/writing/webhook-entries.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { CHART, renderChart } from '../chart/chart.ts';
import { Program } from '../features/program.ts';
import { CDS, SDS } from '../features/proxy.ts';
import { SERVER, askFor } from '../features/secure-cluster.ts';
import { XdsClient } from '../conformance/xds-client.ts';
import { secureCall } from '../harness/secure-call.ts';
import { createAuthority } from '../peers/keys.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { startFairleadAgent } from './fairlead-agent.ts';

/** As their proxies call them. */
const IDS = { own: 'Kubernetes', east: 'east' } as const;
const INJECTION = 'fairlead-istio-system-injection';

withPeers(['envoy', 'etcd', 'helm', 'kube-apiserver', 'kubectl'], 'proxies of another real cluster', () => {
  const onEnd = afterSuite();
  let own: BorrowedApiServer;
  let east: BorrowedApiServer;
  let program: Program;
  let roots = '';
  printLogOnFailure(() => program && { log: () => program.log.map((line) => JSON.stringify(line)).join('\n') });

  beforeAll(async () => {
    [own, east] = await Promise.all([borrowApiServer(), borrowApiServer()]);
    onEnd(() => Promise.all([own.stop(), east.stop()]).then(() => undefined));
    await Promise.all(
      [own, east].map(async (api) => {
        for (const name of ['istio-system', 'shop']) await api.kubectl('create', 'namespace', name);
        await api.kubectl('create', 'serviceaccount', 'server', '-n', 'shop');
      }),
    );
    await own.kubectl('apply', '--server-side', '-f', join(import.meta.dirname, '../../charts/fairlead/crds'));
    await own.kubectl('wait', '--for=condition=Established', 'crd', '--all');
    await east.kubectl('create', 'serviceaccount', 'reader', '-n', 'istio-system');
    await grantEast('read', '--verb=list,watch', '--resource=*.*');
    await nameEast('reader');
    const injectionDirectory = await temporaryDirectory(onEnd);
    await cp(join(CHART, 'files/injection'), injectionDirectory, { recursive: true });
    const proxy = { image: 'fairlead-proxy:1', discoveryAddress: `${SERVER}:15012` };
    await writeFile(join(injectionDirectory, 'config.yaml'), JSON.stringify({ proxy }));
    const webhooks = { injectionDirectory, webhookAddress: '127.0.0.1:0', injectionWebhook: INJECTION };
    // There is no plaintext port.
    const settings = { grpcAddress: 'off', secureNames: `${SERVER},localhost`, ...webhooks };
    program = await Program.start({ kubeconfig: own.kubeconfig, ...settings }, { onEnd });
    await program.logged('Signing certificates');
    await program.logged('Ready');
    const { data } = await own.call('GET', '/api/v1/namespaces/istio-system/secrets/istio-ca-secret');
    roots = Buffer.from((data as Record<string, string>)['ca-cert.pem'] ?? '', 'base64').toString();
  });

  /** The Secret that names the other cluster, with an account there. */
  async function nameEast(account: string): Promise<void> {
    const token = (await east.kubectl('create', 'token', account, '-n', 'istio-system')).trim();
    const kubeconfig = await readFile(await east.kubeconfigWithToken(token), 'utf8');
    const metadata = { namespace: 'istio-system', name: 'east', labels: { 'istio/multiCluster': 'true' } };
    await own.apply(
      JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { [IDS.east]: kubeconfig } }),
    );
  }

  async function grantEast(name: string, ...rule: readonly string[]): Promise<void> {
    await east.kubectl('create', 'clusterrole', name, ...rule);
    const who = '--serviceaccount=istio-system:reader';
    await east.kubectl('create', 'clusterrolebinding', name, `--clusterrole=${name}`, who);
  }

  /** As kubelets project them into Pods. */
  const tokenOf = async (api: BorrowedApiServer): Promise<string> =>
    (await api.kubectl('create', 'token', 'server', '-n', 'shop', '--audience', 'istio-ca')).trim();

  async function clusters(): Promise<string> {
    let out = '';
    const address = `127.0.0.1:${program.serving.ports.health}`;
    await runCli(['clusters', '--address', address], {
      program: () => Promise.resolve(createProgram()),
      out: (text) => void (out += text),
      err: (text) => void (out += text),
      env: {},
      signal: new AbortController().signal,
    });
    return out;
  }

  const MISSING =
    'proxies there cannot prove who they are: allow the account of the kubeconfig to create tokenreviews.authentication.k8s.io';

  test('a workload there gets its certificate and its configuration once its API server reviews tokens for us', async () => {
    const agent = await startFairleadAgent({
      ...{ port: program.serving.ports.secure!, server: SERVER, roots, token: await tokenOf(east) },
      ...{ namespace: 'shop', account: 'server', env: { ISTIO_META_CLUSTER_ID: IDS.east } },
    });
    await expect
      .poll(() => agent.get(agent.ports.status, '/healthz/ready'))
      .toEqual({ status: 503, body: expect.stringContaining('the API server of its cluster cannot review the token') });
    await expect.poll(clusters).toContain(MISSING);
    await grantEast('review-tokens', '--verb=create', '--resource=tokenreviews.authentication.k8s.io');
    await agent.ready();
    expect(await clusters()).not.toContain(MISSING);
    const { ads, mesh } = program.serving.engine;
    const [stream] = ads.streams();
    expect(mesh.proxies.get(stream!.stream)).toMatchObject({ topology: { cluster: IDS.east } });
    const { body } = await agent.get(agent.ports.admin, '/certs');
    const [{ cert_chain: [leaf] = [] } = {}] = (JSON.parse(body) as Certificates).certificates;
    expect(leaf?.subject_alt_names).toEqual([{ uri: 'spiffe://cluster.local/ns/shop/sa/server' }]);
  });

  test('a token of one cluster is worth nothing in the other, although both have the same accounts', async () => {
    const tokens = { own: await tokenOf(own), east: await tokenOf(east) };
    const ask = (token: string, cluster: string) =>
      askFor(CDS, program, roots, { token, cluster }, { texts: { CLUSTER_ID: cluster } });
    expect(await ask(tokens.own, IDS.own)).toBeGreaterThan(0);
    expect(await ask(tokens.east, IDS.east)).toBeGreaterThan(0);
    expect(await ask(tokens.own, IDS.east)).toMatch(/^UNAUTHENTICATED: the token is not accepted/);
    expect(await ask(tokens.east, IDS.own)).toMatch(/^UNAUTHENTICATED: the token is not accepted/);
  });

  test('a gateway there gets the Secret of its own cluster, once its account may list Secrets there', async () => {
    const authority = await createAuthority();
    const keys = { own: await authority.server(['web.example']), east: await authority.server(['web.example']) };
    for (const [api, { certificate, key }] of [
      [own, keys.own],
      [east, keys.east],
    ] as const) {
      await api.kubectl('create', 'serviceaccount', 'router', '-n', 'shop');
      const metadata = { namespace: 'shop', name: 'web' };
      const stringData = { 'tls.crt': certificate, 'tls.key': key };
      await api.apply(
        JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData }),
      );
    }
    await own.apply(
      JSON.stringify({
        ...{ apiVersion: 'networking.istio.io/v1', kind: 'Gateway', metadata: { namespace: 'shop', name: 'web' } },
        spec: {
          selector: { istio: 'router' },
          servers: [
            {
              ...{ port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: ['web.example'] },
              tls: { mode: 'SIMPLE', credentialName: 'web' },
            },
          ],
        },
      }),
    );
    const token = (await east.kubectl('create', 'token', 'router', '-n', 'shop', '--audience', 'istio-ca')).trim();
    const call = secureCall(roots, { token, cluster: IDS.east }, SERVER);
    const client = new XdsClient(program.serving.ports.secure!, true, undefined, call);
    onTestFinished(() => client.close());
    const id = 'router~10.0.0.9~router.shop~shop.svc.cluster.local';
    const node = { id, labels: { istio: 'router' }, texts: { CLUSTER_ID: IDS.east } };
    client.send({ typeUrl: CDS, node });
    // Before its configuration is assigned, no stream lives for as long as is skipped below.
    await client.next(CDS);
    client.send({ typeUrl: SDS, subscribe: ['kubernetes://web'] });
    const skipping = async (look: () => Promise<unknown>): Promise<unknown> => {
      program.clock.skip(660_000);
      return look();
    };
    await expect.poll(() => skipping(clusters)).toContain('create subjectaccessreviews');
    await grantEast('review-access', '--verb=create', '--resource=subjectaccessreviews.authorization.k8s.io');
    const problems = () => {
      const { byObject } = program.serving.engine.mesh.problems;
      const all = [...byObject.entries()].flatMap(([, found]) => found);
      return Promise.resolve(all.filter(({ object }) => object.kind === 'Gateway').map(({ message }) => message));
    };
    const must = 'Service account shop/router in cluster east must be allowed to list Secrets in namespace shop';
    await expect.poll(() => skipping(problems)).toEqual([expect.stringContaining(must)]);
    await east.kubectl('create', 'role', 'secrets', '--verb=list', '--resource=secrets', '-n', 'shop');
    await east.kubectl(
      'create',
      'rolebinding',
      'secrets',
      '--role=secrets',
      '--serviceaccount=shop:router',
      '-n',
      'shop',
    );
    await expect.poll(() => skipping(problems)).toEqual([]);
    const given = Buffer.from(await client.nextWith(SDS, 'kubernetes://web')).toString();
    expect(given).toContain(keys.east.certificate);
    expect(given).not.toContain(keys.own.certificate);
  });

  test('its namespaces get the roots once it says that this control plane may write there', async () => {
    const path = '/api/v1/namespaces/shop/configmaps/istio-ca-root-cert';
    const there = (): Promise<unknown> =>
      east.call('GET', path).then(
        ({ data }) => data,
        () => undefined,
      );
    const annotate = `topology.istio.io/controlPlaneClusters=other,${IDS.own}`;
    await east.kubectl('annotate', 'namespace', 'istio-system', annotate);
    // It may list and watch, and looks at the rest again after a while.
    await expect
      .poll(async () => {
        program.clock.skip(660_000);
        return clusters();
      })
      .toContain(
        'Pods there do not get the roots of the mesh: allow the account of the kubeconfig to create configmaps, patch configmaps (istio-ca-root-cert)',
      );
    expect(await there()).toBeUndefined();
    await grantEast('create-roots', '--verb=create', '--resource=configmaps');
    await grantEast('patch-roots', '--verb=patch', '--resource=configmaps', '--resource-name=istio-ca-root-cert');
    const skipping = async (): Promise<unknown> => {
      program.clock.skip(61_000);
      return there();
    };
    await expect.poll(skipping).toEqual({ 'root-cert.pem': roots });
    await expect.poll(clusters).not.toContain('configmaps');
    await east.call('PATCH', path, { data: { 'root-cert.pem': 'other' } });
    await expect.poll(there).toEqual({ 'root-cert.pem': roots });
    await east.kubectl('create', 'namespace', 'late');
    await expect.poll(() => east.kubectl('get', 'configmaps', '-n', 'late')).toContain('istio-ca-root-cert');
  });

  test('its Pods are injected from here, and everything is allowed, with what the chart makes there', async () => {
    const injectionURL = `https://localhost:${program.serving.ports.webhooks}`;
    const values = { clusterId: IDS.east, remote: { enabled: true, injectionURL } };
    await east.apply((await renderChart(values)).map((object) => JSON.stringify(object)).join('\n---\n'));
    await nameEast('fairlead');
    // Swapped; what the former account was told is forgotten.
    await east.kubectl('delete', 'clusterrolebinding', 'read', 'review-tokens', 'create-roots', 'patch-roots');
    await expect.poll(clusters).toMatch(/^east .* SYNCED/m);
    const path = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${INJECTION}`;
    const bundles = async (): Promise<readonly string[]> => {
      const { webhooks } = (await east.call('GET', path)) as unknown as Configuration;
      return webhooks.map(({ clientConfig: { caBundle = '' } }) => Buffer.from(caBundle, 'base64').toString());
    };
    await expect.poll(async () => new Set(await bundles())).toEqual(new Set([roots]));
    await east.kubectl('label', 'namespace', 'shop', 'istio-injection=enabled');
    const containers = [{ name: 'app', image: 'app' }];
    const spec = { serviceAccountName: 'server', automountServiceAccountToken: false, containers };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'injected' }, spec };
    // The API server takes a moment to see the configuration.
    const proxyOf = async (): Promise<unknown> => {
      const made = await east.call('POST', '/api/v1/namespaces/shop/pods?dryRun=All', pod);
      const { spec: parts } = made as unknown as Injected;
      const all = [...(parts.initContainers ?? []), ...parts.containers];
      return all.find(({ name }) => name === 'istio-proxy')?.env;
    };
    const cluster = { name: 'ISTIO_META_CLUSTER_ID', value: IDS.east };
    await expect.poll(proxyOf).toEqual(expect.arrayContaining([cluster]));
    // Its API server has reached us by a dry run: from now on it refuses Pods that it cannot ask about.
    const policies = async (): Promise<readonly string[]> => {
      const { webhooks } = (await east.call('GET', path)) as unknown as Configuration;
      return webhooks.filter(({ name }) => name !== PROBE).map(({ failurePolicy }) => failurePolicy);
    };
    program.clock.skip(60_000);
    await expect.poll(async () => [...new Set(await policies())]).toEqual(['Fail']);
    // Nothing is missing that was asked for.
    await east.kubectl('create', 'namespace', 'later');
    await expect.poll(() => east.kubectl('get', 'configmaps', '-n', 'later')).toContain('istio-ca-root-cert');
    const caller = { token: await tokenOf(east), cluster: IDS.east };
    expect(await askFor(CDS, program, roots, caller, { texts: { CLUSTER_ID: IDS.east } })).toBeGreaterThan(0);
    program.clock.skip(660_000);
    expect(await clusters()).not.toContain('allow the account');
  });
});

interface Configuration {
  readonly webhooks: readonly {
    readonly name: string;
    readonly failurePolicy: string;
    readonly clientConfig: { readonly caBundle?: string };
  }[];
}

interface Injected {
  readonly spec: Readonly<
    Record<'initContainers' | 'containers', readonly { readonly name: string; readonly env?: readonly object[] }[]>
  >;
}

interface Certificates {
  readonly certificates: readonly { readonly cert_chain?: readonly { readonly subject_alt_names: object }[] }[];
}
