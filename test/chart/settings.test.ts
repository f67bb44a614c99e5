import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { version } from '../../src/base/version.ts';
import { createAuthority } from '../peers/keys.ts';
import { run } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { HUB, ROOT, type ChartObject, type Json, NAMESPACE, configOf, deploymentOf, renderChart } from './chart.ts';
import { permissionsOf, printPermission } from './permissions.ts';

const find = (objects: readonly ChartObject[], kind: string, name?: string): ChartObject | undefined =>
  objects.find((object) => object.kind === kind && (name === undefined || object.metadata.name === name));

async function configWith(values: object): Promise<ReturnType<typeof configOf>> {
  const { container } = deploymentOf(await renderChart(values));
  return configOf((container['args'] as string[]).slice(1));
}

async function imagesWith(values: object): Promise<string[]> {
  const objects = await renderChart(values);
  const injection = find(objects, 'ConfigMap', 'fairlead-injection')?.['data'] as Record<string, string>;
  const { proxy } = parse(injection['config.yaml'] ?? '') as { readonly proxy: { readonly image: string } };
  return [String(deploymentOf(objects).container['image']), proxy.image];
}

withPeers(['helm'], 'values of the chart', () => {
  test('say where the images are: all of them, or each; by tag or digest', async () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    expect(await imagesWith({})).toEqual([`${HUB}/fairlead:${version}`, `${HUB}/fairlead-proxy:${version}`]);
    expect(await imagesWith({ global: { hub: 'r/m/', tag: '7' } })).toEqual(['r/m/fairlead:7', 'r/m/fairlead-proxy:7']);
    const each = { image: { repository: 'a', tag: '8' }, proxy: { image: { repository: 'b', digest } } };
    expect(await imagesWith({ global: { tag: '7' }, ...each })).toEqual(['a:8', `b@${digest}`]);
    expect((await imagesWith({ image: { tag: '8', digest } }))[0]).toBe(`${HUB}/fairlead@${digest}`);
  });

  test('name Secrets that pull all images, or some', async () => {
    const objects = await renderChart({
      global: { hub: HUB, imagePullSecrets: ['all'] },
      imagePullSecrets: [{ name: 'own' }],
      proxy: { imagePullSecrets: [{ name: 'all' }] },
    });
    expect(deploymentOf(objects).pod['imagePullSecrets']).toEqual([{ name: 'own' }, { name: 'all' }]);
    const { 'config.yaml': text = '' } = find(objects, 'ConfigMap', 'fairlead-injection')?.['data'] as Record<
      string,
      string
    >;
    expect(parse(text)).toMatchObject({ proxy: { imagePullSecrets: [{ name: 'all' }] } });
  });

  test('name networks as those of the chart of istiod do', async () => {
    const meshNetworks = {
      east: { endpoints: [{ fromRegistry: 'east' }], gateways: [{ address: '1.2.3.4', port: 15443 }] },
    };
    const objects = await renderChart({ global: { hub: HUB, meshNetworks } });
    const data = find(objects, 'ConfigMap', 'istio')?.['data'] as Record<string, string>;
    expect(parse(data['meshNetworks'] ?? '')).toEqual({ networks: meshNetworks });
    expect(find(await renderChart(), 'ConfigMap', 'istio')?.['data']).not.toHaveProperty('meshNetworks');
  });

  test('reach the program', async () => {
    expect(
      await configWith({
        clusterAliases: { old: 'east', other: 'west' },
        gatewayScope: 'namespace',
        defaultProxy: { namespace: 'shop', type: 'router' },
        jwksAllowedNetworks: ['10.0.0.0/8', 'fd00::/8'],
        maxStreams: 50,
        keepaliveMaxServerConnectionAge: 'off',
        shutdownDuration: '90s',
      }),
    ).toMatchObject({
      mesh: {
        clusterAliases: { old: 'east', other: 'west' },
        gatewayScope: 'namespace',
        defaultProxyNamespace: 'shop',
        defaultProxyType: 'router',
      },
      jwksAllowedNetworks: ['10.0.0.0/8', 'fd00::/8'],
      streams: { most: 50, maxAge: Infinity, shutdown: 90_000 },
    });
  });

  test('add authorities for token issuers, which a replica reads when it starts', async () => {
    const pem = (name: string): string => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
    const templateWith = async (name: string): Promise<Json> => {
      const objects = await renderChart({ jwksResolverExtraRootCA: pem(name), injection: { enabled: false } });
      expect(find(objects, 'ConfigMap', 'fairlead-jwks')?.['data']).toEqual({ 'extra.pem': pem(name) });
      const { pod, container, deployment } = deploymentOf(objects);
      const [mount] = container['volumeMounts'] as { name: string; mountPath: string }[];
      expect(pod['volumes']).toEqual([{ name: mount?.name, configMap: { name: 'fairlead-jwks' } }]);
      const variable = { name: 'NODE_EXTRA_CA_CERTS', value: `${mount?.mountPath}/extra.pem` };
      expect(container['env']).toContainEqual(variable);
      return deployment['template'] as Json;
    };
    expect((await templateWith('a'))['metadata']).not.toEqual((await templateWith('b'))['metadata']);
  });

  test('which are trusted where keys of issuers are fetched, and only with the variable', async () => {
    const authority = await createAuthority();
    const { certificate: cert, key } = await authority.server(['localhost']);
    const server = createServer({ cert, key }, (_, response) => response.end('the keys'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const objects = await renderChart({ jwksResolverExtraRootCA: authority.certificate });
    const { 'extra.pem': extra = '' } = find(objects, 'ConfigMap', 'fairlead-jwks')?.['data'] as Record<string, string>;
    const file = join(await temporaryDirectory(), 'extra.pem');
    await writeFile(file, extra);
    const script = `
      import { AllowedAddresses } from '${ROOT}/src/jwks/addresses.ts';
      import { fetchText } from '${ROOT}/src/jwks/fetch-text.ts';
      const options = { allowed: new AllowedAddresses(['127.0.0.0/8', '::1/128']), mostBytes: 99, signal: AbortSignal.timeout(20_000) };
      console.log(await fetchText('https://localhost:${port}/', options).catch(({ code }) => code));`;
    const answer = async (env: NodeJS.ProcessEnv): Promise<string> =>
      (
        await run(process.execPath, ['--input-type=module', '-e', script], { env: { ...process.env, ...env } })
      ).stdout.trim();
    expect(await answer({})).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
    expect(await answer({ NODE_EXTRA_CA_CERTS: file })).toBe('the keys');
  });

  test('give the Services families of addresses', async () => {
    const families = { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6', 'IPv4'] };
    const objects = await renderChart({ ...families, service: { alias: 'istiod' } });
    for (const { spec } of objects.filter(({ kind }) => kind === 'Service')) expect(spec).toMatchObject(families);
    expect(find(await renderChart(), 'Service')?.['spec']).not.toHaveProperty('ipFamilyPolicy');
  });

  test('label Pods alone, and annotate the injection webhook', async () => {
    const objects = await renderChart({
      podLabels: { team: 'mesh', 'sidecar.istio.io/inject': 'true', 'app.kubernetes.io/name': 'other' },
      sidecarInjectorWebhookAnnotations: { 'example.com/a': 'b c' },
    });
    const { labels, deployment } = deploymentOf(objects);
    const { matchLabels } = deployment['selector'] as { matchLabels: Json };
    expect(labels).toMatchObject({ team: 'mesh', 'sidecar.istio.io/inject': 'false', ...matchLabels });
    expect(find(objects, 'Deployment')?.metadata.labels).not.toHaveProperty('team');
    expect(find(objects, 'MutatingWebhookConfiguration')?.metadata.annotations).toEqual({ 'example.com/a': 'b c' });
  });

  test('name the account, everywhere, and may leave its creation to others', async () => {
    const values = { serviceAccount: { name: 'mesh', create: false }, credentials: { namespaces: ['edge'] } };
    const objects = await renderChart(values);
    expect(find(objects, 'ServiceAccount')).toBeUndefined();
    expect(deploymentOf(objects).pod['serviceAccountName']).toBe('mesh');
    const rights = (account: string, of: readonly ChartObject[]): string[] =>
      permissionsOf(of, account, NAMESPACE).map(printPermission).sort();
    expect(rights('fairlead', objects)).toEqual([]);
    const usual = await renderChart({ credentials: values.credentials });
    expect(rights('mesh', objects)).toEqual(rights('fairlead', usual));
    expect(JSON.stringify(objects)).toContain(`system:serviceaccount:${NAMESPACE}:mesh`);
    expect(JSON.stringify(objects)).not.toContain(`system:serviceaccount:${NAMESPACE}:fairlead`);
    expect(find(await renderChart({ serviceAccount: { name: 'mesh' } }), 'ServiceAccount')?.metadata.name).toBe('mesh');
  });

  test('take variables from elsewhere', async () => {
    const extraEnv = [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }];
    expect(deploymentOf(await renderChart({ extraEnv })).container['env']).toContainEqual(extraEnv[0]);
  });

  test('decide how replicas spread, are replaced, and are scaled', async () => {
    const { deployment, pod } = deploymentOf(await renderChart());
    const labelSelector = deployment['selector'];
    const spread = (topologyKey: string, whenUnsatisfiable = 'ScheduleAnyway'): object => ({
      ...{ maxSkew: 1, topologyKey, whenUnsatisfiable, labelSelector },
    });
    expect(pod['topologySpreadConstraints']).toEqual([
      spread('kubernetes.io/hostname'),
      spread('topology.kubernetes.io/zone'),
    ]);
    expect(deployment['strategy']).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
    });
    const objects = await renderChart({
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' },
        {
          maxSkew: 1,
          topologyKey: 'rack',
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { a: 'b' } },
        },
      ],
      priorityClassName: 'system-cluster-critical',
      strategy: { type: 'Recreate', rollingUpdate: null },
      autoscaling: { enabled: true, targetCPUUtilizationPercentage: null, targetMemoryUtilizationPercentage: 70 },
    });
    const other = deploymentOf(objects);
    expect(other.pod).toMatchObject({
      topologySpreadConstraints: [
        spread('kubernetes.io/hostname', 'DoNotSchedule'),
        { topologyKey: 'rack', labelSelector: { matchLabels: { a: 'b' } } },
      ],
      priorityClassName: 'system-cluster-critical',
    });
    expect(other.deployment['strategy']).toEqual({ type: 'Recreate' });
    // A start is no reason for another replica.
    expect(find(objects, 'HorizontalPodAutoscaler')?.['spec']).toMatchObject({
      metrics: [{ resource: { name: 'memory', target: { averageUtilization: 70 } } }],
      behavior: { scaleUp: { stabilizationWindowSeconds: 120 } },
    });
  });

  test('can leave out what exists: the Secrets of the authority', async () => {
    const namesOf = async (values: object): Promise<string[]> =>
      (await renderChart(values)).filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name);
    expect(await namesOf({})).toEqual(['fairlead-ca', 'istio-ca-secret']);
    expect(await namesOf({ createAuthoritySecrets: false })).toEqual([]);
  });
});
