import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Json } from '../../src/api/json.ts';
import { selfSigned } from '../../src/identity/self-signed.ts';
import { type Program, get } from './program.ts';
import { later } from './skipping-clock.ts';
import { Cluster, SECRETS } from './sources.ts';

const NAMESPACE = 'istio-system';

const secret = (name: string, entries: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: NAMESPACE },
  data: Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
});

/** Signing certificates that are in use and then deleted. */
test('when a Secret of signing certificates is deleted, they stay in use', async () => {
  const made = await Cluster.create();
  const program = await made.start();
  await program.logged('Signing certificates');
  const { cluster } = made.server;
  const own = cluster.object(SECRETS, NAMESPACE, 'istio-ca-secret') as { readonly data: object };
  cluster.delete(SECRETS, NAMESPACE, 'istio-ca-secret');
  const present = () => cluster.object(SECRETS, NAMESPACE, 'istio-ca-secret');
  await later(program, present).toMatchObject({ data: own.data });

  cluster.apply(SECRETS, secret('cacerts', await selfSigned('cluster.local', new Date())));
  const taken = () => program.log.filter(({ msg }) => msg === 'Signing certificates');
  await later(program, taken).toHaveLength(2);
  cluster.delete(SECRETS, NAMESPACE, 'cacerts');
  program.clock.skip(120_000);
  const line = await program.logged('Signing certificates cannot be used');
  expect(line).toMatchObject({ problem: expect.stringContaining('cacerts is gone') as string, former: 'stays in use' });
  expect(taken()).toHaveLength(2);
});

test('Secrets that the chart has made empty are filled and stay what they are, without the right to create any', async () => {
  const made = await Cluster.create();
  const { cluster } = made.server;
  cluster.uncreatable.add(SECRETS);
  const program = await made.start();
  const line = await program.logged('Signing certificates cannot be used');
  expect(line).toMatchObject({
    problem:
      `Secret ${NAMESPACE}/istio-ca-secret does not exist, and may not be created. Run helm upgrade, which makes it empty, or ` +
      `kubectl --namespace ${NAMESPACE} create secret generic istio-ca-secret --type istio.io/ca-root`,
  });
  const own = {
    labels: { 'app.kubernetes.io/managed-by': 'Helm' },
    annotations: { 'meta.helm.sh/release-name': 'fairlead', 'helm.sh/resource-policy': 'keep' },
  };
  const empty = (name: string, type: string) => {
    const { data: _, ...rest } = secret(name, {});
    return { ...rest, type, metadata: { ...rest.metadata, ...own } };
  };
  cluster.apply(SECRETS, empty('istio-ca-secret', 'istio.io/ca-root'));
  cluster.apply(SECRETS, empty('fairlead-ca', 'Opaque'));
  program.clock.skip(60_000);
  await program.logged('Signing certificates');
  for (const [name, type, entry] of [
    ['istio-ca-secret', 'istio.io/ca-root', 'ca-key.pem'],
    ['fairlead-ca', 'Opaque', 'rotation.json'],
  ] as const)
    await later(program, () => cluster.object(SECRETS, NAMESPACE, name)).toMatchObject({
      ...{ type, metadata: own },
      data: { [entry]: expect.any(String) as string },
    });
});

const CONFIG_MAPS = '/api/v1/configmaps';
const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

/** A mesh whose Pods trust a root, and whose control plane is gone. */
async function formerMesh(plugged?: Readonly<Record<string, string>>) {
  const made = await Cluster.create();
  const { cluster } = made.server;
  const entriesOf = (name: string) =>
    Object.fromEntries(
      Object.entries(
        (cluster.object(SECRETS, NAMESPACE, name) as { readonly data?: Record<string, string> } | undefined)?.data ??
          {},
      ).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]),
    );
  const published = (of: string): string =>
    (cluster.object(CONFIG_MAPS, of, 'istio-ca-root-cert') as { readonly data?: Record<string, string> } | undefined)
      ?.data?.['root-cert.pem'] ?? '';
  await made.apply(namespace(NAMESPACE), namespace('shop'));
  if (plugged !== undefined) cluster.apply(SECRETS, secret('cacerts', plugged));
  const first = await made.start();
  for (const of of ['shop', NAMESPACE]) await later(first, () => published(of)).toContain('CERTIFICATE');
  await first.stop();
  return {
    made,
    ...{ cluster, entriesOf, published },
    root: published('shop'),
    keys: { own: entriesOf('istio-ca-secret'), state: entriesOf('fairlead-ca') },
    /** As the chart makes them. */
    lose(...names: readonly string[]) {
      for (const name of names) cluster.apply(SECRETS, secret(name, {}));
    },
  };
}

const refused = async (program: Program): Promise<string> =>
  String((await program.logged('Signing certificates cannot be used'))['problem']);

test('no new root begins while namespaces publish another, until an operator gives that one up', async () => {
  const { made, cluster, entriesOf, published, root, lose } = await formerMesh();
  lose('istio-ca-secret', 'fairlead-ca');
  const program = await made.start();
  const problem = await refused(program);
  expect(problem).toMatch(
    /^Pods trust another root, "O=cluster.local" \(ConfigMap istio-ca-root-cert in istio-system\), and there is no Secret with its key\. Restore/,
  );
  const [, key = '', value = ''] = /annotate --overwrite secret fairlead-ca (\S+)=(\w+)$/.exec(problem) ?? [];
  const { status, body } = await get(program.serving.ports.health, '/ready');
  expect([status, body]).toEqual([503, expect.stringContaining('signing certificates')]);

  const tell = (text: string): void => {
    const { metadata, ...rest } = secret('fairlead-ca', {});
    cluster.apply(SECRETS, { ...rest, metadata: { ...metadata, annotations: { [key]: text } } });
  };
  // Once told of other roots.
  tell('0123456789abcdef');
  program.clock.skip(60_000);
  await later(
    program,
    () => cluster.requests.filter(({ path }) => path.endsWith('/fairlead-ca')).length,
  ).toBeGreaterThan(8);
  expect([entriesOf('istio-ca-secret'), published('shop')]).toEqual([{}, root]);
  expect(program.log.filter(({ msg }) => msg === 'Signing certificates')).toEqual([]);

  tell(value);
  await later(program, () => published('shop')).not.toBe(root);
  expect(published('shop')).toBe(entriesOf('istio-ca-secret')['root-cert.pem']);
});

test('roots of other namespaces count where the root namespace has none', async () => {
  const { made, cluster, lose } = await formerMesh();
  lose('istio-ca-secret', 'fairlead-ca');
  cluster.delete(CONFIG_MAPS, NAMESPACE, 'istio-ca-root-cert');
  // As after the root namespace was deleted: the command makes the Secret, too.
  cluster.delete(SECRETS, NAMESPACE, 'fairlead-ca');
  const problem = await refused(await made.start());
  expect(problem).toContain('ConfigMap istio-ca-root-cert in shop');
  expect(problem).toContain('create secret generic fairlead-ca --type Opaque && kubectl');
});

test('what is published and cannot be read begins nothing', async () => {
  const { made, cluster, entriesOf, lose } = await formerMesh();
  lose('istio-ca-secret', 'fairlead-ca');
  cluster.denied.add(CONFIG_MAPS);
  expect(await refused(await made.start())).toContain('/api/v1/configmaps is forbidden');
  expect(entriesOf('istio-ca-secret')).toEqual({});
});

test('a CA that nobody trusts does not begin, and one that all trust does', async () => {
  const [old, other] = await Promise.all(['old', 'other'].map((name) => selfSigned(name, new Date())));
  const { made, cluster, published, root, lose } = await formerMesh(old);
  lose('fairlead-ca');
  cluster.apply(SECRETS, secret('cacerts', other!));
  const program = await made.start();
  expect(await refused(program)).toMatch(
    /^Pods trust another root, "O=old" .*, and the signing certificates are not of it/,
  );
  cluster.apply(SECRETS, secret('cacerts', old!));
  await later(program, () => program.log.some(({ msg }) => msg === 'Signing certificates')).toBe(true);
  expect(published('shop')).toBe(root);
});

test('a replica that starts without keys waits for another one that still has them', async () => {
  const { made, lose, entriesOf, keys } = await formerMesh();
  const holder = await made.start({}, 'one');
  await holder.logged('Signing certificates');
  lose('istio-ca-secret', 'fairlead-ca');
  const started = await made.start({}, 'two');
  await refused(started);
  await later(holder, () => entriesOf('istio-ca-secret')['ca-key.pem']).toBe(keys.own['ca-key.pem']);
  await later(started, () => started.log.some(({ msg }) => msg === 'Signing certificates')).toBe(true);
});

test('a Secret of our own that is lost is filled from what signs, after a restart, too', async () => {
  const { made, lose, entriesOf, published, root, keys } = await formerMesh();
  lose('istio-ca-secret');
  const program = await made.start();
  await program.logged('Signing certificates');
  expect(entriesOf('istio-ca-secret')['ca-key.pem']).toBe(keys.own['ca-key.pem']);
  expect(published('shop')).toBe(root);
  expect(program.log.filter(({ msg }) => msg.startsWith('Root certificate'))).toEqual([]);
});

test('a state that cannot be read is not given up with the key beside it', async () => {
  const { made, cluster, keys, published, lose } = await formerMesh();
  // In the middle of a rotation: only the state has the key of the root that all trust.
  const next = await selfSigned('next', new Date());
  const both = `${published(NAMESPACE)}${next['root-cert.pem']}`;
  cluster.apply(CONFIG_MAPS, {
    ...(cluster.object(CONFIG_MAPS, NAMESPACE, 'istio-ca-root-cert') as { metadata: Json }),
    data: { 'root-cert.pem': both },
  });
  lose('istio-ca-secret');
  cluster.apply(SECRETS, secret('cacerts', next));
  cluster.apply(SECRETS, secret('fairlead-ca', { ...keys.state, 'rotation.json': '{' }));
  const program = await made.start();
  const problem = await refused(program);
  expect(problem).toMatch(
    /^Secret istio-system\/fairlead-ca: rotation\.json is not valid\. Restore the Secret from a backup/,
  );
  expect(problem).not.toContain('delete');
  expect(JSON.parse(/--patch '(.*)'$/.exec(problem)?.[1] ?? '')).toEqual([
    { op: 'remove', path: '/data/rotation.json' },
  ]);

  const { 'rotation.json': _, ...signing } = keys.state;
  cluster.apply(SECRETS, secret('fairlead-ca', signing));
  await later(program, () => program.log.some(({ msg }) => msg === 'Signing certificates')).toBe(true);
  const roots = () =>
    (program.serving.engine.mesh.inputs.trustBundle.get('')?.roots ?? []).map(
      (pem) => new X509Certificate(pem).subject,
    );
  await later(program, roots).toEqual(['O=cluster.local', 'O=next']);
  expect(program.log.find(({ msg }) => msg === 'Signing certificates')).toMatchObject({
    expires: new X509Certificate(signing['ca-cert.pem']!).validToDate.toISOString(),
  });
});
