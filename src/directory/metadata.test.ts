import { expect, test } from 'vitest';
import { kinds } from '../api/kinds.ts';
import { Interner } from '../kube/reading/interner.ts';
import { shapeOf } from '../kube/reading/trim.ts';
import { trimMetadata } from './metadata.ts';

test('keeps the annotations and labels that the cluster source keeps', () => {
  const kind = kinds.find((each) => each.kind === 'Service')!;
  const metadata = {
    name: 'a',
    namespace: 'shop',
    labels: { app: 'a', 'example.com/b': 'c' },
    annotations: {
      'networking.istio.io/exportTo': '.',
      'istio.io/connect-strategy': 'RACE_FIRST_TCP_CONNECT',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'example.com/large': 'x'.repeat(1_000),
      'notistio.io/a': 'b',
      'istio.io': 'c',
    },
  };
  const kept = trimMetadata({ name: 'a', namespace: 'shop' }, metadata);
  expect(kept).toEqual(shapeOf(kind, new Interner()).trim({ metadata }).metadata);
  expect(Object.keys(kept['annotations'] as object)).toEqual([
    'networking.istio.io/exportTo',
    'istio.io/connect-strategy',
  ]);
});
