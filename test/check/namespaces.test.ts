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
  test('are told where one letter makes a name that exists, or the files are complete', () => {
    const sentence = (name: string) =>
      `${told}: names namespace "${name}", which is neither declared here nor the namespace of an object, so that no client uses the object there.`;
    expect(checked([orders, exporting('shpo')])).toEqual([`${sentence('shpo')} Did you mean "shop"?`]);
    expect(checked([namespace('payments'), orders, exporting('payment')])).toEqual([
      `${sentence('payment')} Did you mean "payments"?`,
    ]);
    expect(checked([orders, exporting('zoo')], { complete: true })).toEqual([
      `${sentence('zoo')} Correct the name, or create the namespace.`,
    ]);
  });

  test.each([
    ['defualt', 'shop'],
    ['istio-sytem', 'shop'],
    ['team-oders-prod', 'team-orders-prod'],
    ['teamorders', 'team-orders'],
    ['order', 'orders'],
  ])('%s is a mistake beside %s', (name, declared) => {
    expect(places([namespace(declared), orders, exporting(name)])).toEqual([told]);
  });

  test.each([
    ['monitoring', 'bank'],
    ['team-b', 'team-a'],
    ['web-2', 'web-1'],
    ['orders2', 'orders'],
    ['prod-uk', 'prod-us'],
    ['dex', 'dev'],
  ])('%s may be declared elsewhere, although %s is declared here', (name, declared) => {
    expect(places([namespace('shop'), namespace(declared), orders, exporting(name)])).toEqual([]);
    expect(places([namespace(declared), orders, exporting(name)], { complete: true })).toEqual([told]);
  });

  test('are not told where an object is in them, or where every cluster has them', () => {
    const inIt = service('shpo/x', '{ports: [{name: http, port: 80}]}');
    for (const complete of [false, true]) {
      expect(places([namespace('shop'), orders, inIt, exporting('shpo')], { complete })).toEqual([]);
      for (const known of ['shop', 'default', 'istio-system', '"."', '"*"'])
        expect(places([namespace('shop'), orders, exporting(known)], { complete })).toEqual([]);
    }
  });

  test('wherever they are named', () => {
    const policy = (rule: string) => authorizationPolicy('shop/a', `{rules: [${rule}]}`);
    const named = (...objects: string[]) =>
      checked([namespace('shop'), orders, ...objects])
        .filter((line) => line.includes('names namespace'))
        .map((line) => /warning \S+ (.*): names/.exec(line)?.[1]);
    const from = 'spec.rules[0].from[0].source';
    expect(named(policy('{from: [{source: {namespaces: [shop, "a*", shops]}}]}'))).toEqual([`${from}.namespaces[2]`]);
    expect(named(policy('{from: [{source: {notNamespaces: [shops]}}]}'))).toEqual([`${from}.notNamespaces[0]`]);
    expect(named(policy('{from: [{source: {principals: [cluster.local/ns/shops/sa/x, "*/ns/shop/sa/y"]}}]}'))).toEqual([
      `${from}.principals[0]`,
    ]);
    expect(named(policy('{from: [{source: {serviceAccounts: [shops/x, y]}}]}'))).toEqual([
      `${from}.serviceAccounts[0]`,
    ]);
    expect(
      named(policy('{when: [{key: source.namespace, values: [shops]}, {key: source.ip, values: [1.2.3.4]}]}')),
    ).toEqual(['spec.rules[0].when[0].values[0]']);
    expect(
      named(sidecar('shop/s', '{egress: [{hosts: ["./*", "shops/*", "*/x.example", "istio-system/*"]}]}')),
    ).toEqual(['spec.egress[0].hosts[1]']);
    const server =
      '{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.example, shops/b.example, "*/c.example"]}';
    expect(named(gateway('shop/g', `{selector: {gw: x}, servers: [${server}]}`))).toEqual(['spec.servers[0].hosts[1]']);
    expect(named(virtualService('shop/v', `{hosts: [orders], exportTo: [shops], http: ${route}}`))).toEqual([
      'spec.exportTo[0]',
    ]);
    const sourced = route.replace('[{', '[{match: [{sourceNamespace: shops}], ');
    expect(named(virtualService('shop/v', `{hosts: [orders], http: ${sourced}}`))).toEqual([
      'spec.http[0].match[0].sourceNamespace',
    ]);
    const entry =
      '{hosts: [x.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, exportTo: [shops]}';
    expect(named(serviceEntry('shop/e', entry))).toEqual(['spec.exportTo[0]']);
  });
});
