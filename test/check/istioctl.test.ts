import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { temporaryDirectory } from '../../src/directory/testing/temporary-directory.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import { ApiError } from '../peers/api-server.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { pathOf } from '../peers/peer.ts';
import { run } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { cases } from './analyzer-cases.ts';

/** Kinds of which it reads none in files. */
const IN_CLUSTER: Readonly<Record<string, string>> = { Pod: 'pods', Secret: 'secrets', Service: 'services' };

interface KubeObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: object };
  readonly status?: object;
}

withPeers(['etcd', 'istioctl', 'kube-apiserver', 'kubectl'], 'istioctl analyze', () => {
  const onEnd = afterSuite();
  let api: BorrowedApiServer;
  beforeAll(async () => {
    api = await borrowApiServer();
    onEnd(() => api.stop());
    await api.kubectl('apply', '--server-side', '-f', join(import.meta.dirname, '../../charts/fairlead/crds'));
    await api.kubectl('wait', '--for=condition=Established', 'crd', '--all');
    for (const name of ['shop', 'edge', 'till']) {
      await api.kubectl('create', 'namespace', name);
      await api.kubectl('create', 'serviceaccount', 'default', '-n', name);
    }
  });

  /** The codes of what it says of these objects. */
  async function analyze(documents: readonly string[]): Promise<ReadonlySet<string>> {
    const objects = documents.map((text) => parse(text) as KubeObject);
    const [namespace, others] = [
      objects.find(({ kind }) => kind === 'Namespace'),
      objects.filter(({ kind }) => kind !== 'Namespace'),
    ];
    const inCluster = others.filter(({ kind }) => kind in IN_CLUSTER);
    await labelNamespace(namespace?.metadata.labels ?? { 'istio-injection': 'enabled' });
    const created: KubeObject[] = [];
    try {
      for (const object of inCluster) {
        await create(object);
        created.push(object);
      }
      return await codesOf(others.filter((object) => !inCluster.includes(object)));
    } catch (error) {
      // What the API server refuses, nobody analyzes.
      if (error instanceof ApiError && error.status === 422) return new Set();
      throw error;
    } finally {
      for (const object of created) await api.call('DELETE', pathOfObject(object), { gracePeriodSeconds: 0 });
    }
  }

  async function codesOf(inFile: readonly KubeObject[]): Promise<ReadonlySet<string>> {
    const home = await temporaryDirectory();
    const file = join(home, 'file.yaml');
    await writeFile(file, inFile.map((object) => JSON.stringify(object)).join('\n---\n'));
    const files = inFile.length > 0 ? [file] : [];
    const env = { PATH: process.env['PATH'], HOME: home, KUBECONFIG: api.kubeconfig };
    const { stdout, stderr } = await run(pathOf('istioctl'), ['analyze', '-A', '-o', 'json', ...files], { env });
    // A value that an enumeration does not have has no code.
    if (/^Error\(s\) adding files.*unknown value .* for enum/s.test(stderr)) return new Set(['IST0106']);
    const messages = JSON.parse(stdout) as readonly { readonly code: string; readonly origin?: string }[];
    const isAbout = (origin = ''): boolean => !/^Namespace (?!shop$)/.test(origin);
    return new Set(messages.filter(({ origin }) => isAbout(origin)).map(({ code }) => code));
  }

  async function labelNamespace(labels: object): Promise<void> {
    const none = { 'istio-injection': null, 'istio.io/rev': null, 'istio.io/dataplane-mode': null, team: null };
    await api.call('PATCH', '/api/v1/namespaces/shop', { metadata: { labels: { ...none, ...labels } } });
  }

  async function create(object: KubeObject): Promise<void> {
    await api.call('POST', collectionOf(object), object);
    if (object.status === undefined) return;
    await api.call('PATCH', `${pathOfObject(object)}/status`, { status: object.status });
  }

  const collectionOf = ({ kind, metadata }: KubeObject): string =>
    `/api/v1/namespaces/${metadata.namespace}/${IN_CLUSTER[kind]}`;
  const pathOfObject = (object: KubeObject): string => `${collectionOf(object)}/${object.metadata.name}`;

  test.each(cases.map((each, i) => [each.code, i, each] as const))('%s, case %i', async (code, _, each) => {
    const found = { wrong: (await analyze(each.wrong)).has(code), mended: (await analyze(each.mended)).has(code) };
    const told = { wrong: true, mended: false };
    if (each.istioctl === undefined) expect(found).toEqual(told);
    else expect(found, 'it tells them apart now').not.toEqual(told);
  });
});
