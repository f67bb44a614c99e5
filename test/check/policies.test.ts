import { describe, expect, test } from 'vitest';
import {
  authorizationPolicy,
  checked,
  deployment,
  gateway,
  peerAuthentication,
  places,
  pod,
  requestAuthentication,
  service,
  serviceEntry,
  sidecar,
  virtualService,
} from './checked.ts';

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

  test('where only workloads, or templates of them, know the number of a name', () => {
    const named = service('shop/bin', '{selector: {app: bin}, ports: [{name: http, port: 8000, targetPort: web}]}');
    const ports = (name: string) => `[{name: a, image: a, ports: [{name: ${name}, containerPort: 80}]}]`;
    expect(places([named, pod('shop/b', '{app: bin}', ports('web')), peers(8000)])).toEqual(told);
    const made = deployment('shop/b', '{app: bin}').replace('[{name: app, image: app}]', ports('web'));
    expect(places([named, made, peers(8000)])).toEqual(told);
    expect(places([named, made, peers(80)])).toEqual([]);
    for (const unknown of [pod('shop/b', '{app: other}', ports('web')), pod('shop/b', '{app: bin}', ports('admin'))])
      expect(places([named, unknown, pod('shop/c', '{app: bin}'), peers(8000)])).toEqual([]);
  });

  test('in what a rule excludes, and of a ServiceEntry', () => {
    const rules = '[{to: [{operation: {notPorts: ["8000"]}}]}]';
    const policy = authorizationPolicy(
      'shop/a',
      `{selector: {matchLabels: {app: bin}}, action: DENY, rules: ${rules}}`,
    );
    expect(checked([bin, policy])).toEqual([
      'warning AuthorizationPolicy/shop/a spec.rules[0]: names port 8000 of Service shop/bin, but here the port of the workload counts, which is 80: the rule excludes nothing by it. Write 80.',
    ]);
    expect(places([bin, authorizationPolicy('shop/a', '{rules: [{to: [{operation: {notPorts: ["80"]}}]}]}')])).toEqual(
      [],
    );
    const entry = serviceEntry(
      'shop/e',
      '{hosts: [bin.example], resolution: STATIC, location: MESH_INTERNAL, ports: [{number: 8000, name: http, protocol: HTTP, targetPort: 80}], workloadSelector: {labels: {app: bin}}}',
    );
    expect(checked([entry, peers(8000)])).toEqual([
      `${told[0]}: names port 8000 of host "bin.example", but here the port of the workload counts, which is 80: the setting has no effect, and the mode of the workload applies. Write 80.`,
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
    expect(places([from('SPIFFE://cluster.local/ns/a/sa/b')])).toEqual(told);
    expect(places([from('/ns/a/sa/b')])).toEqual(told);
    expect(places([from('system:serviceaccount:a:b')])).toEqual(told);
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

describe('CORS preflights, which have no token', () => {
  const router = gateway(
    'edge/g',
    '{selector: {gw: x}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}',
  );
  const routes = (cors: string) =>
    virtualService(
      'shop/v',
      `{hosts: [a.example], gateways: [edge/g], http: [{${cors}route: [{destination: {host: a, port: {number: 80}}}]}]}`,
    );
  const withCors = routes('corsPolicy: {allowOrigins: [{exact: "https://b.example"}]}, ');
  const a = service('shop/a', '{selector: {app: a}, ports: [{name: http, port: 80}]}');
  const keys = requestAuthentication(
    'edge/r',
    '{selector: {matchLabels: {gw: x}}, jwtRules: [{issuer: x, jwks: \'{"keys":[{"kty":"oct","kid":"a","k":"c2VjcmV0"}]}\'}]}',
  );
  const policy = (action: string, rules: string, name = 'edge/p', selector = '{gw: x}') =>
    authorizationPolicy(name, `{action: ${action}, selector: {matchLabels: ${selector}}, rules: ${rules}}`);
  const anyToken = 'from: [{source: {requestPrincipals: ["*"]}}]';
  const noToken = 'from: [{source: {notRequestPrincipals: ["*"]}}]';
  const said = (...objects: string[]) => places([router, a, keys, ...objects]);
  const told = ['warning AuthorizationPolicy/edge/p spec.rules[0]'];

  test('are refused by a policy that wants one', () => {
    expect(checked([router, a, keys, withCors, policy('ALLOW', `[{${anyToken}}]`)])).toEqual([
      `${told[0]}: refuses CORS preflights with 403: they have no token, and policies come before the corsPolicy of VirtualService/shop/v. Add a rule that allows the method OPTIONS.`,
    ]);
    expect(checked([router, a, keys, withCors, policy('DENY', `[{${noToken}}]`)])).toEqual([
      `${told[0]}: refuses CORS preflights with 403: they have no token, and policies come before the corsPolicy of VirtualService/shop/v. Add notMethods: ["OPTIONS"] to its operations.`,
    ]);
    const other = '{to: [{operation: {methods: [GET], paths: [/public]}}]}';
    expect(said(withCors, policy('ALLOW', `[{${anyToken}}, ${other}]`))).toEqual(told);
    expect(said(withCors, policy('DENY', `[{${noToken}, to: [{operation: {notMethods: [GET]}}]}]`))).toEqual(told);
    const claim = '{when: [{key: "request.auth.claims[group]", values: [a]}]}';
    expect(said(withCors, policy('ALLOW', `[${claim}]`))).toEqual(told);
  });

  test('are not, where a rule or another policy lets them pass, where no route has CORS, or on other routers', () => {
    const options = '{to: [{operation: {methods: [OPTIONS]}}]}';
    expect(said(withCors, policy('ALLOW', `[{${anyToken}}, ${options}]`))).toEqual([]);
    expect(said(withCors, policy('ALLOW', `[{${anyToken}}]`), policy('ALLOW', `[${options}]`, 'edge/q'))).toEqual([]);
    expect(said(withCors, policy('DENY', `[{${noToken}, to: [{operation: {notMethods: [OPTIONS]}}]}]`))).toEqual([]);
    expect(said(withCors, policy('DENY', `[{${noToken}, to: [{operation: {methods: [POST]}}]}]`))).toEqual([]);
    expect(said(routes(''), policy('ALLOW', `[{${anyToken}}]`))).toEqual([]);
    const elsewhere = keys.replace('gw: x', 'gw: y').replace('name: r', 'name: r2');
    expect(said(withCors, elsewhere, policy('ALLOW', `[{${anyToken}}]`, 'edge/p', '{gw: y}'))).not.toContain(told[0]);
  });
});

describe('PeerAuthentications that select the same workload', () => {
  const of = (name: string, labels: string, metadata = '') =>
    peerAuthentication(name, `{selector: {matchLabels: ${labels}}, mtls: {mode: STRICT}}`, metadata);
  const told = ['warning PeerAuthentication/shop/b spec.selector'];
  const both = pod('shop/p', '{app: x, tier: z}');
  const aged = (year: number) => `, creationTimestamp: "${year}-01-01T00:00:00Z"`;

  test('of which the older is in force are told', () => {
    expect(checked([both, of('shop/a', '{app: x}'), of('shop/b', '{tier: z}')])).toEqual([
      `${told[0]}: is not used for workload p: PeerAuthentication/shop/a (its name comes first, and their ages are equal or not known) selects it, too, and a workload has one PeerAuthentication by a selector. Merge the two, or select other workloads.`,
    ]);
    expect(
      places([deployment('shop/d', '{app: x, tier: z}'), of('shop/a', '{app: x}'), of('shop/b', '{tier: z}')]),
    ).toEqual(told);
    expect(places([both, of('shop/a', '{tier: z}', aged(2025)), of('shop/b', '{app: x}', aged(2026))])).toEqual(told);
    // The wider one is younger.
    expect(places([both, of('shop/a', '{app: x, tier: z}', aged(2025)), of('shop/b', '{app: x}', aged(2026))])).toEqual(
      told,
    );
  });

  test('and of other workloads are not', () => {
    const apart = [pod('shop/p', '{app: x}'), pod('shop/q', '{tier: z}')];
    expect(places([...apart, of('shop/a', '{app: x}'), of('shop/b', '{tier: z}')])).toEqual([]);
    expect(places([of('shop/a', '{app: x}'), of('shop/b', '{tier: z}')])).toEqual([]);
    expect(places([both, pod('zoo/p', '{tier: z}'), of('shop/a', '{app: x}'), of('zoo/b', '{tier: z}')])).toEqual([]);
    expect(places([both, of('shop/a', '{app: x}'), peerAuthentication('shop/b', '{mtls: {mode: DISABLE}}')])).toEqual(
      [],
    );
  });
});

describe('policies that select nobody', () => {
  const of = (namespace: string) =>
    authorizationPolicy(`${namespace}/a`, '{selector: {matchLabels: {app: y1}}, action: DENY, rules: [{}]}');

  test('may be for workloads that are not in these files', () => {
    expect(checked([pod('shop/p', '{app: x}'), of('shop')])).toEqual([
      'warning AuthorizationPolicy/shop/a spec.selector: has no effect: no known workload in namespace shop has the labels app=y1. Correct the labels, if such a workload is to exist.',
    ]);
    expect(checked([pod('shop/p', '{app: x}'), of('zoo')])).toEqual([]);
  });

  test('a PeerAuthentication of the root namespace with a selector is for nobody at all', () => {
    const strict = peerAuthentication('istio-system/p', '{selector: {matchLabels: {app: x}}, mtls: {mode: STRICT}}');
    expect(checked([pod('shop/p', '{app: x}'), pod('istio-system/p', '{app: x}'), strict])).toEqual([
      'warning PeerAuthentication/istio-system/p spec.selector: has no effect at all: in the root namespace, a PeerAuthentication with a selector is not used. Move it to the namespace of the workloads.',
    ]);
  });
});

describe('policies of the root namespace that select nobody', () => {
  const of = (labels: string) => [
    authorizationPolicy('istio-system/a', `{selector: {matchLabels: ${labels}}, action: DENY, rules: [{}]}`),
    requestAuthentication('istio-system/r', `{selector: {matchLabels: ${labels}}}`),
  ];
  const told = [
    'warning AuthorizationPolicy/istio-system/a spec.selector',
    'warning RequestAuthentication/istio-system/r spec.selector',
  ];
  const workload = deployment('shop/d', '{app: x, tier: z}');
  const complete = { complete: true };

  test('are told where the files are complete', () => {
    expect(checked([workload, ...of('{app: "y1"}')], complete)[0]).toBe(
      `${told[0]}: has no effect: no workload in any namespace has the labels app=y1. Correct the labels, if such a workload is to exist.`,
    );
    expect(places([workload, ...of('{app: x, tier: a}')], complete)).toEqual(told);
    expect(places([workload, ...of('{app: other}')])).toEqual([]);
    expect(places(of('{app: other}'), complete)).toEqual([]);
  });

  test('are not, where a workload of any namespace, an entry, or the router of a Gateway has the labels', () => {
    expect(places([workload, pod('zoo/p', '{app: other}'), ...of('{app: other}')], complete)).toEqual([]);
    expect(places([workload, ...of('{app: x}')], complete)).toEqual([]);
    const machine =
      'apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: w, namespace: zoo}\nspec: {address: 198.51.100.7, labels: {app: other}}';
    expect(places([workload, machine, ...of('{app: other}')], complete)).toEqual([]);
    const router = gateway(
      'edge/g',
      '{selector: {app: other, gw: a}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}',
    );
    expect(places([workload, router, ...of('{app: other}')], complete)).not.toContain(told[0]);
    expect(
      places([workload, ...of('{app: other}').map((policy) => policy.replace('istio-system', 'nowhere'))], complete),
    ).toEqual([]);
  });
});
