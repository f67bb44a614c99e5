import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { kindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { createProtos } from '../../src/envoy/encode/proto.ts';
import { createObjectCheck } from '../../src/commands/object-check.ts';
import { buildOnce, findingsOf } from '../../src/commands/offline.ts';
import { createValidator } from '../../src/api/validate.ts';
import { loadDirectory } from '../../src/directory/load.ts';
import { readMeshSettings } from '../../src/config/config.ts';
import type { Verdict } from '../../src/webhooks/admission-review.ts';
import { validate } from '../../src/webhooks/validating.ts';
import { goldenNames, objectsIn } from '../golden/case.ts';
import { readCorpus } from './corpus.ts';

const settings = readMeshSettings({ flags: {}, env: {} });
const protos = createProtos();
const validator = createValidator();
const check = createObjectCheck(settings, protos, validator);
const directory = mkdtempSync(join(tmpdir(), 'fairlead-admission-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** What the API server would say of an object that someone applies. */
function admit(object: object, oldObject?: object): Verdict {
  const { metadata } = object as KubernetesObject;
  const request = {
    uid: 'u',
    operation: oldObject === undefined ? 'CREATE' : 'UPDATE',
    ...{ group: '', kind: '', resource: '', subresource: '', name: '', namespace: metadata.namespace ?? 'default' },
    object: object as Json,
    oldObject: oldObject as Json | undefined,
  };
  return validate(request, check);
}

/** Others do not come to the webhook. */
const isConfig = ({ apiVersion, kind }: KubernetesObject): boolean => kindOf(apiVersion, kind)?.custom === true;

/** The errors of `fairlead check` for a file with this object, one per line. */
async function checked(object: object): Promise<readonly string[]> {
  const path = join(directory, 'object.json');
  writeFileSync(path, JSON.stringify(object));
  // As checkFiles does, with schemas that are compiled once.
  const { loaded, mesh } = buildOnce(await loadDirectory([path], validator), settings, () => [], { protos });
  return findingsOf(loaded, mesh, false)
    .filter(({ severity }) => severity === 'error')
    .map(({ field, message }) => (field === '' ? message : `${field}: ${message}`));
}

describe('the verdict of the webhook is that of check, in the same words', () => {
  const cases = [
    ...readCorpus().map(({ name, object }) => [name, [object]] as const),
    ...goldenNames()
      // YAML has no unpaired surrogates, and JSON from an API server has none.
      .filter((name) => name.startsWith('bad-input/') && name !== 'bad-input/unicode')
      .map((name) => [`golden ${name}`, objectsIn(name)] as const),
  ].map(([name, objects]) => [name, objects.filter(isConfig)] as const);

  test.each(cases)('%s', async (_, objects) => {
    for (const object of objects) {
      const errors = await checked(object);
      const verdict = admit(object);
      expect(verdict.allowed).toBe(errors.length === 0);
      if (!verdict.allowed) expect(verdict.message.split('\n').slice(0, 10)).toEqual(errors.slice(0, 10));
    }
  });

  test('in many cases of both', () => {
    const all = cases.flatMap(([, objects]) => objects).map((object) => admit(object).allowed);
    expect(all.filter((allowed) => !allowed).length).toBeGreaterThan(100);
    expect(all.filter((allowed) => allowed).length).toBeGreaterThan(50);
  });
});

const gateway = (...ports: readonly number[]): object => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'Gateway',
  metadata: { name: 'edge', namespace: 'shop' },
  spec: { servers: ports.map((number) => ({ hosts: ['*'], port: { number, name: `p${number}`, protocol: 'HTTP' } })) },
});

describe('an update', () => {
  test('is refused for what it makes worse, and allowed with a warning for what was wrong before', () => {
    expect(admit(gateway(80, 70_000), gateway(80))).toMatchObject({ allowed: false });
    const kept = admit({ ...gateway(70_000), status: {} }, gateway(70_000));
    expect(kept).toMatchObject({ allowed: true, warnings: [expect.stringContaining('spec.servers[0].port.number')] });
    expect(admit(gateway(70_000, 70_001), gateway(70_000))).toMatchObject({
      allowed: false,
      message: expect.stringMatching(/^spec\.servers\[1\]\.port\.number: [^\n]*$/),
    });
  });

  test('may move what was wrong before within its list', () => {
    expect(admit(gateway(80, 70_000), gateway(70_000))).toMatchObject({ allowed: true });
  });

  test('may remove the finalizers of an object that is being deleted, whatever is wrong with it', () => {
    const object = gateway(70_000) as { metadata: object };
    const going = { ...object, metadata: { ...object.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' } };
    expect(admit(going, gateway(80))).toEqual({ allowed: true });
  });
});

test('the object by which control planes find out whether validation is served is refused', () => {
  const probe = { name: 'invalid-gateway', annotations: { 'internal.istio.io/webhook-always-reject': 'true' } };
  expect(admit({ ...gateway(80), metadata: probe })).toMatchObject({ allowed: false });
});

test('references are for the status to judge: other objects may come later', () => {
  const spec = {
    hosts: ['a'],
    gateways: ['missing'],
    http: [{ route: [{ destination: { host: 'gone', subset: 'v' } }] }],
  };
  const metadata = { name: 'a', namespace: 'shop' };
  const service = { apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', metadata, spec };
  expect(admit(service)).toEqual({ allowed: true, warnings: [] });
});

test('what is not supported is a warning', () => {
  const object = gateway(80) as { spec: { servers: readonly object[] } };
  const servers = object.spec.servers.map((server) => ({ ...server, defaultEndpoint: '127.0.0.1:1' }));
  const verdict = admit({ ...object, spec: { servers } });
  expect(verdict).toMatchObject({ allowed: true, warnings: [expect.stringContaining('defaultEndpoint: ')] });
});

test('one object leaves no trace in the verdict about the next', () => {
  const entry = (name: string) => ({
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata: { name, namespace: 'shop' },
    spec: { hosts: ['same.example'], resolution: 'DNS', ports: [{ number: 80, name: 'http', protocol: 'HTTP' }] },
  });
  for (const name of ['a', 'b', 'a']) expect(admit(entry(name))).toEqual({ allowed: true, warnings: [] });
});
