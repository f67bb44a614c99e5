import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/config.ts';
import { kinds } from '../../src/api/kinds.ts';
import { version } from '../../src/version.ts';
import { withPeers } from '../peers/with-peers.ts';
import { CHART, NAMESPACE, ROOT, helm, renderChart, type ChartObject } from './chart.ts';
import { permissionsOf, printPermission } from './permissions.ts';

describe('the files of the chart', () => {
  test('have the CustomResourceDefinitions of crds/, unchanged', () => {
    const read = (directory: string): [string, string][] =>
      readdirSync(directory)
        .sort()
        .map((name) => [name, readFileSync(join(directory, name), 'utf8')]);
    const [chart, own] = [read(join(CHART, 'crds')), read(join(ROOT, 'crds'))];
    expect(chart.map(([name]) => name)).toEqual(own.map(([name]) => name));
    for (const [index, [name, text]] of own.entries())
      expect(chart[index]?.[1] === text, `charts/fairlead/crds/${name} differs from crds/${name}: run make gen`).toBe(
        true,
      );
  });

  test('name the version of the program', () => {
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as Record<string, unknown>;
    expect(chart['appVersion']).toBe(version);
  });

  test('explain every value', () => {
    const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Record<string, unknown>;
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as { properties: object };
    expect(Object.keys(schema.properties).filter((name) => name !== 'global')).toEqual(
      expect.arrayContaining(Object.keys(values)),
    );
    expect(Object.keys(values)).toHaveLength(Object.keys(schema.properties).length - 1);
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
      'ConfigMap istio-system/istio',
      'Deployment istio-system/fairlead',
      'PodDisruptionBudget istio-system/fairlead',
      'Role istio-system/fairlead-istio-system-mesh-config',
      'Role istio-system/fairlead-lease',
      'RoleBinding istio-system/fairlead-istio-system-mesh-config',
      'RoleBinding istio-system/fairlead-lease',
      'Service istio-system/fairlead',
      'ServiceAccount istio-system/fairlead',
    ]);
    const crds = (await renderChart({}, '--include-crds')).filter(({ kind }) => kind === 'CustomResourceDefinition');
    expect(crds.map(({ metadata }) => metadata.name).sort()).toEqual(
      kinds.flatMap(({ custom, plural, group }) => (custom ? [`${plural}.${group}`] : [])).sort(),
    );
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
    for (const field of ['hostNetwork', 'hostPID', 'hostIPC', 'volumes']) expect(pod).not.toHaveProperty(field);
  });

  test('says on the command line only what the program understands, and means the same by ports', async () => {
    const { container } = deploymentOf(await renderChart());
    const [command, ...args] = container['args'] as string[];
    expect(command).toBe('serve');
    const config = configOf(args);
    expect(config).toMatchObject({
      source: { kind: 'kubernetes' },
      mesh: { rootNamespace: NAMESPACE, domainSuffix: 'cluster.local', clusterId: 'Kubernetes' },
      lease: { namespace: NAMESPACE, name: 'fairlead' },
      log: { level: 'info', format: 'json' },
      statusWrites: true,
    });
    const ports = Object.fromEntries(
      (container['ports'] as { name: string; containerPort: number }[]).map((p) => [p.name, p.containerPort]),
    );
    expect(ports).toEqual({
      'grpc-xds': config.grpcAddress.port,
      'http-monitoring': config.monitoringAddress.port,
      'http-health': config.healthAddress.port,
    });
    expect(container).toMatchObject({
      readinessProbe: { httpGet: { path: '/ready', port: 'http-health' } },
      livenessProbe: { httpGet: { path: '/healthz', port: 'http-health' } },
      resources: { requests: { cpu: expect.any(String), memory: expect.any(String) } },
    });
  });

  test('has the defaults of the program where it does not need others', async () => {
    const { container } = deploymentOf(await renderChart());
    const { log: _, ...config } = configOf((container['args'] as string[]).slice(1));
    const { log: __, ...defaults } = readConfig({ flags: {}, env: {} });
    expect(config).toEqual(defaults);
  });

  test('selects its Pods with the Service, the budget and the spreading', async () => {
    const objects = await renderChart({ service: { alias: 'istiod' }, podLabels: { team: 'mesh' } });
    const { deployment, pod, labels } = deploymentOf(objects);
    const selector = (deployment['selector'] as { matchLabels: object }).matchLabels;
    expect(labels).toMatchObject({ ...selector, team: 'mesh', 'sidecar.istio.io/inject': 'false' });
    const services = objects.filter(({ kind }) => kind === 'Service');
    expect(services.map(({ metadata }) => metadata.name)).toEqual(['fairlead', 'istiod']);
    for (const { spec } of services) {
      expect(spec).toMatchObject({ selector });
      const { ports } = spec as { ports: { name: string; port: number; targetPort: string }[] };
      expect(ports.map(({ name, port, targetPort }) => [name === targetPort, port])).toEqual([
        [true, 15010],
        [true, 15014],
        [true, 8080],
      ]);
    }
    const budget = objects.find(({ kind }) => kind === 'PodDisruptionBudget');
    expect(budget?.['spec']).toEqual({ maxUnavailable: 1, selector: { matchLabels: selector } });
    for (const constraint of pod['topologySpreadConstraints'] as object[])
      expect(constraint).toMatchObject({ labelSelector: { matchLabels: selector } });
  });

  test('lets the program do what it does and nothing more', async () => {
    const granted = permissionsOf(await renderChart(), 'fairlead', NAMESPACE).map(printPermission);
    expect(granted.sort()).toEqual([...reads(), ...writes()].sort());
  });

  test('lets it write nothing when it shall not', async () => {
    const objects = await renderChart({ statusWrites: false });
    expect(permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission).sort()).toEqual(reads().sort());
    expect(configOf((deploymentOf(objects).container['args'] as string[]).slice(1)).statusWrites).toBe(false);
  });

  test('reads the mesh config where it is told to, and leaves one that is there alone', async () => {
    const objects = await renderChart({ rootNamespace: 'mesh', meshConfig: { accessLogFile: '/dev/stdout' } });
    const configMap = objects.find(({ kind }) => kind === 'ConfigMap');
    expect(configMap?.metadata).toMatchObject({ name: 'istio', namespace: 'mesh' });
    expect(parse((configMap?.['data'] as { mesh: string }).mesh)).toEqual({ accessLogFile: '/dev/stdout' });
    const granted = permissionsOf(objects, 'fairlead', NAMESPACE).map(printPermission);
    expect(granted.filter((text) => text.includes('configmaps'))).toEqual([
      'list /configmaps mesh/istio',
      'watch /configmaps mesh/istio',
    ]);
    const { mesh, lease } = configOf((deploymentOf(objects).container['args'] as string[]).slice(1));
    expect([mesh.rootNamespace, lease.namespace]).toEqual(['mesh', NAMESPACE]);
    const without = await renderChart({ createMeshConfig: false });
    expect(without.filter(({ kind }) => kind === 'ConfigMap')).toEqual([]);
  });

  test('lets its user add arguments, which win', async () => {
    const { container } = deploymentOf(
      await renderChart({ extraArgs: ['--batch=1ms/2ms'], extraEnv: [{ name: 'TZ', value: 'UTC' }] }),
    );
    expect(configOf((container['args'] as string[]).slice(1)).batch).toEqual({ quiet: 1, max: 2 });
    expect(container['env']).toContainEqual({ name: 'TZ', value: 'UTC' });
  });

  test.each([
    ['a value that does not exist', { replicaCount: 2 }, 'replicaCount'],
    ['text for a number', { replicas: 'two' }, '/replicas'],
    ['a number of replicas below zero', { replicas: -1 }, '/replicas'],
    ['an image without a name', { image: { repository: '' } }, '/image/repository'],
    ['a policy that does not exist', { image: { pullPolicy: 'Sometimes' } }, '/image/pullPolicy'],
    ['a level that does not exist', { log: { level: 'trace' } }, '/log/level'],
    ['a batch without units', { batch: '10/100' }, '/batch'],
    ['mesh config as text', { meshConfig: 'accessLogFile: /dev/stdout' }, '/meshConfig'],
    ['no name of a namespace', { rootNamespace: 'Istio_System' }, '/rootNamespace'],
    ['no name of a Service', { service: { alias: '8istiod' } }, '/service/alias'],
    ['no amount of memory', { resources: { limits: { memory: 'much' } } }, '/resources/limits/memory'],
    ['an environment that is no list', { extraEnv: { TZ: 'UTC' } }, '/extraEnv'],
  ])('refuses %s and names it', async (_, values, place) => {
    await expect(renderChart(values)).rejects.toThrow(place);
  });
});

function reads(): string[] {
  return kinds.flatMap(({ kind, group, plural }) => {
    const place = kind === 'ConfigMap' ? ` ${NAMESPACE}/istio` : '';
    return ['list', 'watch'].map((verb) => `${verb} ${group}/${plural}${place}`);
  });
}

/** Conditions, and the Lease that says who may write them. */
function writes(): string[] {
  return [
    ...kinds
      .filter(({ custom }) => custom)
      .flatMap(({ group, plural }) => [`get ${group}/${plural}`, `patch ${group}/${plural}/status`]),
    `create coordination.k8s.io/leases ${NAMESPACE}/*`,
    `get coordination.k8s.io/leases ${NAMESPACE}/fairlead`,
    `update coordination.k8s.io/leases ${NAMESPACE}/fairlead`,
  ];
}

type Json = Readonly<Record<string, unknown>>;

function deploymentOf(objects: readonly ChartObject[]): {
  readonly deployment: Json;
  readonly labels: Json;
  readonly pod: Json;
  readonly container: Json;
} {
  const found = objects.find(({ kind }) => kind === 'Deployment') ?? expect.fail('there is no Deployment');
  const deployment = found['spec'] as Json;
  const template = deployment['template'] as { metadata: { labels: Json }; spec: Json };
  const [container = {}] = template.spec['containers'] as Json[];
  return { deployment, labels: template.metadata.labels, pod: template.spec, container };
}

function configOf(args: readonly string[]): ReturnType<typeof readConfig> {
  const flags = args.map((arg): [string, string] => {
    const [, name = '', value = ''] = /^--([^=]+)=(.*)$/.exec(arg) ?? expect.fail(`${arg} is no flag with a value`);
    return [name.replace(/-(.)/g, (__, letter: string) => letter.toUpperCase()), value];
  });
  return readConfig({ flags: Object.fromEntries(flags), env: {} });
}
