import { expect, test } from 'vitest';
import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import { MeshConfigChoice } from './mesh-config-choice.ts';

const map = (name: string, namespace = 'istio-system'): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
});

/** What the sink is told. */
function lab(revision: string | undefined) {
  const told: string[] = [];
  const nameOf = ({ metadata }: KubernetesObject): string => `${metadata.namespace}/${metadata.name}`;
  const choice = new MeshConfigChoice({
    rootNamespace: 'istio-system',
    revision,
    sink: {
      replace: (_: SourceKindName, objects) => told.push(`= ${objects.map(nameOf).join(' ')}`),
      upsert: (_, object) => told.push(`+ ${nameOf(object)}`),
      delete: (_, namespace, name) => told.push(`- ${namespace}/${name}`),
    },
  });
  return { choice, told: () => told.splice(0) };
}

test('a revision has the mesh config that is called like it, else that of all', () => {
  const { choice, told } = lab('canary');
  choice.replace('ConfigMap', [map('istio'), map('istio-other'), map('istio', 'shop')]);
  expect(told()).toEqual(['= istio-system/istio-other shop/istio istio-system/istio']);
  choice.upsert('ConfigMap', map('istio-canary'));
  expect(told()).toEqual(['+ istio-system/istio-canary']);
  choice.upsert('ConfigMap', map('istio'));
  expect(told()).toEqual([]);
  choice.replace('ConfigMap', [map('istio'), map('istio-canary')]);
  expect(told()).toEqual(['= istio-system/istio-canary']);
});

test('when it is deleted, that of all takes its place in one step', () => {
  const { choice, told } = lab('canary');
  choice.replace('ConfigMap', [map('istio'), map('istio-canary')]);
  told();
  choice.delete('ConfigMap', 'istio-system', 'istio-canary');
  expect(told()).toEqual(['+ istio-system/istio']);
  choice.delete('ConfigMap', 'istio-system', 'istio');
  expect(told()).toEqual(['- istio-system/istio']);
});

test('the deletion of one that does not count means nothing', () => {
  const { choice, told } = lab('canary');
  choice.replace('ConfigMap', [map('istio'), map('istio-canary')]);
  told();
  choice.delete('ConfigMap', 'istio-system', 'istio');
  expect(told()).toEqual([]);
});

test.each([undefined, 'default'])('revision %s has none of its own', (revision) => {
  const { choice, told } = lab(revision);
  choice.replace('ConfigMap', [map('istio-default'), map('istio')]);
  expect(told()).toEqual(['= istio-system/istio-default istio-system/istio']);
});

test('everything else passes', () => {
  const { choice, told } = lab('canary');
  choice.upsert('Service', map('istio'));
  choice.delete('Service', 'istio-system', 'istio');
  choice.replace('Service', [map('istio'), map('istio-canary')]);
  expect(told()).toEqual([
    '+ istio-system/istio',
    '- istio-system/istio',
    '= istio-system/istio istio-system/istio-canary',
  ]);
});
