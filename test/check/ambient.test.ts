import { expect, test } from 'vitest';
import { deployment, places, pod, service, serviceEntry } from './checked.ts';

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
  expect(places([deployment('shop/d', `{app: d, ${mode}: ambient}`)])).toEqual([
    `warning Deployment/shop/d spec.template.metadata.labels["${mode}"]`,
  ]);
  const external = '{hosts: [x.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}';
  expect(places([serviceEntry('shop/e', external, ', labels: {istio.io/use-waypoint: w}')])).toEqual([
    'warning ServiceEntry/shop/e metadata.labels["istio.io/use-waypoint"]',
  ]);
  const machine =
    'apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: w, namespace: shop, labels: {istio.io/use-waypoint: w}}\nspec: {address: 198.51.100.7}';
  expect(places([machine])).toEqual(['warning WorkloadEntry/shop/w metadata.labels["istio.io/use-waypoint"]']);
  expect(places([deployment('shop/d', `{app: d, ${mode}: none}`)])).toEqual([]);
  expect(places([namespace(`{${mode}: none, istio.io/use-waypoint: none}`)])).toEqual([]);
});
