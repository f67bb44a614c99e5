import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { CHART, IMAGES, NAMESPACE, ROOT } from '../chart/chart.ts';
import type { ApiObject } from '../peers/api-server.ts';
import { pathOf } from '../peers/peer.ts';
import { poll, run } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { install, type Installed, type Replica } from './installed.ts';
import { object, routes, rule } from './shop.ts';

const TEMPLATE = 'templates/istio-crds.yaml';

const peers = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'] as const;

withPeers(peers, 'Fairlead where the CustomResourceDefinitions of Istio are installed', () => {
  let cluster: Installed;
  let replica: Replica;
  printLogOnFailure(() => replica?.process);

  beforeAll(async () => {
    cluster = await install({
      before: async (api) => {
        await api.apply(crds().join('\n---\n'));
        await api.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=10s');
      },
      values: ['--set', 'replicas=1'],
    });
    const [pod = ''] = await cluster.pods();
    replica = await cluster.start(pod);
    await replica.ready();
    await cluster.api.kubectl('create', 'namespace', 'shop');
  });
  afterAll(() => cluster?.stop());

  const apply = (...objects: readonly object[]): Promise<string> =>
    cluster.api.apply(objects.map((each) => JSON.stringify(each)).join('\n---\n'));
  const kubectl = (...args: string[]): Promise<string> => cluster.api.kubectl('-n', 'shop', ...args);
  const get = (path: string): Promise<ApiObject> =>
    cluster.api.call('GET', `/apis/networking.istio.io/v1/namespaces/shop/${path}`);
  const conditions = async (path: string): Promise<readonly Condition[]> =>
    ((await get(path))['status'] as { conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  const types = (found: readonly Condition[]): string[] => found.map(({ type }) => type).sort();

  test('leaves them as they are', async () => {
    const names = await cluster.api.kubectl('get', 'crd', '-l', 'chart=istio', '-o', 'name');
    expect(names.trim().split('\n')).toHaveLength(crds().length);
    const text = await cluster.api.kubectl('get', 'crd', 'virtualservices.networking.istio.io', '-o', 'yaml');
    expect(text).not.toContain('listType: map');
    expect(text).not.toContain('x-kubernetes-validations');
  });

  test('keeps the conditions that others write into the same atomic list', async () => {
    await apply(routes('stable'));
    const foreign = { type: 'Reconciled', status: 'True', reason: 'Done', message: 'by another controller' };
    const path = 'virtualservices/reviews';
    await kubectl('wait', '--for=condition=Accepted', 'virtualservice/reviews', '--timeout=10s');
    // It replaces the list, as whoever does not know of us would.
    await poll('the other controller', async () => {
      const found = await get(path);
      const url = `/apis/networking.istio.io/v1/namespaces/shop/${path}/status`;
      const status = { observedGeneration: '1', conditions: [foreign] };
      return cluster.api.call('PUT', url, { ...found, status }).catch(() => undefined);
    });
    const found = await poll('ours again', async () => {
      const list = await conditions(path);
      return list.length === 4 ? list : undefined;
    });
    expect(types(found)).toEqual(['Accepted', 'Programmed', 'Reconciled', 'ResolvedRefs']);
    expect(found.find(({ type }) => type === 'Reconciled')).toMatchObject(foreign);
    expect((await get(path))['status']).toMatchObject({ observedGeneration: '1' });

    await apply(rule({ stable: 'v1' }), entry);
    await kubectl('wait', '--for=condition=ResolvedRefs', 'virtualservice/reviews', '--timeout=10s');
    expect(types(await conditions(path))).toEqual(['Accepted', 'Programmed', 'Reconciled', 'ResolvedRefs']);
  });

  test('does not write for ever what an older definition does not keep', async () => {
    await apply(object('Sidecar', 'default', { egress: [{ hosts: ['./*'] }] }));
    await kubectl('wait', '--for=condition=Accepted', 'sidecar/default', '--timeout=10s');
    expect((await conditions('sidecars/default'))[0]).not.toHaveProperty('observedGeneration');
    // Some time for it, in which others are written.
    for (const weight of [1, 2, 3]) {
      await apply(object('WorkloadEntry', 'one', { address: '10.9.8.7', weight }));
      await poll('its condition', async () => {
        const { metadata } = await get('workloadentries/one');
        const [first] = await conditions('workloadentries/one');
        return first?.observedGeneration === metadata?.['generation'] ? true : undefined;
      });
    }
    const writes = (await cluster.audit.requests()).filter(
      ({ verb, resource }) => verb === 'patch' && resource === 'sidecars/status',
    );
    expect(writes).toHaveLength(1);
  });

  test('tells the owner what a stricter definition would have refused', async () => {
    await apply(object('ServiceEntry', 'odd', { hosts: ['*'], resolution: 'STATIC' }));
    await kubectl('wait', '--for=condition=Accepted=False', 'serviceentry/odd', '--timeout=10s');
    const accepted = (await conditions('serviceentries/odd')).find(({ type }) => type === 'Accepted');
    expect(accepted?.message).toContain('spec.hosts[0]: "*"');
  });

  test('the chart adds those of kinds that are not read where there are none, and helm never removes them', async () => {
    const [telemetry, filters] = ['telemetries.telemetry.istio.io', 'envoyfilters.networking.istio.io'];
    const crd = (name: string): Promise<ApiObject> =>
      cluster.api.call('GET', `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
    const { code, stdout } = await run(pathOf('helm'), [
      'template',
      CHART,
      ...IMAGES,
      '--set',
      'istioCrds=true',
      '-s',
      TEMPLATE,
    ]);
    expect(code).toBe(0);
    const theirs = parseAllDocuments(stdout).map((document) => document.toJS() as { metadata: { name: string } });
    const there = theirs.find(({ metadata }) => metadata.name === telemetry)!;
    await cluster.api.apply(JSON.stringify({ ...there, metadata: { name: telemetry, labels: { chart: 'istio' } } }));
    const upgrade = (...values: string[]): Promise<string> =>
      cluster.api.helm('upgrade', 'fairlead', CHART, '-n', NAMESPACE, ...IMAGES, '--set', 'replicas=1', ...values);
    await upgrade('--set', 'istioCrds=true');
    const made = await crd(filters);
    expect((await crd(telemetry)).metadata).toMatchObject({ labels: { chart: 'istio' } });
    await cluster.api.kubectl('wait', '--for=condition=Established', `crd/${filters}`, '--timeout=10s');
    await apply({
      apiVersion: 'networking.istio.io/v1alpha3',
      kind: 'EnvoyFilter',
      metadata: { name: 'any', namespace: 'shop' },
      spec: { configPatches: [{ applyTo: 'CLUSTER' }] },
    });
    for (const values of [['--set', 'istioCrds=true'], []]) await upgrade(...values);
    expect((await crd(filters)).metadata?.['uid']).toBe(made.metadata?.['uid']);
    expect(await kubectl('get', 'envoyfilter', 'any', '-o', 'jsonpath={.spec}')).toContain('CLUSTER');
  });
});

interface Condition {
  readonly type: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

const entry = object('ServiceEntry', 'reviews', {
  hosts: ['reviews.shop.example'],
  resolution: 'STATIC',
  ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
  endpoints: [{ address: '10.9.8.7', labels: { version: 'v1' } }],
});

/** Names and versions of ours with a schema that says little: lists are atomic, and the status of others is kept. */
function crds(): string[] {
  const directory = join(ROOT, 'crds');
  return readdirSync(directory).map((file) => {
    const ours = parse(readFileSync(join(directory, file), 'utf8')) as Crd;
    const openAPIV3Schema = schema(file !== 'sidecars.yaml');
    return JSON.stringify({
      ...ours,
      metadata: { name: ours.metadata.name, labels: { chart: 'istio' } },
      spec: {
        ...ours.spec,
        versions: ours.spec.versions.map(({ name, served, storage, subresources }) => ({
          ...{ name, served, storage, subresources },
          schema: { openAPIV3Schema },
        })),
      },
    });
  });
}

interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
      readonly subresources: object;
    }[];
  };
}

/** The conditions of older releases do not have the generation. */
function schema(observedGeneration: boolean): object {
  const text = { type: 'string' };
  const generation = { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true };
  const condition = {
    ...{ type: text, status: text, reason: text, message: text },
    ...{
      lastTransitionTime: { type: 'string', format: 'date-time' },
      lastProbeTime: { type: 'string', format: 'date-time' },
    },
    ...(observedGeneration && { observedGeneration: generation }),
  };
  return {
    type: 'object',
    properties: {
      spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      status: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { conditions: { type: 'array', items: { type: 'object', properties: condition } } },
      },
    },
  };
}
