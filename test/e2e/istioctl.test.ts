import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { version } from '../../src/base/version.ts';
import { blockOf } from '../docs/markdown.ts';
import { virtualService } from '../features/objects.ts';
import { hostOf } from '../features/shop.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { ForwardedMesh, PROXIES, REPLICAS } from './forwarded-mesh.ts';

const PEERS = ['envoy', 'etcd', 'helm', 'istioctl', 'kube-apiserver', 'kubectl'] as const;
/** What the user guide says to set for istioctl. */
const ISTIOD = { labels: { app: 'istiod' } };
/** What the agent says of itself. */
const AGENT = '1.30.0';
const HOOK = 'fairlead-istio-system-injection';
const POD = 'reviews-1.shop';
const REVIEWS = hostOf('reviews');

withPeers(PEERS, 'istioctl', () => {
  const onEnd = afterSuite();
  let mesh: ForwardedMesh;
  printLogOnFailure(() => mesh);
  beforeAll(async () => {
    mesh = await ForwardedMesh.start(onEnd);
    await mesh.label(ISTIOD);
  });

  /** What it writes; it succeeds, and complains of nothing. */
  async function istioctl(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await mesh.istioctl(...args);
    expect([code, stderr], stdout).toEqual([0, '']);
    return stripVTControlCharacters(stdout);
  }

  /** The rows of a table whose cells have at least that many spaces between them. */
  async function table(spaces: number, ...args: readonly string[]): Promise<readonly (readonly string[])[]> {
    const text = (await istioctl(...args)).trimEnd();
    return text.split('\n').map((line) => line.trimEnd().split(new RegExp(` {${spaces},}`)));
  }

  /** How it complains. */
  async function error(...args: readonly string[]): Promise<string> {
    const { code, stderr } = await mesh.istioctl(...args);
    expect(code).not.toBe(0);
    return stderr;
  }

  test('does what status.md#istioctl says', async () => {
    const commands = blockOf('status.md#istioctl').trim().split('\n');
    expect(commands.length).toBeGreaterThan(3);
    for (const command of commands) {
      const [program, ...args] = command.split(' ');
      expect(program).toBe('istioctl');
      expect(await istioctl(...args)).not.toBe('');
    }
  });

  test('proxy-status asks every replica, and has a word for each type', async () => {
    const rows = await table(2, 'proxy-status');
    expect(rows).toEqual([
      ['NAME', 'CLUSTER', 'ISTIOD', 'VERSION', 'SUBSCRIBED TYPES'],
      ...PROXIES.map((name, i) => [
        ...[`${name}.shop`, 'Kubernetes', REPLICAS[i], AGENT],
        '6 (CDS,LDS,EDS,RDS,PCDS,NDS)',
      ]),
    ]);
    await mesh.label({});
    expect(await error('proxy-status')).toBe('Error: no running Istio pods in "istio-system"\n');
    const label = ['--xds-label', 'app.kubernetes.io/name=fairlead'];
    expect(await table(2, 'proxy-status', ...label)).toEqual(rows);
    expect(await istioctl('x', 'version', ...label)).toContain(`control plane version: ${version}\n`);
    expect(await istioctl('x', 'internal-debug', 'registryz', ...label)).toContain(`"hostname": "${REVIEWS}"`);
    await mesh.label(ISTIOD);
  });

  test('after a restart of every replica, proxies are synced with what they had', async () => {
    await mesh.restartReplicas();
    const synced = expect.stringMatching(/^SYNCED( \(\d+s\))?$/) as string;
    expect(await table(2, 'proxy-status', '-v', '1')).toEqual([
      ['NAME', 'CLUSTER', 'CDS', 'ECDS', 'EDS', 'LDS', 'RDS', 'PCDS', 'NDS', 'ISTIOD', 'VERSION'],
      ...PROXIES.map((name, i) => [
        ...[`${name}.shop`, 'Kubernetes', synced, 'IGNORED', synced, synced, synced, synced, synced],
        ...[REPLICAS[i], AGENT],
      ]),
    ]);
  });

  test.each(PROXIES)('proxy-status compares what %s has with what its replica says', async (name) => {
    expect(await istioctl('proxy-status', `${name}.shop`)).toMatch(
      /^Clusters Match\nListeners Match\nRoutes Match \(RDS last loaded at .*\)\n$/,
    );
  });

  test.each(['version', 'x version'])(
    '%s has the versions of the control plane and of the proxies',
    async (command) => {
      const [, ...others] = (await istioctl(...command.split(' '))).split('\n');
      expect(others).toEqual([`control plane version: ${version}`, `data plane version: ${AGENT} (2 proxies)`, '']);
    },
  );

  test('proxy-config shows clusters, listeners and routes with the objects that they come from', async () => {
    const port = `${mesh.port}`;
    const clusters = await table(2, 'proxy-config', 'clusters', POD, '--fqdn', REVIEWS);
    expect(clusters).toEqual([
      ['SERVICE FQDN', 'PORT', 'SUBSET', 'DIRECTION', 'TYPE', 'DESTINATION RULE'],
      ...['-', 'v1', 'v2'].map((subset) => [REVIEWS, port, subset, 'outbound', 'EDS', 'reviews.shop']),
    ]);
    expect(await table(1, 'proxy-config', 'listeners', POD, '--port', port)).toEqual([
      ['ADDRESSES', 'PORT', 'MATCH', 'DESTINATION'],
      ['127.0.0.1,::1', port, 'ALL', 'Route:', port],
    ]);
    expect(await table(2, 'proxy-config', 'routes', POD, '--name', port)).toEqual([
      ['NAME', 'VHOST NAME', 'DOMAINS', 'MATCH', 'VIRTUAL SERVICE'],
      [port, `${REVIEWS}:${port}`, `${REVIEWS}., reviews + 2 more...`, '/*', 'reviews.shop'],
    ]);
    const all = await istioctl('proxy-config', 'all', POD);
    expect(all).toMatch(/^Istio Version: 1\.30\.0\nEnvoy Version: 1\.40\.0\//);
    for (const name of [`cluster/outbound|${port}|v2|${REVIEWS}`, `route/${port}`, `listener/127.0.0.1_${port}`])
      expect(all).toContain(`\n${name} `);
  });

  test('proxy-config shows endpoints, secrets, the bootstrap and log levels', async () => {
    const cluster = `outbound|${mesh.port}|v2|${REVIEWS}`;
    expect(await table(2, 'proxy-config', 'endpoints', POD, '--cluster', cluster)).toEqual([
      ['ENDPOINT', 'STATUS', 'OUTLIER CHECK', 'CLUSTER'],
      ['10.1.0.2:8080', 'HEALTHY', 'OK', cluster],
    ]);
    const secrets = await table(2, 'proxy-config', 'secret', POD);
    expect(secrets.slice(1).map((cells) => cells.slice(0, 4))).toEqual([
      ['default', 'Cert Chain', 'ACTIVE', 'true'],
      ['ROOTCA', 'CA', 'ACTIVE', 'true'],
    ]);
    expect(JSON.parse(await istioctl('proxy-config', 'bootstrap', POD))).toMatchObject({
      bootstrap: { node: { metadata: { NAME: 'reviews-1', NAMESPACE: 'shop', ISTIO_VERSION: AGENT } } },
    });
    expect(await istioctl('proxy-config', 'log', POD)).toMatch(
      /^reviews-1\.shop:\nactive loggers:\n {2}a.*: warning\n/,
    );
    expect(await istioctl('proxy-config', 'log', POD, '--level', 'rbac:debug')).toContain('  rbac: debug\n');
  });

  test('internal-debug has any page, of one replica or of all', async () => {
    const all = JSON.parse(await istioctl('x', 'internal-debug', 'syncz', '--all')) as object;
    expect(all).toMatchObject(
      Object.fromEntries(
        REPLICAS.map((replica, i) => [replica, [{ proxy: `${PROXIES[i]}.shop`, proxy_type: 'sidecar' }]]),
      ),
    );
    const hosts = JSON.parse(await istioctl('x', 'internal-debug', 'registryz')) as readonly { hostname: string }[];
    expect(hosts.map(({ hostname }) => hostname)).toContain(REVIEWS);
    // Of a page that does not exist, all names.
    expect(await istioctl('x', 'internal-debug', 'nonsense')).toMatch(/"configz",\n.*"syncz"\n/s);
  });

  test('analyze finds nothing wrong with what the chart installs, and what is wrong with files beside it', async () => {
    expect(await mesh.istioctl('analyze', '-n', 'shop')).toMatchObject({
      ...{ code: 0, stderr: '✔ No validation issues found when analyzing namespace: shop.\n' },
    });
    const found = await istioctl('analyze', '-A');
    expect(found.trim()).toMatch(/^Info \[IST0102\] \(Namespace default\) [^\n]*$/);
    const file = await fileWith(
      virtualService('lost', { hosts: ['lost'], http: [{ route: [{ destination: { host: 'gone' } }] }] }),
    );
    const { code, stdout } = await mesh.istioctl('analyze', '-n', 'shop', file);
    expect(stdout).toContain('Error [IST0101] (VirtualService shop/lost');
    expect(code).not.toBe(0);
  });

  test('validate knows valid objects from others', async () => {
    const route = (weight: number) => ({ destination: { host: 'reviews' }, weight });
    const good = await fileWith(virtualService('good', { hosts: ['a'], http: [{ route: [route(1)] }] }));
    expect(await mesh.istioctl('validate', '-f', good)).toMatchObject({ code: 0, stderr: `"${good}" is valid\n` });
    const bad = await fileWith(virtualService('bad', { hosts: ['a'], http: [{ route: [route(-1), route(1)] }] }));
    expect(await error('validate', '-f', bad)).toContain('VirtualService/shop/bad:');
  });

  test('injector list and check-inject know the webhook, and why a Pod is injected', async () => {
    const [namespaces = '', hooks = ''] = (await istioctl('x', 'injector', 'list')).split('\n\n');
    expect(namespaces).toMatch(/^shop +default +default: 2$/m);
    expect(hooks).toMatch(new RegExp(`^shop +${HOOK} +default *$`, 'm'));
    const reasonOf = async (...args: readonly string[]) => {
      const [, [hook, revision, injected, reason] = []] = await table(2, 'x', 'check-inject', ...args);
      expect([hook, revision]).toEqual([HOOK, 'default']);
      return `${injected} ${reason}`;
    };
    expect(await reasonOf(POD)).toBe('✔ Namespace label istio-injection=enabled matches');
    expect(await reasonOf('-n', 'shop', '-l', 'sidecar.istio.io/inject=false')).toBe(
      '✘ Pod has sidecar.istio.io/inject=false label, preventing injection',
    );
    expect(await reasonOf('-n', 'default', '-l', 'app=a')).toMatch(/^✘ No matching namespace labels \(.*\)$/);
    expect(await reasonOf('-n', 'default', '-l', 'istio.io/rev=default')).toMatch(
      /^✔ .*pod label istio.io\/rev=default matches$/,
    );
  });

  test('describe tells what applies to a Pod and to a Service', async () => {
    const pod = await istioctl('x', 'describe', 'pod', POD);
    const service = await istioctl('x', 'describe', 'svc', 'reviews.shop');
    const routeTo = (version: string) => `   Route to host "reviews" subset "${version}" with weight 50%\n`;
    for (const line of [
      `Service: reviews.shop\n   Port: http ${mesh.port}/HTTP targets pod port 8080\n`,
      'DestinationRule: reviews.shop for "reviews"\n',
      `VirtualService: reviews.shop\n${routeTo('v1')}`,
    ])
      for (const text of [pod, service]) expect(text).toContain(line);
    expect(pod).toContain('   Pod Revision: default\n');
    expect(pod).toContain('   Matching subsets: v1\n      (Non-matching subsets v2)\n');
    expect(pod).toContain('Effective PeerAuthentication:\n   Workload mTLS mode: PERMISSIVE\n');
    expect(service).toContain('   Matching subsets: v1,v2\n');
    expect(service).toContain(routeTo('v2'));
    expect([pod, service].join()).not.toMatch(/warning|suggestion|stale/i);
  });

  test('authz check names the policies in force', async () => {
    expect(await table(2, 'x', 'authz', 'check', POD)).toEqual([
      ['ACTION', 'AuthorizationPolicy', 'RULES'],
      ['ALLOW', 'readers.shop', '1'],
    ]);
  });

  test('remote-clusters, tag and bug-report know the release', async () => {
    const clusters = await table(2, 'remote-clusters');
    expect(clusters.slice(1)).toEqual(REPLICAS.map((replica) => ['Kubernetes', 'synced', replica, 'default']));
    expect(await istioctl('tag', 'list')).toBe('TAG REVISION NAMESPACES\n    default  \n');
    const tag = await istioctl('tag', 'generate', 'prod', '--revision', 'default');
    expect(tag).toMatch(/^ {2}name: istio-revision-tag-prod\nwebhooks:\n.*^ {6}name: fairlead\n/ms);
    const report = await istioctl('bug-report', '--dry-run', '--duration', '1s');
    expect(report).toContain(`Version:"${version}"`);
    expect(report).toContain(`Revision default: Versions {${AGENT}}\n`);
  });

  test('create-remote-secret makes the Secret by which another cluster is joined, and remote-clusters shows it', async () => {
    await mesh.createLastingToken('fairlead');
    const account = ['--service-account', 'fairlead', '--server', mesh.api.url];
    const secret = await istioctl('create-remote-secret', '--name', 'east', ...account);
    const clusters = async () => (await table(2, 'remote-clusters')).slice(1);
    const own = REPLICAS.map((replica) => ['Kubernetes', 'synced', replica, 'default']);
    await mesh.api.apply(secret);
    const name = 'istio-system/istio-remote-secret-east';
    const east = REPLICAS.map((replica) => ['east', name, 'synced', replica, 'default']);
    await expect.poll(clusters).toEqual(own.flatMap((each, i) => [each, east[i]]));
    await mesh.api.kubectl('delete', 'secret', 'istio-remote-secret-east', '-n', 'istio-system');
    await expect.poll(clusters).toEqual(own);
  });

  test.each([
    ['proxy-config ecds', [POD], 'has no configuration type type.googleapis.com/envoy.admin.v3.EcdsConfigDump'],
    ['proxy-config rootca-compare', [POD, 'reviews-2.shop'], 'failed to decode inlinebytes'],
    ['admin log', [REPLICAS[0]], 'could not get scopes information'],
    ['kube-inject', ['-f'], 'remote port must be > 0'],
    ['waypoint list', ['-A'], 'get gateways.gateway.networking.k8s.io'],
    ['ztunnel-config workloads', [], 'daemonsets.apps "ztunnel" not found'],
  ])('what the user guide says does not work: %s', async (command, args, message) => {
    const file = await fileWith({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [] } });
    const rest = command === 'kube-inject' ? [...args, file] : args;
    expect(await error(...command.split(' '), ...rest)).toContain(message);
  });
});

async function fileWith(object: object): Promise<string> {
  const file = join(await temporaryDirectory(), 'file.yaml');
  await writeFile(file, JSON.stringify(object));
  return file;
}
