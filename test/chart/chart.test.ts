import { mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { kinds } from '../../src/api/kinds.ts';
import { unreadResources } from '../../src/api/unread-kinds.ts';
import { readConfig } from '../../src/config/config.ts';
import { version } from '../../src/base/version.ts';
import { kiali } from '../features/kiali.ts';
import { pathOf } from '../peers/peer.ts';
import { run } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import {
  CHART,
  NAMESPACE,
  ROOT,
  type ChartObject,
  type Json,
  configOf,
  deploymentOf,
  helm,
  renderChart,
} from './chart.ts';
import { permissionsOf, printPermission } from './permissions.ts';

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly storage: boolean }[];
  };
}

function namesIn(yaml: string): readonly string[] {
  return parseAllDocuments(yaml)
    .flatMap((document) => (document.toJS() as Definition | null)?.metadata.name ?? [])
    .sort();
}

describe('the files of the chart', () => {
  // Helm complains about links that lead out of a chart, and other tools leave them out.
  test('are all in the chart, and crds/ leads there', () => {
    const files = readdirSync(CHART, { recursive: true, withFileTypes: true });
    expect(files.filter((file) => file.isSymbolicLink())).toEqual([]);
    expect(realpathSync(join(ROOT, 'crds'))).toBe(join(CHART, 'crds'));
  });

  test('name the version of the program', () => {
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as Record<string, unknown>;
    expect(chart['appVersion']).toBe(version);
  });

  test('explain every value', () => {
    const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Record<string, unknown>;
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as { properties: object };
    expect(Object.keys(values).sort()).toEqual(Object.keys(schema.properties).sort());
  });
});

withPeers(['helm'], 'the chart', () => {
  test('has nothing that helm lint warns of', async () => {
    const { code, stdout, stderr } = await helm('lint', '--strict', CHART);
    expect(stderr).toBe('');
    expect(stdout).toContain('1 chart(s) linted, 0 chart(s) failed');
    expect(stdout).not.toMatch(/WARNING|ERROR/);
    expect(code).toBe(0);
  });

  test('is one Deployment with what belongs to it, in the namespace of the release', async () => {
    const objects = await renderChart();
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`).sort()).toEqual([
      'ClusterRole /fairlead-istio-system',
      'ClusterRoleBinding /fairlead-istio-system',
      'ConfigMap istio-system/fairlead-injection',
      'ConfigMap istio-system/istio',
      'Deployment istio-system/fairlead',
      'MutatingWebhookConfiguration /fairlead-istio-system-injection',
      'PodDisruptionBudget istio-system/fairlead',
      'Role istio-system/fairlead-istio-system-authority',
      'Role istio-system/fairlead-istio-system-mesh-config',
      'Role istio-system/fairlead-istio-system-remote-clusters',
      'Role istio-system/fairlead-istio-system-report',
      'Role kube-system/fairlead-istio-system-lease',
      'RoleBinding istio-system/fairlead-istio-system-authority',
      'RoleBinding istio-system/fairlead-istio-system-mesh-config',
      'RoleBinding istio-system/fairlead-istio-system-remote-clusters',
      'RoleBinding istio-system/fairlead-istio-system-report',
      'RoleBinding kube-system/fairlead-istio-system-lease',
      'Secret istio-system/fairlead-ca',
      'Secret istio-system/istio-ca-secret',
      'Service istio-system/fairlead',
      'ServiceAccount istio-system/fairlead',
      ...['', 'Binding'].flatMap((suffix) =>
        ['injection', 'writes'].map((name) => `ValidatingAdmissionPolicy${suffix} /fairlead-istio-system-${name}`),
      ),
    ]);
    const crds = (await renderChart({}, '--include-crds')).filter(({ kind }) => kind === 'CustomResourceDefinition');
    expect(crds.map(({ metadata }) => metadata.name).sort()).toEqual(
      [
        ...kinds.flatMap(({ custom, plural, group }) => (custom ? [`${plural}.${group}`] : [])),
        'generationsinforce.fairlead.dev',
        'replicareports.fairlead.dev',
      ].sort(),
    );
  });

  test('is packaged with the CustomResourceDefinitions of crds/, and nothing is said about it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'fairlead-chart-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const helmIn = (...args: string[]) => run(pathOf('helm'), args, { cwd: directory });
    expect(await helmIn('package', CHART)).toMatchObject({ code: 0, stderr: '' });
    const [archive = ''] = readdirSync(directory);
    const { stdout } = await helmIn('show', 'crds', archive);
    const own = readdirSync(join(ROOT, 'crds')).flatMap((name) =>
      namesIn(readFileSync(join(ROOT, 'crds', name), 'utf8')),
    );
    expect(namesIn(stdout)).toEqual(own.sort());
  });

  test('runs without privileges', async () => {
    const { pod, container } = deploymentOf(await renderChart());
    expect(pod['securityContext']).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(container['securityContext']).toEqual({
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod).not.toHaveProperty(field);
    const volumes = pod['volumes'] as object[];
    expect(volumes).toEqual([{ name: 'injection', configMap: { name: 'fairlead-injection', optional: true } }]);
    const { pod: without } = deploymentOf(await renderChart({ injection: { enabled: false } }));
    expect(without).not.toHaveProperty('volumes');
  });

  test('says on the command line only what the program understands, and means the same by ports', async () => {
    const { container } = deploymentOf(await renderChart({ plaintext: { enabled: true } }));
    const [command, ...args] = container['args'] as string[];
    expect(command).toBe('serve');
    const config = configOf(args);
    expect(config).toMatchObject({
      source: { kind: 'kubernetes' },
      mesh: { rootNamespace: NAMESPACE, domainSuffix: 'cluster.local', clusterId: 'Kubernetes' },
      lease: { namespace: 'kube-system', name: 'fairlead' },
      log: { level: 'info', format: 'json' },
      statusWrites: true,
    });
    const ports = Object.fromEntries(
      (container['ports'] as { name: string; containerPort: number }[]).map((p) => [p.name, p.containerPort]),
    );
    expect(ports).toEqual({
      'grpc-xds': config.grpcAddress?.port,
      'grpc-xds-tls': config.secure?.address.port,
      'https-webhook': config.webhooks?.address.port,
      'http-monitoring': config.monitoringAddress.port,
      'http-health': config.healthAddress.port,
    });
    expect(container).toMatchObject({
      readinessProbe: { httpGet: { path: '/ready', port: 'http-health' } },
      livenessProbe: { httpGet: { path: '/healthz', port: 'http-health' } },
      resources: { requests: { cpu: expect.any(String), memory: expect.any(String) } },
    });
  });

  test('a process that does not answer for a while is ended only when that lasts a minute', async () => {
    const { container } = deploymentOf(await renderChart());
    const { periodSeconds, failureThreshold } = container['livenessProbe'] as Readonly<Record<string, number>>;
    expect(periodSeconds! * failureThreshold!).toBeGreaterThanOrEqual(60);
  });

  test('has the defaults of the program where it does not need others', async () => {
    const { container } = deploymentOf(await renderChart());
    const { log: _, webhooks: ___, secure, ...config } = configOf((container['args'] as string[]).slice(1));
    const { log: __, secure: other, ...defaults } = readConfig({ flags: {}, env: {} });
    expect(config).toEqual(defaults);
    expect(secure).toEqual({ ...other, names: [`fairlead.${NAMESPACE}.svc`, `fairlead.${NAMESPACE}`] });
    const { container: longer } = deploymentOf(await renderChart({ workloadCertificateLifetime: '72h' }));
    expect(configOf((longer['args'] as string[]).slice(1)).secure?.certificateLifetime).toBe(72 * 3_600_000);
  });

  test('selects its Pods with the Service, the budget and the spreading', async () => {
    const objects = await renderChart({ service: { alias: 'istiod' }, labels: { team: 'mesh' } });
    const { deployment, pod, labels } = deploymentOf(objects);
    const selector = (deployment['selector'] as { matchLabels: object }).matchLabels;
    expect(labels).toMatchObject({ ...selector, team: 'mesh', 'sidecar.istio.io/inject': 'false' });
    const services = objects.filter(({ kind }) => kind === 'Service');
    expect(services.map(({ metadata }) => metadata.name)).toEqual(['fairlead', 'istiod']);
    for (const { spec } of services) {
      expect(spec).toMatchObject({ selector });
      const { ports } = spec as { ports: { name: string; port: number; targetPort: string }[] };
      expect(ports.map(({ name, port, targetPort }) => [name === targetPort, port])).toEqual([
        [true, 15012],
        [true, 443],
        [true, 15014],
        [true, 8080],
      ]);
    }
    const budget = objects.find(({ kind }) => kind === 'PodDisruptionBudget');
    expect(budget?.['spec']).toEqual({ maxUnavailable: 1, selector: { matchLabels: selector } });
    for (const constraint of pod['topologySpreadConstraints'] as object[])
      expect(constraint).toMatchObject({ labelSelector: { matchLabels: selector } });
  });

  test('opens the plaintext port only on request, and on the requested address', async () => {
    const everywhere = [{ namespaceSelector: {} }];
    const portsOf = async (plaintext: object): Promise<unknown> => {
      const injection = { enabled: false };
      const objects = await renderChart({ plaintext, injection, networkPolicy: { enabled: true } });
      const { container } = deploymentOf(objects);
      const specOf = (kind: string): Json => objects.find((object) => object.kind === kind)!['spec'] as Json;
      const { ingress } = specOf('NetworkPolicy') as { ingress: { from: unknown; ports: { port: string }[] }[] };
      for (const { from } of ingress) expect(from).toEqual(everywhere);
      return {
        listens: configOf((container['args'] as string[]).slice(1)).grpcAddress,
        container: (container['ports'] as { name: string }[]).some(({ name }) => name === 'grpc-xds'),
        service: (specOf('Service')['ports'] as { port: number }[]).some(({ port }) => port === 15010),
        policy: ingress.flatMap(({ ports }) => ports.map(({ port }) => port)),
      };
    };
    expect(await portsOf({})).toEqual({ container: false, service: false, policy: ['grpc-xds-tls'] });
    expect(await portsOf({ enabled: true, host: '127.0.0.1' })).toEqual({
      listens: { host: '127.0.0.1', port: 15010 },
      container: true,
      service: true,
      policy: ['grpc-xds', 'grpc-xds-tls'],
    });
  });

  test('reads the mesh config where it is told to, and leaves one that is there alone', async () => {
    const objects = await renderChart({ rootNamespace: 'mesh', meshConfig: { accessLogFile: '/dev/stdout' } });
    const isMeshConfig = ({ kind, metadata }: ChartObject): boolean =>
      kind === 'ConfigMap' && metadata.name === 'istio';
    const configMap = objects.find(isMeshConfig);
    expect(configMap?.metadata).toMatchObject({ name: 'istio', namespace: 'mesh' });
    // Neither `helm uninstall`, nor a tool that prunes, nor the value below gives the whole mesh the defaults, or another root.
    const kept = { 'helm.sh/resource-policy': 'keep', 'argocd.argoproj.io/sync-options': 'Prune=false' };
    expect(configMap?.metadata.annotations).toEqual(kept);
    for (const { kind, metadata } of objects) if (kind === 'Secret') expect(metadata.annotations).toEqual(kept);
    expect(parse((configMap?.['data'] as { mesh: string }).mesh)).toEqual({ accessLogFile: '/dev/stdout' });
    const granted = permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission);
    expect(granted.filter((text) => text.includes('configmaps mesh/'))).toEqual([
      'list /configmaps mesh/istio',
      'watch /configmaps mesh/istio',
    ]);
    const { mesh } = configOf((deploymentOf(objects).container['args'] as string[]).slice(1));
    expect(mesh.rootNamespace).toBe('mesh');
    const without = await renderChart({ createMeshConfig: false });
    expect(without.filter(isMeshConfig)).toEqual([]);
  });

  test('names the mesh config of a revision like it, and lets it read that of all, too', async () => {
    for (const [revision, names] of [
      ['canary', ['istio-canary', 'istio']],
      ['default', ['istio']],
    ] as const) {
      const objects = await renderChart({ revision });
      const maps = objects.filter(({ kind, metadata }) => kind === 'ConfigMap' && /^istio/.test(metadata.name));
      expect(maps.map(({ metadata }) => metadata.name)).toEqual([names[0]]);
      const granted = permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission);
      const wanted = names.flatMap((name) =>
        ['list', 'watch'].map((verb) => `${verb} /configmaps ${NAMESPACE}/${name}`),
      );
      expect(granted).toEqual(expect.arrayContaining(wanted));
    }
  });

  test('leaves out what Kubernetes before 1.30 does not have', async () => {
    const kindsOf = async (version: string): Promise<string[]> =>
      [...new Set((await renderChart({}, '--kube-version', version)).map(({ kind }) => kind))].sort();
    const newer = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];
    expect(await kindsOf('1.30.0')).toEqual([...(await kindsOf('1.29.15')), ...newer].sort());
  });

  test('shares the Lease with every other release, and that of a revision with the others of it', async () => {
    const leasesOf = async (values: object, ...args: string[]): Promise<unknown> => {
      const objects = await renderChart(values, ...args);
      const { lease, revision } = configOf((deploymentOf(objects).container['args'] as string[]).slice(1));
      const account = objects.find(({ kind }) => kind === 'ServiceAccount')!.metadata;
      const granted = permissionsOf(objects, account.name, account.namespace!).map(printPermission);
      return { lease, revision, granted: granted.filter((text) => text.includes('leases')).sort() };
    };
    const common = ['create coordination.k8s.io/leases kube-system/*'];
    const rights = (name: string): string[] =>
      ['get', 'update'].map((verb) => `${verb} coordination.k8s.io/leases kube-system/${name}`);
    const lease = { namespace: 'kube-system', name: 'fairlead', duration: 15_000 };
    for (const args of [[], ['--namespace', 'trial']])
      expect(await leasesOf({}, ...args)).toEqual({ lease, granted: [...common, ...rights('fairlead')] });
    expect(await leasesOf({ revision: 'canary' })).toEqual({
      lease,
      revision: 'canary',
      granted: [...common, ...rights('fairlead'), ...rights('fairlead-canary')].sort(),
    });
    expect(await leasesOf({ leaseNamespace: 'mesh' })).toMatchObject({ lease: { namespace: 'mesh' } });
  });

  test('labels what it makes with the revision, and selects by other labels', async () => {
    const objects = await renderChart({ revision: 'canary' });
    for (const { kind, metadata } of objects)
      expect([kind, metadata]).toMatchObject([kind, { labels: { 'istio.io/rev': 'canary' } }]);
    const { deployment, labels } = deploymentOf(objects);
    expect(labels).toMatchObject({ 'istio.io/rev': 'canary', 'sidecar.istio.io/inject': 'false' });
    const unnamed = await renderChart();
    expect(deployment['selector']).toEqual(deploymentOf(unnamed).deployment['selector']);
    // istioctl looks for Pods of the revision `default` where it is told of no other.
    expect(deploymentOf(unnamed).labels).toMatchObject({ 'istio.io/rev': 'default' });
  });

  test.each([
    ['default', { labels: kiali.objects.labels }],
    ['canary', { labels: kiali.objects.labels, revision: 'canary', clusterId: 'east' }],
  ])('is found by Kiali if it is labelled as the guide says: revision %s', async (revision, values) => {
    const { labels, revisionLabel, clusterVariable, monitoringPort, podPorts, meshConfig } = kiali.objects;
    const objects = await renderChart(values);
    const find = (kind: string, wanted: object): ChartObject | undefined =>
      objects.find((object) => object.kind === kind && isSubset(wanted, object.metadata.labels ?? {}));
    const both = { ...labels, [revisionLabel]: revision };
    expect(find('Deployment', labels)?.metadata.labels).toMatchObject(both);
    const { container, labels: podLabels, deployment } = deploymentOf(objects);
    expect(podLabels).toMatchObject(both);
    expect((deployment['selector'] as { matchLabels: object }).matchLabels).not.toHaveProperty('app');
    const [, id] = /^--cluster-id=(.*)$/m.exec((container['args'] as string[]).join('\n'))!;
    expect(container['env']).toContainEqual({ name: clusterVariable, value: id });
    const ports = container['ports'] as { containerPort: number }[];
    expect(ports.map(({ containerPort }) => containerPort)).toEqual(expect.arrayContaining(Object.values(podPorts)));
    const service = find('Service', both)?.['spec'] as { ports: { name: string; port: number }[] };
    expect(service.ports).toContainEqual(expect.objectContaining({ name: monitoringPort, port: podPorts.monitoring }));
    const configName = revision === 'default' ? meshConfig.name : `${meshConfig.name}-${revision}`;
    const config = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configName);
    expect(config?.['data']).toHaveProperty(meshConfig.key);
  });

  test('has definitions of the kinds that are not read if they are wanted, in the versions that Kiali lists', async () => {
    const definitionsOf = async (values: object): Promise<readonly Definition[]> =>
      (await renderChart(values)).filter(({ kind }) => kind === 'CustomResourceDefinition') as unknown as Definition[];
    expect(await definitionsOf({})).toEqual([]);
    const definitions = await definitionsOf({ istioCrds: true });
    const names = definitions.map(({ metadata }) => metadata.name).sort();
    expect(names).toEqual(unreadResources.map(({ plural, group }) => `${plural}.${group}`).sort());
    for (const { spec } of definitions)
      expect([spec.names.kind, spec.versions.filter(({ storage }) => storage).length]).toEqual([spec.names.kind, 1]);
    const own = kinds.flatMap(({ group, versions, kind }) => versions.map((version) => `${group}/${version} ${kind}`));
    const made = definitions.flatMap(
      ({
        spec: {
          group,
          names: { kind },
          versions,
        },
      }) => versions.map(({ name }) => `${group}/${name} ${kind}`),
    );
    for (const [group, listed] of Object.entries(kiali.objects.kinds))
      for (const kind of listed) expect([...own, ...made]).toContain(`${group} ${kind}`);
  });

  test('lets no label of its user take the place of its own', async () => {
    const own = { 'app.kubernetes.io/name': 'fairlead', 'istio.io/rev': 'canary' };
    const labels = Object.fromEntries([...Object.keys(own), 'sidecar.istio.io/inject'].map((name) => [name, 'other']));
    const { labels: podLabels } = deploymentOf(await renderChart({ revision: 'canary', labels }));
    expect(podLabels).toMatchObject({ ...own, 'sidecar.istio.io/inject': 'false' });
  });

  test('leaves the number of replicas to an autoscaler, its own or another one', async () => {
    expect(deploymentOf(await renderChart()).deployment['replicas']).toBe(2);
    expect(deploymentOf(await renderChart({ replicas: 0 })).deployment['replicas']).toBe(0);
    expect(deploymentOf(await renderChart({ replicas: null })).deployment).not.toHaveProperty('replicas');
    const objects = await renderChart({ autoscaling: { enabled: true, maxReplicas: 7 } });
    expect(deploymentOf(objects).deployment).not.toHaveProperty('replicas');
    const scaler = objects.find(({ kind }) => kind === 'HorizontalPodAutoscaler');
    expect(scaler?.['spec']).toMatchObject({
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'fairlead' },
      minReplicas: 2,
      maxReplicas: 7,
      metrics: [{ resource: { name: 'cpu', target: { averageUtilization: 80 } } }],
    });
    expect(deploymentOf(objects).container).toMatchObject({ resources: { requests: { cpu: expect.any(String) } } });
  });

  test('has a budget for disruptions as its user wants it', async () => {
    const budgetOf = async (podDisruptionBudget: object): Promise<unknown> =>
      (await renderChart({ podDisruptionBudget })).find(({ kind }) => kind === 'PodDisruptionBudget')?.['spec'];
    expect(await budgetOf({ enabled: false })).toBeUndefined();
    expect(await budgetOf({ maxUnavailable: '50%' })).toMatchObject({ maxUnavailable: '50%' });
  });

  test('lets in whom its NetworkPolicy names, and nobody where it names nobody', async () => {
    const policyOf = async (networkPolicy: object): Promise<unknown> =>
      (await renderChart({ networkPolicy })).find(({ kind }) => kind === 'NetworkPolicy')?.['spec'];
    expect(await policyOf({})).toBeUndefined();
    const { deployment, container } = deploymentOf(await renderChart());
    const spec = { podSelector: deployment['selector'], policyTypes: ['Ingress'] };
    const everybody = [{ namespaceSelector: {} }];
    const rule = (port: string, from: object[]): object => ({ from, ports: [{ protocol: 'TCP', port }] });
    // API servers are not Pods.
    const asking = { ports: [{ protocol: 'TCP', port: 'https-webhook' }] };
    expect(await policyOf({ enabled: true })).toEqual({
      ...spec,
      ingress: [rule('grpc-xds-tls', everybody), asking],
    });
    const monitoring = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
    const shops = [{ namespaceSelector: { matchLabels: { mesh: 'on' } }, podSelector: {} }];
    expect(await policyOf({ enabled: true, proxies: shops, monitoring })).toEqual({
      ...spec,
      ingress: [rule('grpc-xds-tls', shops), rule('http-monitoring', monitoring), asking],
    });
    const webhooks = [{ ipBlock: { cidr: '10.0.0.0/28' } }];
    expect(await policyOf({ enabled: true, proxies: [], webhooks })).toEqual({
      ...spec,
      ingress: [rule('https-webhook', webhooks)],
    });
    // No rule at all: nobody. A rule without peers would be everybody.
    const injection = { enabled: false };
    const nobody = await renderChart({ injection, networkPolicy: { enabled: true, proxies: [] } });
    expect(nobody.find(({ kind }) => kind === 'NetworkPolicy')?.['spec']).toEqual({ ...spec, ingress: null });
    const names = (container['ports'] as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['grpc-xds-tls', 'http-monitoring']));
  });

  test('gives a Pod that is to end time to be forgotten, and more to end', async () => {
    const { pod, container } = deploymentOf(await renderChart());
    expect(pod['terminationGracePeriodSeconds']).toBe(30);
    expect(container['lifecycle']).toEqual({ preStop: { exec: { command: ['sleep', '5'] } } });
    const other = deploymentOf(await renderChart({ terminationGracePeriodSeconds: 90, preStopSeconds: 0 }));
    expect(other.pod['terminationGracePeriodSeconds']).toBe(90);
    expect(other.container).not.toHaveProperty('lifecycle');
  });

  test('gives the heap its part of the memory of the container', async () => {
    const { container } = deploymentOf(await renderChart());
    const variables = container['env'] as { name: string; value: string }[];
    const options = variables.find(({ name }) => name === 'NODE_OPTIONS')!.value;
    const script =
      'console.log(v8.getHeapStatistics().heap_size_limit / Math.min(os.totalmem(), process.constrainedMemory() || Infinity))';
    const { stdout } = await run(process.execPath, ['-e', script], { env: { NODE_OPTIONS: options } });
    expect(Number(stdout)).toBeGreaterThan(0.6);
    expect(Number(stdout)).toBeLessThan(0.7);
  });

  test('mounts what its user adds', async () => {
    const extraVolumes = [{ name: 'config', secret: { secretName: 'kubeconfig' } }];
    const extraVolumeMounts = [{ name: 'config', mountPath: '/config', readOnly: true }];
    const { pod, container } = deploymentOf(await renderChart({ extraVolumes, extraVolumeMounts }));
    expect([pod['volumes'], container['volumeMounts']]).toEqual([
      expect.arrayContaining(extraVolumes),
      expect.arrayContaining(extraVolumeMounts),
    ]);
    const injection = { enabled: false };
    const { pod: only } = deploymentOf(await renderChart({ injection, extraVolumes, extraVolumeMounts }));
    expect(only['volumes']).toEqual(extraVolumes);
  });

  test('lets its user add arguments, which win', async () => {
    const { container } = deploymentOf(
      await renderChart({ extraArgs: ['--batch=1ms/2ms'], extraEnv: [{ name: 'TZ', value: 'UTC' }] }),
    );
    expect(configOf((container['args'] as string[]).slice(1)).batch).toEqual({ quiet: 1, max: 2 });
    expect(container['env']).toContainEqual({ name: 'TZ', value: 'UTC' });
  });
});

function isSubset(wanted: object, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}
