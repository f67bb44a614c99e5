import { describe, expect, test } from 'vitest';
import {
  authorizationPolicy,
  checked,
  destinationRule,
  gateway,
  places,
  service,
  serviceEntry,
  sidecar,
  virtualService,
} from './checked.ts';

const namespace = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`;
const orders = service('shop/orders', '{selector: {app: orders}, ports: [{name: http, port: 8080}]}');
const route = '[{route: [{destination: {host: orders.shop.svc.cluster.local, port: {number: 8080}}}]}]';
const exporting = (to: string) => destinationRule('shop/d', `{host: orders, exportTo: [${to}]}`);
const told = 'warning DestinationRule/shop/d spec.exportTo[0]';

describe('namespaces that do not exist', () => {
  test('are told where the files say which ones exist', () => {
    expect(checked([namespace('shop'), orders, exporting('shpo')])).toEqual([
      `${told}: names namespace "shpo", which is neither declared here nor the namespace of an object, so that no client uses the object there. Correct the name, or create the namespace.`,
    ]);
    expect(places([orders, exporting('shpo')], { complete: true })).toEqual([told]);
  });

  test('are not told where the files do not, where an object is in them, or where every cluster has them', () => {
    expect(places([orders, exporting('shpo')])).toEqual([]);
    expect(
      places([namespace('shop'), orders, service('shpo/x', '{ports: [{name: http, port: 80}]}'), exporting('shpo')]),
    ).toEqual([]);
    for (const known of ['shop', 'default', 'istio-system', '"."', '"*"'])
      expect(places([namespace('shop'), orders, exporting(known)])).toEqual([]);
  });

  test('wherever they are named', () => {
    const policy = (rule: string) => authorizationPolicy('shop/a', `{rules: [${rule}]}`);
    const named = (...objects: string[]) =>
      checked([namespace('shop'), orders, ...objects])
        .filter((line) => line.includes('names namespace'))
        .map((line) => /warning \S+ (.*): names/.exec(line)?.[1]);
    const from = 'spec.rules[0].from[0].source';
    expect(named(policy('{from: [{source: {namespaces: [shop, "a*", nowhere]}}]}'))).toEqual([`${from}.namespaces[2]`]);
    expect(named(policy('{from: [{source: {notNamespaces: [nowhere]}}]}'))).toEqual([`${from}.notNamespaces[0]`]);
    expect(
      named(policy('{from: [{source: {principals: [cluster.local/ns/nowhere/sa/x, "*/ns/shop/sa/y"]}}]}')),
    ).toEqual([`${from}.principals[0]`]);
    expect(named(policy('{from: [{source: {serviceAccounts: [nowhere/x, y]}}]}'))).toEqual([
      `${from}.serviceAccounts[0]`,
    ]);
    expect(
      named(policy('{when: [{key: source.namespace, values: [nowhere]}, {key: source.ip, values: [1.2.3.4]}]}')),
    ).toEqual(['spec.rules[0].when[0].values[0]']);
    expect(
      named(sidecar('shop/s', '{egress: [{hosts: ["./*", "nowhere/*", "*/x.example", "istio-system/*"]}]}')),
    ).toEqual(['spec.egress[0].hosts[1]']);
    const server =
      '{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.example, nowhere/b.example, "*/c.example"]}';
    expect(named(gateway('shop/g', `{selector: {gw: x}, servers: [${server}]}`))).toEqual(['spec.servers[0].hosts[1]']);
    expect(named(virtualService('shop/v', `{hosts: [orders], exportTo: [nowhere], http: ${route}}`))).toEqual([
      'spec.exportTo[0]',
    ]);
    const sourced = route.replace('[{', '[{match: [{sourceNamespace: nowhere}], ');
    expect(named(virtualService('shop/v', `{hosts: [orders], http: ${sourced}}`))).toEqual([
      'spec.http[0].match[0].sourceNamespace',
    ]);
    const entry =
      '{hosts: [x.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, exportTo: [nowhere]}';
    expect(named(serviceEntry('shop/e', entry))).toEqual(['spec.exportTo[0]']);
  });
});
