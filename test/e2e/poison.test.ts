import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { conditions } from '../features/conditions.ts';
import { Program } from '../features/program.ts';
import { securePort } from '../features/secure-cluster.ts';
import { Cluster, EVENTS } from '../features/sources.ts';
import { freePorts } from '../../src/testing/free-ports.ts';
import { withPeers } from '../peers/with-peers.ts';
import { FLEET, Fleet } from './fleet.ts';
import { entryFor, INNOCENT, innocent, sceneOf } from './poison-scenes.ts';
import { amendWith, type Poison, poisons } from './poisons.ts';
import { ask, type Backend, startBackend } from './traffic.ts';

withPeers(FLEET, 'what a real Envoy refuses', () => {
  test.each(['cluster', 'listener', 'table'] as const)('in a %s', { timeout: 300_000 }, async (part) => {
    const [web = 0, ...ports] = await freePorts(40);
    const all = poisons({ port: web, domain: INNOCENT }).filter(({ type }) =>
      part === 'table' ? type === 'virtualHost' || type === 'routeEntry' : type === part,
    );
    const backend = await startBackend('backend');
    onTestFinished(() => backend.close());
    const cluster = await Cluster.create();
    await cluster.apply(entryFor(INNOCENT, web, backend), innocent(0));
    const { ca, settings } = await securePort();
    const program = await Program.start({ kubeconfig: cluster.kubeconfig, ...settings }, { amend: amendWith(all) });
    await program.logged('Ready');
    await program.logged('Signing certificates');
    const fleet = await Fleet.start({ adsPorts: [program.serving.ports.secure!], ca });
    onTestFinished(() => fleet.stop());
    const run = new Run(cluster, fleet, backend, web);
    const times: number[] = [];
    for (const [i, poison] of all.entries()) times.push(await run.poison(poison, ports[i]!, i % 3 === 2, i + 1));
    const [middle = 0, last = 0] = [times.length >> 1, times.length - 1].map((at) => times.sort((a, b) => a - b)[at]);
    console.log(
      `${part}: ${times.length} rejected, named after ${middle.toFixed()} ms (p50), ${last.toFixed()} ms (max)`,
    );
  });
});

class Run {
  private readonly cluster: Cluster;
  private readonly fleet: Fleet;
  private readonly backend: Backend;
  private readonly web: number;
  private told = 0;

  constructor(cluster: Cluster, fleet: Fleet, backend: Backend, web: number) {
    this.cluster = cluster;
    this.fleet = fleet;
    this.backend = backend;
    this.web = web;
  }

  /** Returns after how many milliseconds the object was said to be rejected. */
  async poison(poison: Poison, ownPort: number, isNew: boolean, turn: number): Promise<number> {
    const { cluster, fleet } = this;
    const { before, bad, good, mended, port, host } = sceneOf(poison, {
      ownPort,
      web: this.web,
      backend: this.backend,
    });
    await cluster.apply(...before);
    if (!isNew) await this.acknowledged(good);
    for (const each of before) await this.programmed(each, { status: 'True' });
    const former = await fleet.rejections();
    const since = performance.now();
    await cluster.apply(bad, innocent(turn));
    await this.programmed(bad, { status: 'False', reason: 'Rejected' });
    const named = performance.now() - since;
    const inForce = isNew ? 'Nothing of this object is in force.' : 'Generation \\d+ is in force.';
    const message = expect.stringMatching(new RegExp(`${poison.words.source}[^]* ${inForce}$`)) as string;
    await this.programmed(bad, { reason: 'Rejected', message });
    await this.programmed(innocent(turn), { status: 'True', reason: 'Programmed' });
    await expect.poll(() => this.said()).toEqual([bad.metadata.name]);
    await this.isServed(this.web, INNOCENT, `turn ${turn}`);
    if (!isNew) await this.isServed(port, host, 'backend');
    await this.acknowledged(mended);
    await this.isServed(port, host, 'backend');
    await expect.poll(() => fleet.warming()).toEqual({});
    const rejections = await fleet.rejections();
    const saw = fleet.members.filter(({ name }) => rejections.get(name) !== former.get(name));
    for (const version of ['envoy', 'former-envoy'])
      expect(saw.filter((each) => each.version === version).length, poison.name).toBe(poison.mayBeLocal ? 2 : 1);
    return named;
  }

  /** By whichever of them gets the connection. */
  private async isServed(port: number, host: string, answer: string): Promise<void> {
    for (let i = 0; i < 2 * this.fleet.members.length; i++) expect(await ask(port, host)).toBe(`200 ${answer}`);
  }

  private async acknowledged(object: KubernetesObject): Promise<void> {
    await this.cluster.apply(object);
    await this.programmed(object, { status: 'True', reason: 'Programmed' });
  }

  private programmed(object: KubernetesObject, expected: object): Promise<void> {
    return this.cluster.changed(() => {
      const { generation } = this.cluster.object(object).metadata;
      expect(conditions(this.cluster, object)['Programmed'], object.metadata.name).toMatchObject({
        observedGeneration: generation,
        ...expected,
      });
    });
  }

  /** Names of all objects that were said to be rejected since the last call, however briefly. */
  private said(): readonly unknown[] {
    const events = this.cluster.server.cluster.objects(EVENTS).filter(({ reason }) => reason === 'Rejected');
    const names = events.map(({ regarding }) => (regarding as KubernetesObject['metadata']).name);
    return names.splice(this.told, (this.told = names.length));
  }
}
