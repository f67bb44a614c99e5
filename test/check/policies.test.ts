import { describe, expect, test } from 'vitest';
import { authorizationPolicy, checked, peerAuthentication, places, service, sidecar } from './checked.ts';

describe('ports of a Service where those of workloads are meant', () => {
  const bin = service('shop/bin', '{selector: {app: bin}, ports: [{name: http, port: 8000, targetPort: 80}]}');
  const peers = (port: number, selector = '{app: bin}') =>
    peerAuthentication('shop/p', `{selector: {matchLabels: ${selector}}, portLevelMtls: {${port}: {mode: STRICT}}}`);
  const told = ['warning PeerAuthentication/shop/p spec.portLevelMtls["8000"]'];

  test('in portLevelMtls', () => {
    expect(checked([bin, peers(8000)])).toEqual([
      `${told[0]}: names port 8000 of Service shop/bin, but here the port of the workload counts, which is 80: the setting has no effect, and the mode of the workload applies. Write 80.`,
    ]);
    expect(places([bin, peers(8000, '{app: bin, version: v1}')])).toEqual(told);
    expect(
      places([
        service('shop/bin', '{selector: {app: bin, tier: x}, ports: [{name: http, port: 8000, targetPort: 80}]}'),
        peers(8000),
      ]),
    ).toEqual(told);
  });

  test('in the rules of a policy, and in the ingress of a Sidecar', () => {
    const rules = '[{to: [{operation: {methods: [GET], ports: ["8000"]}}]}]';
    const policy = authorizationPolicy('shop/a', `{selector: {matchLabels: {app: bin}}, rules: ${rules}}`);
    expect(places([bin, policy])).toEqual(['warning AuthorizationPolicy/shop/a spec.rules[0]']);
    const when = '[{to: [{operation: {methods: [GET]}}], when: [{key: destination.port, values: ["8000"]}]}]';
    expect(places([bin, authorizationPolicy('shop/a', `{rules: ${when}}`)])).toEqual([
      'warning AuthorizationPolicy/shop/a spec.rules[0]',
    ]);
    const ingress = '[{port: {number: 8000, name: http, protocol: HTTP}, defaultEndpoint: "127.0.0.1:80"}]';
    expect(places([bin, sidecar('shop/s', `{workloadSelector: {labels: {app: bin}}, ingress: ${ingress}}`)])).toEqual([
      'warning Sidecar/shop/s spec.ingress[0].port.number',
    ]);
  });

  test('nothing is said of a port that some Service leads to, of one that no Service has, or for other workloads', () => {
    expect(places([bin, peers(80)])).toEqual([]);
    expect(places([bin, peers(9999)])).toEqual([]);
    expect(places([bin, peers(8000, '{app: other}')])).toEqual([]);
    const second = service('shop/more', '{selector: {app: bin}, ports: [{name: http, port: 1, targetPort: 8000}]}');
    expect(places([bin, second, peers(8000)])).toEqual([]);
    const named = service('shop/bin', '{selector: {app: bin}, ports: [{name: http, port: 8000, targetPort: web}]}');
    expect(places([named, peers(8000)])).toEqual([]);
  });
});

describe('what an AuthorizationPolicy compares, and nobody has', () => {
  const from = (principal: string) =>
    authorizationPolicy('shop/a', `{rules: [{from: [{source: {principals: ["${principal}"]}}]}]}`);
  const told = ['warning AuthorizationPolicy/shop/a spec.rules[0].from[0].source.principals[0]'];

  test('principals have no scheme, and more than a name', () => {
    expect(places([from('spiffe://cluster.local/ns/a/sa/b')])).toEqual(told);
    expect(places([from('default')])).toEqual(told);
    const when = '{rules: [{when: [{key: source.principal, notValues: ["spiffe://cluster.local/*"]}]}]}';
    expect(places([authorizationPolicy('shop/a', when)])).toContain(
      'warning AuthorizationPolicy/shop/a spec.rules[0].when[0].notValues[0]',
    );
    expect(places([from('cluster.local/ns/a/sa/b')])).toEqual([]);
    expect(places([from('*/sa/b')])).toEqual([]);
    expect(places([from('example.org/workload')])).toEqual([]);
  });

  test('methods are in upper case', () => {
    const to = (method: string) =>
      authorizationPolicy('shop/a', `{rules: [{to: [{operation: {methods: [${method}]}}]}]}`);
    const rule = ['warning AuthorizationPolicy/shop/a spec.rules[0]'];
    expect(places([to('get')])).toEqual(rule);
    expect(places([to('GET, Delete')])).toEqual(rule);
    expect(places([authorizationPolicy('shop/a', '{rules: [{to: [{operation: {notMethods: [options]}}]}]}')])).toEqual(
      rule,
    );
    expect(places([to('GET')])).toEqual([]);
    expect(places([to('report')])).toEqual([]);
  });
});
