import { expect, test } from 'vitest';
import { type KindName, kinds } from '../api/kinds.ts';
import { Graph, type Write } from '../cache/graph.ts';
import { declareInputs } from '../mesh/inputs.ts';
import { ObjectWriter } from './object-writer.ts';

/** Whether a control plane of the revision `ours` takes an object with this label. */
function takes(kind: KindName, revision: string | undefined): boolean {
  const inputs = declareInputs(new Graph());
  const writes: Write[] = [];
  const writer = new ObjectWriter('Kubernetes', 'ours', inputs, { found: () => undefined }, peers, (write) =>
    writes.push(write),
  );
  const labels = revision === undefined ? {} : { 'istio.io/rev': revision };
  writer.upsert(kind, { apiVersion: '', kind, metadata: { name: 'a', namespace: 'shop', labels } });
  return writes.some(({ input, value }) => input === inputs.objects[kind] && value !== undefined);
}

const of = (custom: boolean) => kinds.filter((kind) => kind.custom === custom).map(({ name }) => name);

const peers = { changed: () => undefined };

test.each(of(true))('a %s of another revision is left to that', (kind) => {
  expect([undefined, 'ours', 'other'].map((revision) => takes(kind, revision))).toEqual([true, true, false]);
});

test.each(of(false))('a %s is of every revision, whatever its label says about its proxy', (kind) => {
  expect([undefined, 'ours', 'other'].map((revision) => takes(kind, revision))).toEqual([true, true, true]);
});

test('an object whose label changes to another revision is gone', () => {
  const inputs = declareInputs(new Graph());
  const writes: Write[] = [];
  const writer = new ObjectWriter('Kubernetes', 'ours', inputs, { found: () => undefined }, peers, (write) =>
    writes.push(write),
  );
  const labelled = (revision: string) => ({
    apiVersion: '',
    kind: 'Sidecar',
    metadata: { name: 'a', namespace: 'shop', labels: { 'istio.io/rev': revision } },
  });
  writer.upsert('Sidecar', labelled('ours'));
  writer.upsert('Sidecar', labelled('other'));
  expect(writes.map(({ value }) => value !== undefined)).toEqual([true, false]);
});
