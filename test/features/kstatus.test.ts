import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { pathOf } from '../peers/peer.ts';
import { run } from '../peers/process.ts';
import { withPeers } from '../peers/with-peers.ts';
import { conditions } from './conditions.ts';
import { virtualService } from './objects.ts';
import { RDS } from './proxy.ts';
import { ratings, reviews, rule, split } from './shop.ts';
import { Cluster } from './sources.ts';

interface Verdict {
  readonly status: string;
  readonly message: string;
}

withPeers(['kstatus'], 'what kstatus, the library of Flux and helm, makes of an object', () => {
  const judge = async (...items: readonly object[]): Promise<readonly Verdict[]> => {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    const { code, stdout, stderr } = await run(pathOf('kstatus'), [], { input });
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout) as readonly Verdict[];
  };

  test('is Current, InProgress until a change is read, Failed while it is rejected, and Current again', async () => {
    const cluster = await Cluster.create();
    await cluster.apply(...reviews, ...ratings, rule, split(80, 20));
    const program = await cluster.start();
    const proxy = await program.connect(true);
    const programmed = (status: string, object: KubernetesObject = split(80, 20)): Promise<void> =>
      cluster.changed(() => {
        const { generation } = cluster.object(object).metadata;
        const { Programmed } = conditions(cluster, object);
        expect(Programmed).toMatchObject({ status, observedGeneration: generation });
      });
    const now = (): KubernetesObject => cluster.object(split(80, 20));
    await programmed('True');
    expect(await judge(now(), cluster.object(rule))).toMatchObject([{ status: 'Current' }, { status: 'Current' }]);

    const { metadata, ...rest } = now();
    const unread = { ...rest, metadata: { ...metadata, generation: (metadata.generation ?? 0) + 1 } };
    expect(await judge(unread)).toMatchObject([{ status: 'InProgress' }]);

    const invalid = virtualService('reviews', { hosts: ['reviews'], http: [{ match: [{ uri: { regex: '(' } }] }] });
    await cluster.apply(invalid);
    await programmed('False');
    const { Accepted, Stalled } = conditions(cluster, invalid);
    expect(Stalled).toMatchObject({ status: 'True', reason: 'Invalid', message: Accepted?.message });
    expect(await judge(now())).toEqual([{ status: 'Failed', message: Accepted?.message }]);

    proxy.rejects = ({ typeUrl }) => (typeUrl === RDS ? 'no' : undefined);
    await cluster.apply(split(10, 90));
    await programmed('False');
    expect(await judge(now())).toMatchObject([{ status: 'Failed', message: expect.stringContaining('"no"') }]);

    proxy.rejects = () => undefined;
    await cluster.apply(split(50, 50));
    await programmed('True');
    expect(conditions(cluster, split(80, 20))).not.toHaveProperty('Stalled');
    expect(await judge(now())).toMatchObject([{ status: 'Current' }]);
  });
});
