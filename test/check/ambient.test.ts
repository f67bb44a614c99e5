import { expect, test } from 'vitest';
import { places, pod, service } from './checked.ts';

test('labels for the ambient mode are told on Namespaces, Pods and Services; those that opt out are not', () => {
  const namespace = (labels: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: ${labels}}`;
  const mode = 'istio.io/dataplane-mode';
  expect(places([namespace(`{${mode}: ambient, istio.io/use-waypoint: waypoint}`)])).toEqual([
    `warning Namespace/shop metadata.labels["${mode}"]`,
    'warning Namespace/shop metadata.labels["istio.io/use-waypoint"]',
  ]);
  expect(places([pod('shop/p', `{${mode}: ambient}`)])).toEqual([`warning Pod/shop/p metadata.labels["${mode}"]`]);
  const labelled = service('shop/s', '{ports: [{name: http, port: 80}]}', ', labels: {istio.io/use-waypoint: w}');
  expect(places([labelled])).toEqual(['warning Service/shop/s metadata.labels["istio.io/use-waypoint"]']);
  expect(places([namespace(`{${mode}: none, istio.io/use-waypoint: none}`)])).toEqual([]);
});
