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
