import { describe, expect, test } from 'vitest';
import { checked, deployment, destinationRule, places, pod, service, serviceEntry } from './checked.ts';

const orders = service('shop/orders', '{selector: {app: orders}, ports: [{name: http, port: 8080}]}');
const rule = (policy: string, name = 'shop/d') => destinationRule(name, `{host: orders, ${policy}}`);
const locality = (setting: string) => `loadBalancer: {localityLbSetting: ${setting}}`;
const at = (field: string) => `warning DestinationRule/shop/d spec.${field}`;

describe('localities without outlier detection', () => {
  const setting = 'trafficPolicy.loadBalancer.localityLbSetting';
  const failover = locality('{failover: [{from: west, to: east}]}');

  test('never fail over', () => {
    expect(places([orders, rule(`trafficPolicy: {${failover}}`)])).toEqual([at(`${setting}.failover`)]);
    expect(places([orders, rule(`trafficPolicy: {${locality('{failoverPriority: [zone]}')}}`)])).toEqual([
      at(`${setting}.failoverPriority`),
    ]);
    expect(places([orders, rule(`trafficPolicy: {${locality('{enabled: true}')}}`)])).toEqual([at(setting)]);
    expect(places([orders, rule(`subsets: [{name: a, trafficPolicy: {${failover}}}]`)])).toEqual([
      at(`subsets[0].${setting}.failover`),
    ]);
  });

  test('settings for a port inherit none', () => {
    const port = `portLevelSettings: [{port: {number: 8080}, ${failover}}]`;
    expect(checked([orders, rule(`trafficPolicy: {outlierDetection: {}, ${port}}`)])).toEqual([
      `${at('trafficPolicy.portLevelSettings[0].loadBalancer.localityLbSetting.failover')}: has no effect without outlierDetection, by which failing endpoints are found; add it here: settings for ports inherit nothing.`,
    ]);
  });

  test('nothing is said where there is some, in the rule or in one that is merged with it, or where nothing fails over', () => {
    expect(places([orders, rule(`trafficPolicy: {outlierDetection: {}, ${failover}}`)])).toEqual([]);
    expect(
      places([
        orders,
        rule(`trafficPolicy: {outlierDetection: {}}, subsets: [{name: a, trafficPolicy: {${failover}}}]`),
      ]),
    ).toEqual([]);
    expect(
      places([
        orders,
        rule('trafficPolicy: {outlierDetection: {}}', 'shop/c'),
        rule(`subsets: [{name: a, trafficPolicy: {${failover}}}]`),
      ]),
    ).toEqual([]);
    expect(places([orders, rule(`trafficPolicy: {${locality('{enabled: false}')}}`)])).toEqual([]);
    expect(
      places([orders, rule(`trafficPolicy: {${locality('{distribute: [{from: "*", to: {"*": 100}}]}')}}`)]),
    ).toEqual([]);
  });
});

describe('distribute', () => {
  const far = (endpoints: string, resolution = 'STATIC') =>
    serviceEntry(
      'shop/f',
      `{hosts: [f.example], resolution: ${resolution}, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: ${endpoints}}`,
    );
  const to = (patterns: string) =>
    destinationRule(
      'shop/d',
      `{host: f.example, trafficPolicy: {${locality(`{distribute: [{from: "r1/*", to: ${patterns}}]}`)}}}`,
    );
  const nobody = [at('trafficPolicy.loadBalancer.localityLbSetting.distribute[0].to')];

  test('that names no locality of an endpoint leaves nobody', () => {
    const somewhere = '[{address: 198.51.100.7, locality: r2/z1}]';
    expect(places([far('[{address: 198.51.100.7}]'), to('{"r1/*": 100}')])).toEqual(nobody);
    expect(places([far(somewhere), to('{"r1/z1/*": 80, "r1/z2/*": 20}')])).toEqual(nobody);
    expect(places([far('[{address: f1.example}]', 'DNS'), to('{"r1/*": 100}')])).toEqual(nobody);
    expect(places([far(somewhere), to('{"r1/*": 80, "r2/*": 20}')])).toEqual([]);
    expect(places([far('[{address: 198.51.100.7}]'), to('{"*": 100}')])).toEqual([]);
  });

  test('of workload entries, and of Pods whose Nodes are known', () => {
    const machines = serviceEntry(
      'shop/f',
      '{hosts: [f.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], workloadSelector: {labels: {app: f}}}',
    );
    const machine = (locality: string) =>
      `apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: m, namespace: shop}\nspec: {address: 198.51.100.7, ${locality}labels: {app: f}}`;
    expect(places([machines, machine('locality: r2/z1, '), to('{"r3/*": 100}')])).toEqual(nobody);
    expect(places([machines, machine(''), to('{"r3/*": 100}')])).toEqual(nobody);
    expect(places([machines, machine('locality: r2/z1, '), to('{"r2/*": 100}')])).toEqual([]);
    expect(places([machines, to('{"r3/*": 100}')])).toEqual([]);
    const node =
      'apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/region: r2, topology.kubernetes.io/zone: z1}}';
    const on = (name: string) =>
      pod(`shop/${name}`, '{app: orders}').replace('{containers', `{nodeName: ${name}, containers`);
    const away = rule(`trafficPolicy: {${locality('{distribute: [{from: "r1/*", to: {"r3/*": 100}}]}')}}`);
    expect(places([orders, node, on('n1'), away])).toEqual(nobody);
    expect(places([orders, node, on('n1'), on('n2'), away])).toEqual([]);
    expect(places([orders, on('n1'), away])).toEqual([]);
    expect(places([orders, node, on('n1'), away.replace('r3/*', 'r2/*')])).toEqual([]);
  });

  test('in the settings of a port or a subset, or in a later element', () => {
    const somewhere = far('[{address: 198.51.100.7, locality: r2/z1, labels: {version: v1}}]');
    const of = (policy: string) => places([somewhere, destinationRule('shop/d', `{host: f.example, ${policy}}`)]);
    const nowhere = locality('{distribute: [{from: "r1/*", to: {"r3/*": 100}}]}');
    const field = 'loadBalancer.localityLbSetting.distribute';
    expect(of(`trafficPolicy: {portLevelSettings: [{port: {number: 80}, ${nowhere}}]}`)).toEqual([
      at(`trafficPolicy.portLevelSettings[0].${field}[0].to`),
    ]);
    expect(of(`subsets: [{name: a, labels: {version: v1}, trafficPolicy: {${nowhere}}}]`)).toEqual([
      at(`subsets[0].trafficPolicy.${field}[0].to`),
    ]);
    const second = '{distribute: [{from: "r1/*", to: {"r2/*": 100}}, {from: "r2/*", to: {"r2/z9/*": 100}}]}';
    expect(of(`trafficPolicy: {${locality(second)}}`)).toEqual([at(`trafficPolicy.${field}[1].to`)]);
    expect(of(`trafficPolicy: {${locality('{enabled: false, distribute: [{from: a, to: {b: 100}}]}')}}`)).toEqual([]);
  });
});

test('settings for a port that the host does not have are told', () => {
  const level = (port: number) =>
    rule(`trafficPolicy: {portLevelSettings: [{port: {number: ${port}}, connectionPool: {tcp: {maxConnections: 1}}}]}`);
  expect(places([orders, level(80)])).toEqual([at('trafficPolicy.portLevelSettings[0].port.number')]);
  expect(places([orders, level(8080)])).toEqual([]);
});

describe('one host in two namespaces', () => {
  const entry = (name: string, address: string, more = '') =>
    serviceEntry(
      name,
      `{hosts: [p.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: ${address}}]${more}}`,
    );
  const told = ['warning ServiceEntry/b/p spec.hosts'];

  test('others reach only one', () => {
    expect(checked([entry('a/p', '198.51.100.1'), entry('b/p', '198.51.100.2')])).toEqual([
      'warning ServiceEntry/b/p spec.hosts: Clients in other namespaces than b and a reach ServiceEntry/a/p (its namespace comes first, and their ages are equal or not known) under "p.example", never this one. Limit exportTo of both, or use another host.',
    ]);
    expect(places([entry('a/p', '198.51.100.1', ', exportTo: [c]'), entry('b/p', '198.51.100.2')])).toEqual(told);
    expect(
      places([entry('a/p', '198.51.100.1', ', exportTo: [c, d]'), entry('b/p', '198.51.100.2', ', exportTo: [d]')]),
    ).toEqual(told);
  });

  test('with a wildcard, as one host of several, or beside a Service', () => {
    const wild = (name: string, address: string) =>
      serviceEntry(
        name,
        `{hosts: ["*.p.example"], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: ${address}}]}`,
      );
    expect(places([wild('a/p', 'x.example'), wild('b/p', 'y.example')])).toEqual(told);
    const several = entry('b/p', '198.51.100.2').replace('[p.example]', '[q.example, p.example]');
    expect(places([entry('a/p', '198.51.100.1'), several])).toEqual(told);
    const own = entry('b/p', '198.51.100.2').replace('p.example', 'orders.shop.svc.cluster.local');
    expect(places([orders, own])).toEqual(told);
    expect(places([entry('a/p', '198.51.100.1'), entry('b/p', '198.51.100.2'), entry('c/p', '198.51.100.3')])).toEqual([
      ...told,
      'warning ServiceEntry/c/p spec.hosts',
    ]);
  });

  test('nothing is said if nobody sees both, or if they are alike', () => {
    expect(places([entry('a/p', '198.51.100.1', ', exportTo: ["."]'), entry('b/p', '198.51.100.2')])).toEqual([]);
    expect(
      places([entry('a/p', '198.51.100.1', ', exportTo: [c]'), entry('b/p', '198.51.100.2', ', exportTo: [d]')]),
    ).toEqual([]);
    expect(places([entry('a/p', '198.51.100.1'), entry('b/p', '198.51.100.1')])).toEqual([]);
  });
});

describe('subsets', () => {
  const v = (version: string) =>
    destinationRule('shop/d', `{host: orders, subsets: [{name: a, labels: {version: ${version}}}]}`);
  const one = pod('shop/o', '{app: orders, version: v1}');
  const told = [at('subsets[0].labels')];

  test('without any Pod of their host, or any endpoint, are told', () => {
    expect(checked([orders, one, v('v7')])).toEqual([
      `${told[0]}: selects nobody: no Pod of "orders.shop.svc.cluster.local" has version=v7. Requests for subset "a" get 503 until there is one; correct the labels, or remove the subset.`,
    ]);
    expect(places([orders, one, pod('shop/x', '{app: x, version: v7}'), v('v7')])).toEqual(told);
    const entry = serviceEntry(
      'shop/e',
      '{hosts: [orders.shop.svc.cluster.local], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 198.51.100.1, labels: {version: v1}}]}',
    );
    expect(places([entry, v('v7')])).toEqual(told);
  });

  test('by all of its labels, of templates, of workload entries, and in a rule of another namespace', () => {
    const two = destinationRule('shop/d', '{host: orders, subsets: [{name: a, labels: {version: v1, tier: b}}]}');
    const other = pod('shop/p', '{app: orders, version: v2, tier: b}');
    expect(places([orders, one, other, two])).toEqual(told);
    expect(places([orders, deployment('shop/o', '{app: orders, version: v1}'), v('v7')])).toEqual(told);
    const far = destinationRule(
      'zoo/d',
      '{host: orders.shop.svc.cluster.local, subsets: [{name: a, labels: {version: v7}}]}',
    );
    expect(places([orders, one, far])).toEqual(['warning DestinationRule/zoo/d spec.subsets[0].labels']);
    const machines = serviceEntry(
      'shop/e',
      '{hosts: [m.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], workloadSelector: {labels: {app: m}}}',
    );
    const machine =
      'apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: m, namespace: shop}\nspec: {address: 198.51.100.7, labels: {app: m, version: v1}}';
    const rule = v('v7').replace('host: orders', 'host: m.example');
    expect(places([machines, machine, rule])).toEqual(told);
    expect(places([machines, machine, rule.replace('v7', 'v1')])).toEqual([]);
  });

  test('nothing is said of those with one, or where no Pod of the host is known', () => {
    expect(places([orders, one, v('v1')])).toEqual([]);
    expect(places([orders, v('v7')])).toEqual([]);
    expect(places([orders, pod('shop/x', '{app: x}'), v('v7')])).toEqual([]);
  });
});
