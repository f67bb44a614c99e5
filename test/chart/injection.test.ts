import { expect, test } from 'vitest';
import { type InjectionConfig, loadInjection } from '../../src/injection/configuration.ts';
import { version } from '../../src/base/version.ts';
import { withPeers } from '../peers/with-peers.ts';
import { HUB, renderChart } from './chart.ts';

/** What a server makes of the directory that the chart mounts. */
async function loadedWith(values: object = {}, ...args: string[]): Promise<InjectionConfig> {
  const objects = await renderChart(values, ...args);
  const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'fairlead-injection');
  const loaded = loadInjection(new Map(Object.entries(map?.['data'] as Record<string, string>)));
  return 'config' in loaded ? loaded.config : expect.fail(JSON.stringify(loaded.problems));
}

withPeers(['helm'], "the chart's templates and settings of injection", () => {
  test('can be loaded, and name the image and the Service of the release', async () => {
    const { proxy, templates, defaultTemplates, rules } = await loadedWith();
    expect(proxy).toMatchObject({
      image: `${HUB}/fairlead-proxy:${version}`,
      discoveryAddress: 'fairlead.istio-system.svc:15012',
      resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '2', memory: '1Gi' } },
    });
    expect([...templates.keys()]).toEqual(['gateway', 'grpc-agent', 'grpc-simple', 'sidecar']);
    expect(defaultTemplates).toEqual(['sidecar']);
    expect(rules).toMatchObject({ revision: '', policy: 'enabled', tags: [] });
  });

  test('have native sidecars where no node can be too old for them', async () => {
    expect(await loadedWith()).toMatchObject({ nativeSidecars: true });
    expect(await loadedWith({}, '--kube-version', '1.31.9')).toMatchObject({ nativeSidecars: false });
    expect(await loadedWith({ injection: { nativeSidecars: false } })).toMatchObject({ nativeSidecars: false });
  });

  test('have all that is set', async () => {
    const { proxy, rules, rewriteProbes, templates } = await loadedWith({
      revision: 'canary',
      clusterId: 'east',
      domainSuffix: 'example.org',
      injection: {
        policy: 'disabled',
        tags: ['default'],
        rewriteProbes: false,
        neverInjectSelector: [{ matchLabels: { app: 'builder' } }],
        templates: {
          team: { metadata: { labels: { team: 'shop' } } },
          gateway: '{metadata: {labels: {mine: really}}}',
        },
      },
      proxy: {
        image: { repository: 'r/p', tag: '7' },
        discoveryAddress: 'a:1',
        excludeOutboundPorts: '25',
        network: 'n',
      },
    });
    expect(proxy).toMatchObject({
      ...{ image: 'r/p:7', discoveryAddress: 'a:1', excludeOutboundPorts: '25', network: 'n' },
      ...{ clusterId: 'east', domainSuffix: 'example.org' },
    });
    expect(rules).toMatchObject({ revision: 'canary', policy: 'disabled', tags: ['default'] });
    expect(rules.neverInject).toEqual([{ matchLabels: { app: 'builder' } }]);
    expect(rewriteProbes).toBe(false);
    expect(templates.get('team')?.content).toEqual({ metadata: { labels: { team: 'shop' } } });
    expect(templates.get('gateway')?.content).toEqual({ metadata: { labels: { mine: 'really' } } });
  });

  test('have the probes and the hooks of proxies, as the program has them where nothing is set', async () => {
    const bare = loadInjection(
      new Map([['config.yaml', 'proxy: {image: a, discoveryAddress: b}\ndefaultTemplates: []']]),
    );
    const defaults = 'config' in bare ? bare.config.proxy : expect.fail('not loaded');
    const { proxy } = await loadedWith();
    for (const name of ['readinessPeriodSeconds', 'readinessFailureThreshold', 'startupProbe', 'lifecycle'] as const)
      expect(proxy[name]).toEqual(defaults[name]);
    const lifecycle = { preStop: { exec: { command: ['sleep', '9'] } } };
    const startupProbe = { enabled: false, failureThreshold: 5 };
    const probes = { readinessInitialDelaySeconds: 3, readinessPeriodSeconds: 4, readinessFailureThreshold: 5 };
    const { proxy: set } = await loadedWith({ proxy: { lifecycle, startupProbe, ...probes } });
    expect(set).toMatchObject({ lifecycle, startupProbe, ...probes });
  });

  test('are not there where injection is off', async () => {
    const objects = await renderChart({ injection: { enabled: false } });
    expect(objects.map(({ metadata }) => metadata.name)).not.toContain('fairlead-injection');
    expect(JSON.stringify(objects)).not.toContain('volumeMounts');
  });
});
