import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { objectPath } from '../../src/kube/client/paths.ts';
import { kindOf } from '../../src/api/kinds.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { afterSuite } from '../../src/testing/on-end.ts';
import type { Condition } from '../features/conditions.ts';
import { Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { borrowApiServer, type BorrowedApiServer } from '../peers/borrowed-api-server.ts';
import type { MeshCa } from '../peers/mesh-ca.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { FLEET, Fleet } from './fleet.ts';
import { entryFor, INNOCENT, innocent, sceneOf } from './poison-scenes.ts';
import { amendWith, poisons } from './poisons.ts';
import { ask, type Backend, type Frontend, startBackend, startFrontend } from './traffic.ts';

const NAMES = ['one', 'two'] as const;
type Name = (typeof NAMES)[number];
/** One of each kind of message. */
const CHOSEN = ['maglev', 'filter', 'duplicate-domain', 'regex'];
const KEPT = '/apis/fairlead.dev/v1alpha1/namespaces/shop/generationsinforce';
const PATIENCE = 60_000;

withPeers([...FLEET, 'etcd', 'kube-apiserver', 'kubectl'], 'what real Envoys refused, on a real API server', () => {
  const onEnd = afterSuite();
  const replicas = new Map<Name, Program>();
  const frontends = new Map<Name, Frontend>();
  let [api, backend, fleet, ca] = [] as unknown as [BorrowedApiServer, Backend, Fleet, MeshCa];
  let start = (_: Name): Promise<void> => Promise.reject(new Error('not yet'));
  let web = 0;
  let scenes: readonly ReturnType<typeof sceneOf>[] = [];
  printLogOnFailure(() => ({
    log: () => [...replicas.values()].flatMap(({ log }) => log.map((line) => JSON.stringify(line))).join('\n'),
  }));

  beforeAll(async () => {
    [api, backend] = await Promise.all([borrowApiServer(), startBackend('backend')]);
    onEnd(() => api.stop());
    onEnd(() => backend.close());
    await api.kubectl('apply', '--server-side', '-f', join(import.meta.dirname, '../../charts/fairlead/crds'));
    await api.kubectl('wait', '--for=condition=Established', 'crd', '--all');
    for (const name of ['shop', 'istio-system']) await api.kubectl('create', 'namespace', name);
    await api.kubectl('create', 'serviceaccount', 'fairlead', '-n', 'istio-system');
    for (const name of NAMES) await createPod(name);
    const ports = await freePorts(1 + CHOSEN.length);
    web = ports[0]!;
    const all = poisons({ port: web, domain: INNOCENT }).filter(({ name }) => CHOSEN.includes(name));
    scenes = all.map((poison, i) => sceneOf(poison, { ownPort: ports[i + 1]!, web, backend }));
    await apply(
      entryFor(INNOCENT, web, backend),
      innocent(0),
      ...scenes.flatMap(({ before, good }) => [...before, good]),
    );
    const { ca: made, settings } = await securePort(onEnd);
    ca = made;
    start = async (name) => {
      const options = { identity: `istio-system/${name}`, amend: amendWith(all), onEnd };
      const program = await Program.start({ kubeconfig: api.kubeconfig, ...settings }, options);
      await program.logged('Ready');
      await program.logged('Signing certificates');
      replicas.set(name, program);
      frontends.get(name)!.use(program.serving.ports.secure!);
    };
    for (const name of NAMES) {
      const frontend = await startFrontend();
      onEnd(() => frontend.close());
      frontends.set(name, frontend);
    }
    await Promise.all(NAMES.map(start));
    onEnd(() => fleet?.stop());
    fleet = await connect();
  }, PATIENCE);

  /** Proxies of both versions, of which each replica has some. */
  const connect = (): Promise<Fleet> => Fleet.start({ adsPorts: [...frontends.values()].map(({ port }) => port), ca });

  async function createPod(name: Name): Promise<void> {
    const labels = { 'app.kubernetes.io/name': 'fairlead', 'app.kubernetes.io/instance': 'fairlead' };
    const pods = '/api/v1/namespaces/istio-system/pods';
    await api.call('POST', pods, {
      metadata: { name, labels },
      spec: { serviceAccountName: 'fairlead', containers: [{ name: 'fairlead', image: 'fairlead' }] },
    });
    const conditions = [{ type: 'Ready', status: 'True' }];
    await api.call('PATCH', `${pods}/${name}/status`, { status: { phase: 'Running', podIP: '10.9.0.1', conditions } });
  }

  const apply = async (...objects: readonly KubernetesObject[]): Promise<void> =>
    void (await api.apply(objects.map((each) => JSON.stringify(each)).join('\n---\n')));

  async function stop(name: Name): Promise<void> {
    frontends.get(name)!.cut();
    await replicas.get(name)!.stop();
  }

  async function programmed(object: KubernetesObject): Promise<Condition | undefined> {
    const { group, version, plural } = kindOf(object.apiVersion, object.kind)!;
    const { namespace = '', name } = object.metadata;
    const { metadata, status } = await api.call('GET', objectPath({ group, version, plural }, namespace, name));
    const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Condition[] };
    return conditions.find(
      ({ type, observedGeneration }) => type === 'Programmed' && observedGeneration === metadata!['generation'],
    );
  }

  /** What the owners are told, and what is in force: what they wrote before. */
  async function isRejected(): Promise<void> {
    for (const { bad } of scenes)
      await expect
        .poll(() => programmed(bad))
        .toMatchObject({
          ...{ status: 'False', reason: 'Rejected' },
          message: expect.stringMatching(/^Rejected by [^]* Generation 1 is in force\.$/) as string,
        });
    const kept = async (): Promise<object[]> => {
      const { items } = (await api.call('GET', KEPT)) as unknown as { readonly items: readonly { spec: object }[] };
      return items.map(({ spec }) => spec);
    };
    const all = scenes.map(() => expect.objectContaining({ newest: 2, inForce: 1, reason: 'Rejected' }) as object);
    await expect.poll(kept).toEqual(all);
  }

  /** By whichever of them gets the connection. */
  async function isServed(): Promise<void> {
    for (let i = 0; i < 2 * fleet.members.length; i++) {
      for (const { port, host } of scenes) expect(await ask(port, host)).toBe('200 backend');
      expect(await ask(web, INNOCENT)).toBe('200 turn 1');
    }
  }

  /** Their streams are with the replicas that run now, and everything is acknowledged. */
  async function isSynced(): Promise<void> {
    const state = () =>
      [...replicas.values()].flatMap(({ serving }) =>
        serving.engine.ads.streams().map(({ types }) => types.map(({ shortName, synced }) => `${shortName} ${synced}`)),
      );
    const types = ['cds', 'eds', 'lds', 'rds'].map((type) => `${type} true`);
    await expect.poll(state).toEqual(fleet.members.map(() => types));
  }

  test(
    'stays out, and what was good before in force, over restarts of every replica',
    async () => {
      for (const { good } of scenes) await expect.poll(() => programmed(good)).toMatchObject({ status: 'True' });
      await apply(...scenes.map(({ bad }) => bad), innocent(1));
      await isRejected();
      const acknowledged = { status: 'True', message: expect.stringMatching(/^Acknowledged by /) as string };
      await expect.poll(() => programmed(innocent(1))).toMatchObject(acknowledged);
      await isServed();
      // While a cluster warms, an Envoy that comes back asks for none.
      await expect.poll(() => fleet.warming()).toEqual({});
      const refused = await fleet.rejections();

      // Both at once: proxies come back, with what they had.
      await Promise.all(NAMES.map(stop));
      await Promise.all(NAMES.map(start));
      await isSynced();
      await isRejected();
      await isServed();
      expect(await fleet.rejections()).toEqual(refused);

      // One after the other, and proxies that know nothing.
      await fleet.stop();
      for (const name of NAMES) {
        await stop(name);
        await start(name);
      }
      fleet = await connect();
      await isSynced();
      await isRejected();
      await isServed();
      expect(new Set((await fleet.rejections()).values())).toEqual(new Set([0]));

      await apply(...scenes.map(({ mended }) => mended));
      for (const { mended } of scenes) await expect.poll(() => programmed(mended)).toMatchObject({ status: 'True' });
      await isServed();
    },
    2 * PATIENCE,
  );
});
