import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type KindName, kinds } from '../api/kinds.ts';
import { Graph, type Write } from '../cache/graph.ts';
import { Interner } from '../kube/reading/interner.ts';
import { shapeOf } from '../kube/reading/trim.ts';
import { declareInputs } from '../mesh/inputs.ts';
import { anyJson } from '../reconcilers/security/testing/any-json.ts';
import { ObjectWriter } from './object-writer.ts';
import { EndpointLab } from './testing/endpoint-lab.ts';
import { runs } from '../testing/runs.ts';

function lab() {
  const inputs = declareInputs(new Graph());
  const writes: Write[] = [];
  const writer = new ObjectWriter({
    source: 'Kubernetes',
    revision: 'ours',
    inputs,
    listeners: [],
    write: (write) => writes.push(write),
  });
  return { inputs, writes, writer };
}

/** Whether a control plane of the revision `ours` takes an object with this label. */
function takes(kind: KindName, revision: string | undefined): boolean {
  const { inputs, writes, writer } = lab();
  const labels = revision === undefined ? {} : { 'istio.io/rev': revision };
  writer.upsert(kind, { apiVersion: '', kind, metadata: { name: 'a', namespace: 'shop', labels } });
  return writes.some(({ input, value }) => input === inputs.objects[kind] && value !== undefined);
}

const of = (custom: boolean) => kinds.filter((kind) => kind.custom === custom).map(({ name }) => name);

test.each(of(true))('a %s of another revision is left to that', (kind) => {
  expect([undefined, 'ours', 'other'].map((revision) => takes(kind, revision))).toEqual([true, true, false]);
});

test.each(of(false))('a %s is of every revision, whatever its label says about its proxy', (kind) => {
  expect([undefined, 'ours', 'other'].map((revision) => takes(kind, revision))).toEqual([true, true, true]);
});

test('an object whose label changes to another revision is gone', () => {
  const { writes, writer } = lab();
  const labelled = (revision: string) => ({
    apiVersion: '',
    kind: 'Sidecar',
    metadata: { name: 'a', namespace: 'shop', labels: { 'istio.io/rev': revision } },
  });
  writer.upsert('Sidecar', labelled('ours'));
  writer.upsert('Sidecar', labelled('other'));
  expect(writes.map(({ value }) => value !== undefined)).toEqual([true, false]);
});

// One object that cannot be delivered would keep all others of its kind from being delivered.
test.each(kinds)('every $name that an API server could send is delivered', (kind) => {
  const members = ['status', 'spec', 'conditions', 'addresses', 'endpoints', 'ports', 'subsets', 'targetRef', 'labels'];
  const more = ['metadata', 'ownerReferences', 'uid', 'generation', 'kind', 'name', 'type', 'data', 'mesh', 'ip'];
  const json = anyJson([...members, ...more], ['Pod', 'Healthy', 'a']);
  const part = fc.dictionary(fc.constantFrom(...members, ...more), json, { maxKeys: 8 });
  const { trim } = shapeOf(kind, new Interner());
  const lab = new EndpointLab();
  fc.assert(
    fc.property(part, part, part, part, (rest, spec, status, metadata) => {
      const raw = { spec, status, ...rest, metadata: { ...metadata, name: 'a', namespace: 'shop' } };
      lab.sink.upsert(kind.name, trim(raw));
      lab.list(kind.name, trim({ ...raw, endpoints: [] }), trim(raw));
      lab.list(kind.name);
    }),
    { numRuns: runs(200) },
  );
  lab.end();
});
