import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kinds } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { createValidator } from '../../src/api/validate.ts';
import { ApiError, type ApiObject } from '../peers/api-server.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import { withPeers } from '../peers/with-peers.ts';
import { readCorpus } from './corpus.ts';

const corpus = readCorpus();
const validate = createValidator();

withPeers(['etcd', 'kube-apiserver', 'kubectl'], 'a real API server with the CRDs', () => {
  let running: BorrowedApiServer | undefined;
  const api = (): BorrowedApiServer => running ?? expect.fail('it did not start');
  let directory = '';

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fairlead-crds-'));
    running = await borrowApiServer();
    // Client-side: the annotation that it writes bounds the size of a CRD.
    await running.kubectl('apply', '-f', join(import.meta.dirname, '../../charts/fairlead/crds'));
    await running.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
  });
  afterAll(async () => {
    await running?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** Fields that the API server refuses, or the object as it has become. */
  const create = async (object: KubernetesObject, query = ''): Promise<ApiObject | readonly string[]> => {
    const path = pathOf(object);
    try {
      const created = await api().call('POST', `${path}${query}`, object);
      await api().call('DELETE', `${path}/${object.metadata.name}`);
      return created;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 422) throw error;
      return fieldsOf(error);
    }
  };

  test.each(corpus.filter(({ fields }) => fields.length === 0))('gives $name back unchanged', async ({ object }) => {
    expect(await create(object)).toHaveProperty('spec', object.spec);
  });

  test.each(corpus.filter(({ fields }) => fields.length > 0))(
    'refuses $name at the same field',
    async ({ object, fields }) => {
      expect(await create(object)).toEqual(fields.map(plain));
    },
  );

  test('serves one object in all versions', async () => {
    const { object } = corpus.find(({ name }) => name === 'virtual-service/valid/every-http-field')!;
    await api().call('POST', pathOf(object), object);
    for (const version of ['v1', 'v1beta1', 'v1alpha3']) {
      const apiVersion = `networking.istio.io/${version}`;
      const found = await api().call('GET', `${pathOf({ ...object, apiVersion })}/${object.metadata.name}`);
      expect(found).toMatchObject({ apiVersion, spec: object.spec });
    }
  });

  test('drops null and unknown fields, of which the validator warns', async () => {
    const object = virtualService('drops', {
      hosts: null,
      htpp: [],
      http: [
        {
          name: null,
          timeot: '1s',
          match: [{ uri: { exct: '/' }, headers: { 'x-a': null }, sourceLabels: { a: null } }],
        },
      ],
    });
    const kept = { http: [{ match: [{ uri: {}, headers: {}, sourceLabels: {} }] }] };
    expect(await create(object)).toMatchObject({ spec: kept });
    const warned = validate(object).map(({ field }) => field);
    expect(warned).toHaveLength(3);
    const refusal = api().call('POST', `${pathOf(object)}?fieldValidation=Strict`, object);
    expect((await refusal.catch(unknownFields)) as string[]).toEqual(expect.arrayContaining(warned));
  });

  test('takes 10,000 routes, and a megabyte', async () => {
    const route = (index: number, padding: string) => ({
      name: `route-${index}`,
      match: [{ uri: { exact: `/${index}${padding}` } }],
      route: [{ destination: { host: 'a' } }],
      timeout: '1s',
    });
    const routes = (count: number, padding: string) => ({
      hosts: ['a'],
      http: Array.from({ length: count }, (_, index) => route(index, padding)),
    });
    for (const spec of [routes(10_000, ''), routes(500, 'x'.repeat(2000))]) {
      const object = virtualService('large', spec);
      expect(validate(object)).toEqual([]);
      expect(await create(object)).toMatchObject({ metadata: { name: 'large' } });
    }
  }, 120_000);

  test('takes the largest ServiceEntry and a DestinationRule with many subsets and ports', async () => {
    const ports = Array.from({ length: 256 }, (_, index) => ({ name: `port-${index}`, number: index + 1 }));
    const portsOfEndpoint = Object.fromEntries(ports.slice(0, 10).map(({ name, number }) => [name, number]));
    const endpoints = Array.from({ length: 4096 }, (_, index) => ({
      address: `10.0.${index >> 8}.${index & 255}`,
      ports: portsOfEndpoint,
    }));
    const entry = objectOf('ServiceEntry', 'large', { hosts: ['a'], resolution: 'STATIC', ports, endpoints });
    const policy = { loadBalancer: { simple: 'RANDOM' }, connectionPool: { tcp: { connectTimeout: '1s' } } };
    const rule = objectOf('DestinationRule', 'large', {
      host: 'a',
      subsets: Array.from({ length: 500 }, (_, index) => ({
        name: `v${index}`,
        trafficPolicy: { portLevelSettings: [80, 81, 82].map((number) => ({ port: { number }, ...policy })) },
      })),
      trafficPolicy: { portLevelSettings: ports.map(({ number }) => ({ port: { number }, ...policy })) },
    });
    for (const object of [entry, rule]) {
      expect(validate(object)).toEqual([]);
      expect(await create(object)).toMatchObject({ metadata: { name: 'large' } });
    }
  });

  test('keeps conditions of several writers, and shows them in columns', async () => {
    const object = virtualService('conditions', { hosts: ['a'], gateways: ['mesh'] });
    const path = `${pathOf(object)}/conditions`;
    await api().call('POST', pathOf(object), object);
    await api().kubectl(
      ...['patch', 'virtualservice', 'conditions', '--subresource=status', '--type=merge', '-p'],
      // As Istio writes it.
      JSON.stringify({ status: { observedGeneration: '1' } }),
    );
    for (const type of ['Accepted', 'ResolvedRefs']) {
      const conditions = [{ type, status: 'True', reason: 'Valid', message: '', observedGeneration: 1 }];
      const file = join(directory, `${type}.json`);
      await writeFile(file, JSON.stringify({ ...object, spec: undefined, status: { conditions } }));
      const options = ['--server-side', '--subresource=status', `--field-manager=${type}`];
      await api().kubectl('apply', ...options, '-f', file);
    }
    const found = await api().call('GET', path);
    expect(found['status']).toMatchObject({
      observedGeneration: '1',
      conditions: [{ type: 'Accepted', observedGeneration: 1 }, { type: 'ResolvedRefs' }],
    });
    const [header = '', row = ''] = (await api().kubectl('get', 'vs', 'conditions')).split('\n');
    expect(header.split(/\s+/)).toEqual(['NAME', 'GATEWAYS', 'HOSTS', 'ACCEPTED', 'RESOLVEDREFS', 'PROGRAMMED', 'AGE']);
    expect(row.split(/\s+/).slice(0, 5)).toEqual(['conditions', '["mesh"]', '["a"]', 'True', 'True']);
    await api().kubectl('wait', '--for=condition=Accepted', 'virtualservice/conditions', '--timeout=5s');
  });

  test("knows Istio's short names and categories", async () => {
    for (const name of ['vs', 'dr', 'se', 'gw', 'we', 'sidecars', 'istio-io', 'networking-istio-io'])
      expect(await api().kubectl('get', name, '-o', 'name')).toEqual(expect.any(String));
  });
});

function objectOf(kind: string, name: string, spec: unknown): KubernetesObject & { readonly spec: unknown } {
  return { apiVersion: 'networking.istio.io/v1', kind, metadata: { name }, spec };
}

function virtualService(name: string, spec: unknown) {
  return objectOf('VirtualService', name, spec);
}

function pathOf({ apiVersion, kind }: Pick<KubernetesObject, 'apiVersion' | 'kind'>): string {
  return `/apis/${apiVersion}/namespaces/default/${kinds.find((known) => known.kind === kind)?.plural}`;
}

interface Refusal {
  readonly message: string;
  readonly details?: { readonly causes?: readonly { readonly field?: string }[] };
}

function refusalOf(error: ApiError): Refusal {
  return JSON.parse(error.message.slice(error.message.indexOf('{'))) as Refusal;
}

/** `<nil>` is the remark that rules were not checked because of other errors. */
function fieldsOf(error: ApiError): readonly string[] {
  const fields = refusalOf(error).details?.causes?.map(({ field = '' }) => field) ?? [];
  return [...new Set(fields.filter((field) => field !== '<nil>').map(plain))];
}

/** The API server writes a key of a map now as `.key`, now as `[key]`. */
function plain(field: string): string {
  return field.replaceAll(/\[([^\]]*)\]/g, '.$1');
}

function unknownFields(error: unknown): readonly string[] {
  if (!(error instanceof ApiError)) throw error;
  return [...refusalOf(error).message.matchAll(/unknown field "([^"]+)"/g)].map(([, field = '']) => field);
}
