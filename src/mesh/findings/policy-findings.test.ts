import { describe, expect, test } from 'vitest';
import { MeshLab, objectOf, proxy, route, service } from '../../../test/harness/lab.ts';
import { type KubernetesObject, printRef } from '../../api/object.ts';

function security(kind: string, path: string, spec: object, annotations = {}): KubernetesObject {
  return { ...objectOf(kind, path, { spec }, { annotations }), apiVersion: 'security.istio.io/v1' };
}

const allow = (path: string, spec: object, annotations = {}) =>
  security('AuthorizationPolicy', path, { action: 'ALLOW', ...spec }, annotations);
const deny = (path: string, spec: object) => security('AuthorizationPolicy', path, { action: 'DENY', ...spec });
const jwks = JSON.stringify({ keys: [{ kty: 'oct', kid: 'a', k: 'c2VjcmV0' }] });
const tokens = (path: string, spec: object = {}) =>
  security('RequestAuthentication', path, { jwtRules: [{ issuer: 'x', jwks }], ...spec });
const peers = (path: string, mode: string, spec: object = {}) =>
  security('PeerAuthentication', path, { mtls: { mode }, ...spec });

const from = (source: object) => ({ rules: [{ from: [{ source }] }] });
const to = (operation: object) => ({ rules: [{ to: [{ operation }] }] });
const of = (labels: object) => ({ selector: { matchLabels: labels } });
const app = of({ app: 'a' });
const pod = (path: string, labels: Readonly<Record<string, string>>) =>
  objectOf('Pod', path, { status: { phase: 'Running', podIP: '10.1.0.1' }, spec: {} }, { labels });
const istio = (mesh: string) => ({
  ...objectOf('ConfigMap', 'istio-system/istio', { data: { mesh } }),
  apiVersion: 'v1',
});

/** `object field reason: first words`. */
function told(lab: MeshLab): string[] {
  return [...lab.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems.map(({ object, field, reason, message }) => {
      const words = message.split(/[ ,:]+/).slice(0, 3);
      return `${printRef(object).replace(/^[a-z]+/i, '')} ${field} ${reason}: ${words.join(' ')}`;
    }),
  );
}

const check = (objects: readonly KubernetesObject[], expected: readonly string[]): void =>
  expect(told(new MeshLab(objects))).toEqual(expected);

type Case = readonly [string, readonly KubernetesObject[], readonly string[]];

const strict = peers('istio-system/default', 'STRICT');

describe('the whole mesh', () => {
  test.each<Case>([
    ['nothing is allowed', [allow('istio-system/p', {})], ['/istio-system/p spec TooBroad: allows nothing in']],
    ['in a namespace, that is usual', [allow('shop/p', {})], []],
    ['for some workloads, too', [allow('istio-system/p', app)], []],
    ['a dry run harms nobody', [allow('istio-system/p', {}, { 'istio.io/dry-run': 'true' })], []],
    [
      'everything is denied',
      [deny('istio-system/p', { rules: [to({ ports: ['1'] }).rules[0], {}] })],
      ['/istio-system/p spec.rules[1] TooBroad: is empty and'],
    ],
    ['in a namespace, that is meant', [deny('shop/p', { rules: [{}] })], []],
  ])('%s', (_, objects, expected) => check(objects, expected));
});

describe('paths', () => {
  const odd = ['/shop/p spec.rules[0] Ineffective: has the path'];
  const path = (value: string) => allow('shop/p', to({ paths: [value] }));
  test.each<Case>([
    ['with ..', [path('/a/../b')], odd],
    ['with .., as they are', [path('/a/../b'), istio('pathNormalization: {normalization: NONE}')], []],
    ['with two slashes', [path('/a//b')], []],
    ['that are merged', [path('/a//b'), istio('pathNormalization: {normalization: MERGE_SLASHES}')], odd],
    ['that are not meant', [allow('shop/p', to({ notPaths: ['/a?b'] }))], odd],
    ['that are usual', [path('/a/*')], []],
  ])('%s', (_, objects, expected) => check(objects, expected));
});

describe('identities', () => {
  const rule = (what: string) => [`/shop/p spec.rules[0] ${what}`];
  const principals = ['cluster.local/ns/shop/sa/a'];
  const denied = deny('shop/p', from({ principals }));
  const excluding = allow('shop/p', from({ notNamespaces: ['shop'] }));
  test.each<Case>([
    ['are not denied in plaintext', [denied], rule('Ineffective: denies by identity')],
    ['are where it is not accepted', [denied, strict], []],
    [
      'are where the workload does not accept it',
      [deny('shop/p', { ...app, ...from({ principals }) }), peers('shop/a', 'STRICT', app)],
      [],
    ],
    ['are allowed in plaintext unless named', [excluding], rule('TooBroad: allows all but')],
    ['are not where it is not accepted', [excluding, strict], []],
    ['that must be there', [allow('shop/p', from({ principals }))], []],
    [
      'that nobody can have',
      [allow('shop/p', from({ serviceAccounts: ['a'] })), peers('shop/default', 'DISABLE')],
      rule('Ineffective: compares identities but'),
    ],
    [
      'in when, too',
      [deny('shop/p', { rules: [{ when: [{ key: 'source.namespace', values: ['a'] }] }] })],
      rule('Ineffective: denies by identity'),
    ],
    ['of both kinds', [allow('shop/p', from({ notNamespaces: ['shop'], principals }))], []],
    [
      'on ports of which nobody knows which are meant',
      [
        deny('shop/p', { ...app, ...from({ principals }) }),
        peers('shop/a', 'PERMISSIVE', { ...app, portLevelMtls: { 80: { mode: 'STRICT' } } }),
      ],
      [],
    ],
  ])('%s', (_, objects, expected) => check(objects, expected));
});

describe('what refuses, and compares only what requests have', () => {
  const admin = to({ paths: ['/admin'] });
  const custom = (spec: object) =>
    security('AuthorizationPolicy', 'shop/p', { action: 'CUSTOM', provider: { name: 'a' }, ...spec });
  const extension = istio('extensionProviders: [{name: a, envoyExtAuthzGrpc: {service: a.shop, port: 80}}]');
  const everything = ['/shop/p spec.rules[0] TooBroad: compares only what'];
  const router = of({ gw: 'x' });
  const gateway = (path: string, servers: object[], selector: object = { gw: 'x' }) =>
    objectOf('Gateway', path, { spec: { selector, servers } });
  const http = { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] };
  const tcp = { port: { number: 90, name: 'tcp', protocol: 'TCP' }, hosts: ['*'] };
  const web = gateway('edge/g', [http]);
  const routers = service('shop/r', {
    selector: { gw: 'x' },
    ports: [
      { name: 'https', port: 443 },
      { name: 'status', port: 15021 },
    ],
  });
  test.each<Case>([
    ['a DENY of a path closes TCP ports', [deny('shop/p', admin)], everything],
    [
      'so does one alternative of several',
      [deny('shop/p', { rules: [{ to: [{ operation: { ports: ['80'] } }, { operation: { methods: ['GET'] } }] }] })],
      everything,
    ],
    ['with ports, it does not', [deny('shop/p', to({ paths: ['/admin'], ports: ['80'] }))], []],
    ['a CUSTOM rule of a path checks TCP ports', [custom(admin), extension], everything],
    ['an ALLOW of a path is not for TCP ports', [allow('shop/p', admin)], []],
    ['AUDIT refuses nothing', [security('AuthorizationPolicy', 'shop/p', { action: 'AUDIT', ...admin })], []],
    [
      'a header in when is HTTP, too',
      [deny('shop/p', { rules: [{ when: [{ key: 'request.headers[a]', values: ['b'] }] }] })],
      everything,
    ],
    ['nothing is closed on routers for requests only', [deny('shop/p', { ...router, ...admin }), web], []],
    [
      'nor if Gateways for some of them, or for more labels, are among the files',
      [deny('shop/p', { ...router, ...admin }), gateway('edge/g', [http], { gw: 'x', tier: 'a' })],
      [],
    ],
    [
      'a server for connections is closed',
      [deny('shop/p', { ...router, ...admin }), gateway('edge/g', [http, tcp])],
      everything,
    ],
    [
      'also one of another Gateway for the same routers',
      [deny('shop/p', { ...router, ...admin }), web, gateway('edge/h', [tcp], { istio: 'y' })],
      everything,
    ],
    ['and what is not selected by Gateways', [deny('shop/p', { ...app, ...admin }), web], everything],
    [
      'an ALLOW is about the servers of routers, not about ports of their Service',
      [allow('shop/p', { ...router, ...admin }), web, routers],
      [],
    ],
    [
      'where one is for connections, nothing is allowed there',
      [allow('shop/p', { ...router, ...admin }), gateway('edge/g', [http, tcp]), routers],
      ['/shop/p spec.rules Ineffective: compare only what'],
    ],
    [
      'what routers accept is up to their servers, not to PeerAuthentications',
      [deny('shop/p', { ...router, ...from({ principals: ['cluster.local/ns/shop/sa/a'] }) }), web],
      [],
    ],
  ])('%s', (_, objects, expected) => check(objects, expected));
});

describe('TCP ports', () => {
  const tcp = (name: string, labels: object) =>
    service(`shop/${name}`, { selector: labels, ports: [{ name: 'tcp', port: 5432 }] });
  const db = tcp('db', { app: 'a', tier: 'db' });
  const closed = ['/shop/p spec.rules Ineffective: compare only what'];
  const gets = { ...app, ...to({ methods: ['GET'] }) };
  test.each<Case>([
    ['are closed by rules for HTTP', [allow('shop/p', gets), db], closed],
    ['of any workload of the namespace', [allow('shop/p', to({ methods: ['GET'] })), db], closed],
    ['of other workloads are not', [allow('shop/p', gets), tcp('db', { app: 'b' })], []],
    ['of other namespaces are not', [allow('other/p', gets), db], []],
    [
      'are open with a rule for them',
      [allow('shop/p', { ...app, rules: [...gets.rules, ...to({ ports: ['5432'] }).rules] }), db],
      [],
    ],
    ['are opened by another policy', [allow('shop/p', gets), allow('shop/q', to({ ports: ['5432'] })), db], []],
    ['are not there', [allow('shop/p', gets), service('shop/a', { selector: { app: 'a' } })], []],
    ['are not what DENY is about', [deny('shop/p', to({ methods: ['GET'], ports: ['80'] })), db], []],
  ])('%s', (_, objects, expected) => check(objects, expected));
});

describe('tokens', () => {
  const asks = { requestPrincipals: ['*'] };
  const unverified = ['/shop/p spec.rules[0] Ineffective: compares the content'];
  const optional = ['/shop/t spec.jwtRules Ineffective: lets requests without'];
  const b = of({ app: 'b' });
  test.each<Case>([
    ['are not verified', [allow('shop/p', from(asks))], unverified],
    [
      'are not verified for other workloads',
      [allow('shop/p', { ...app, ...from(asks) }), tokens('shop/t', b)],
      [...unverified, ...optional],
    ],
    ['are verified', [allow('shop/p', from(asks)), tokens('shop/t')], []],
    ['are verified in the whole mesh', [allow('shop/p', { ...app, ...from(asks) }), tokens('istio-system/t')], []],
    [
      'may be verified for the same workload',
      [allow('shop/p', { ...app, ...from(asks) }), tokens('shop/t', of({ tier: 'web' }))],
      [],
    ],
    [
      'are verified elsewhere',
      [allow('shop/p', from(asks)), tokens('other/t'), allow('other/p', from(asks))],
      unverified,
    ],
    [
      'in when',
      [allow('shop/p', { rules: [{ when: [{ key: 'request.auth.claims[a]', values: ['b'] }] }] })],
      unverified,
    ],
    [
      'that must not be there',
      [
        deny('shop/p', {
          rules: [{ ...from({ notRequestPrincipals: ['*'] }).rules[0], ...to({ ports: ['80'] }).rules[0] }],
        }),
      ],
      unverified,
    ],
    ['of the whole mesh, somewhere', [allow('istio-system/p', from(asks)), tokens('shop/t', app)], []],
    [
      'of the whole mesh, nowhere',
      [allow('istio-system/p', from(asks))],
      ['/istio-system/p spec.rules[0] Ineffective: compares the content'],
    ],
    ['may be left out', [tokens('shop/t')], optional],
    [
      'may be left out where nobody asks for them',
      [tokens('shop/t', app), allow('shop/p', { ...b, ...from(asks) })],
      [...unverified, ...optional],
    ],
    ['must be there', [tokens('shop/t', { jwtRules: [{ issuer: 'x', jwks, presence: 'REQUIRED' }] })], []],
    ['are asked for by the whole mesh', [tokens('shop/t', app), allow('istio-system/p', from(asks))], []],
    ['are not there', [tokens('shop/t', { jwtRules: [] })], []],
  ])('%s', (_, objects, expected) => {
    const about = told(new MeshLab(objects)).filter((one) => !one.includes('TooBroad'));
    expect(about.sort()).toEqual([...expected].sort());
  });

  test('may be left out on gateways whose routes compare claims', () => {
    const gateway = objectOf('Gateway', 'shop/g', {
      spec: {
        selector: { istio: 'ingress' },
        servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
      },
    });
    const claim = { headers: { '@request.auth.claims.group': { exact: 'x' } } };
    const routed = route('shop/v', 'a.example', 'a', { gateways: ['g'] }, claim);
    const [ingress, other] = [tokens('shop/t', of({ istio: 'ingress' })), tokens('shop/u', of({ istio: 'egress' }))];
    const objects = [gateway, service('shop/a'), ingress, other];
    expect(told(new MeshLab([...objects, routed]))).toEqual([optional[0]!.replace('/t', '/u')]);
    expect(told(new MeshLab(objects))).toHaveLength(2);
  });
});

describe('nobody', () => {
  const idle = (path: string, field = 'spec.selector') => [`/${path} ${field} Ineffective: has no effect`];
  const policy = (path: string, spec: object = app) => allow(path, { ...spec, ...to({ ports: ['80'] }) });
  const other = pod('shop/b-1', { app: 'b', tier: 'web' });
  test.each<Case>([
    ['has the labels', [policy('shop/p'), other], idle('shop/p')],
    ['has all of them', [policy('shop/p', of({ app: 'b', tier: 'db' })), other], idle('shop/p')],
    ['has the labels of a PeerAuthentication', [peers('shop/p', 'STRICT', app), other], idle('shop/p')],
    ['is known in the namespace at all', [policy('other/p'), other], []],
    ['is the wrong word: a Pod has them', [policy('shop/p'), other, pod('shop/a-1', { app: 'a' })], []],
    ['is in the mesh that has them', [policy('istio-system/p'), pod('istio-system/b', { app: 'b' })], []],
    [
      'is meant by a selector in the root namespace',
      [peers('istio-system/p', 'STRICT', app)],
      ['/istio-system/p spec.selector Ineffective: has no effect'],
    ],
    [
      'is a proxy of the Gateway',
      [policy('shop/p', { targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'g' }] }), other],
      idle('shop/p', 'spec'),
    ],
  ])('%s', (_, objects, expected) => check(objects, expected));

  test('has the labels, until somebody has', () => {
    const lab = new MeshLab([policy('shop/p'), other]);
    lab.join([proxy('a.shop', { app: 'a' })]);
    expect(told(lab)).toEqual([]);
    lab.disconnect('a.shop');
    expect(told(lab)).toEqual(idle('shop/p'));
    const entry = objectOf('WorkloadEntry', 'shop/vm', { spec: { address: '10.1.0.9', labels: { app: 'a' } } });
    lab.apply([entry]);
    expect(told(lab)).toEqual([]);
    lab.delete([entry, other]);
    expect(told(lab)).toEqual([]);
  });
});

describe('of more policies with a label than are compared, nobody knows whether', () => {
  const ports = { rules: [{ to: [{ operation: { ports: ['80'] } }] }] };
  const principals = ['cluster.local/ns/shop/sa/a'];
  const db = service('shop/db', { selector: { app: 'a' }, ports: [{ name: 'tcp', port: 5432 }] });
  const cases: [string, readonly KubernetesObject[], (path: string) => KubernetesObject, string][] = [
    [
      'they open a TCP port',
      [allow('shop/p', { ...app, ...to({ methods: ['GET'] }) }), db],
      (path) => deny(path, { ...app, ...ports }),
      'spec.rules Ineffective: compare only what',
    ],
    [
      'plaintext is accepted',
      [deny('shop/p', { ...app, ...from({ principals }) })],
      // Each for workloads of its own, or the oldest would hide the others.
      (path) => peers(path, 'PERMISSIVE', of({ app: 'a', one: path.replace('/', '.') })),
      'spec.rules[0] Ineffective: denies by identity',
    ],
    [
      'tokens are verified',
      [allow('shop/p', { ...app, ...from({ requestPrincipals: ['*'] }) })],
      (path) => tokens(path, { ...app, jwtRules: [] }),
      'spec.rules[0] Ineffective: compares the content',
    ],
  ];
  test.each(cases)('%s', (_, objects, another, remark) => {
    const others = (count: number) => Array.from({ length: count }, (__, i) => another(`shop/o${i}`));
    check([...objects, ...others(99)], [`/shop/p ${remark}`]);
    check([...objects, ...others(101)], []);
  });
});

describe('PeerAuthentications for the same workloads', () => {
  const created = (object: KubernetesObject, creationTimestamp: string): KubernetesObject => ({
    ...object,
    metadata: { ...object.metadata, creationTimestamp },
  });
  const young = (object: KubernetesObject) => created(object, '2026-02-01T00:00:00Z');
  const old = (object: KubernetesObject) => created(object, '2026-01-01T00:00:00Z');
  const narrow = of({ app: 'a', version: 'v1' });
  test.each<Case>([
    [
      'with one selector, the older is used',
      [young(peers('shop/a', 'STRICT', app)), old(peers('shop/b', 'PERMISSIVE', app))],
      ['/shop/a spec.selector Conflicted: has no effect'],
    ],
    [
      'of a namespace, too',
      [old(peers('shop/a', 'STRICT')), old(peers('shop/b', 'DISABLE'))],
      ['/shop/b spec Conflicted: has no effect'],
    ],
    [
      'and of the mesh',
      [young(peers('istio-system/a', 'STRICT')), old(peers('istio-system/b', 'DISABLE'))],
      ['/istio-system/a spec Conflicted: has no effect'],
    ],
    [
      'a narrower selector is not stronger',
      [old(peers('shop/a', 'STRICT', app)), young(peers('shop/b', 'DISABLE', narrow))],
      ['/shop/b spec.selector Conflicted: has no effect'],
    ],
    [
      'an older one of them leaves the others',
      [old(peers('shop/a', 'STRICT', narrow)), young(peers('shop/b', 'DISABLE', app))],
      [],
    ],
    [
      'a namespace, and workloads in it, are different',
      [peers('shop/a', 'STRICT'), peers('shop/b', 'DISABLE', app)],
      [],
    ],
    ['other namespaces are others', [peers('shop/a', 'STRICT', app), peers('bank/a', 'DISABLE', app)], []],
  ])('%s', (_, objects, expected) => check(objects, expected));

  test('are told which one is used', () => {
    const { mesh } = new MeshLab([young(peers('shop/a', 'STRICT', app)), old(peers('shop/b', 'PERMISSIVE', app))]);
    expect([...mesh.problems.byObject.entries()].flatMap(([, problems]) => problems)).toMatchObject([
      { message: expect.stringContaining('the older PeerAuthentication/shop/b is for the same workloads, too') },
    ]);
  });

  test('are told if there are many', () => {
    const many = Array.from({ length: 150 }, (_, i) => peers(`shop/p${i}`, 'STRICT', app));
    expect(told(new MeshLab(many))).toHaveLength(149);
  });
});

describe('a rule for tokens on a port whose protocol is detected', () => {
  const ports = (name: string) => [{ name, port: 8080 }];
  const detected = service('shop/a', { selector: { app: 'a' }, ports: ports('web') });
  const required = (path: string, spec: object) =>
    security('RequestAuthentication', path, { jwtRules: [{ issuer: 'x', jwks, presence: 'REQUIRED' }], ...spec });
  const asked = allow('shop/p', { ...from({ requestPrincipals: ['*'] }) });
  const told = ['/shop/r spec.jwtRules[0] TooBroad: must see every'];
  test.each<Case>([
    ['that must see every request', [required('shop/r', app), detected], told],
    ['of the whole namespace', [required('shop/r', {}), detected], told],
    ['for some of its workloads', [required('shop/r', of({ app: 'a', version: 'v1' })), detected], told],
    [
      'that writes headers',
      [
        security('RequestAuthentication', 'shop/r', {
          jwtRules: [{ issuer: 'x', jwks, outputClaimToHeaders: [{ header: 'x-sub', claim: 'sub' }] }],
        }),
        asked,
        detected,
      ],
      told,
    ],
    ['that may be left out', [tokens('shop/r'), asked, detected], []],
    ['of others', [required('shop/r', of({ app: 'b' })), detected], []],
    [
      'of routers, which have the ports of their Gateways',
      [
        required('shop/r', app),
        detected,
        objectOf('Gateway', 'edge/g', {
          spec: {
            selector: { app: 'a' },
            servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
          },
        }),
      ],
      [],
    ],
    [
      'with a protocol',
      [required('shop/r', app), service('shop/a', { selector: { app: 'a' }, ports: ports('http') })],
      [],
    ],
  ])('%s', (_, objects, expected) => check(objects, expected));
});

test('a sound mesh hears nothing', () => {
  const lab = new MeshLab([
    strict,
    service('shop/a', { selector: { app: 'a' } }),
    service('shop/db', { selector: { app: 'db' }, ports: [{ name: 'tcp', port: 5432 }] }),
    pod('shop/a-1', { app: 'a' }),
    pod('shop/db-1', { app: 'db' }),
    allow('shop/nothing', {}),
    tokens('shop/tokens', app),
    allow('shop/a', {
      ...app,
      rules: [
        {
          from: [{ source: { namespaces: ['edge'], requestPrincipals: ['x/*'] } }],
          to: [{ operation: { methods: ['GET'], paths: ['/a/*'], hosts: ['a.example', 'a.example:*'] } }],
        },
      ],
    }),
    allow('shop/db', { ...of({ app: 'db' }), ...from({ principals: ['cluster.local/ns/shop/sa/a'] }) }),
    deny('shop/blocked', { ...app, ...from({ namespaces: ['blocked'] }) }),
  ]);
  lab.join([proxy('a-1.shop', { app: 'a' })]);
  expect(told(lab)).toEqual([]);
});
