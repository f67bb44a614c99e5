import { expect, test } from 'vitest';
import { selfSigned } from '../../src/identity/self-signed.ts';
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
