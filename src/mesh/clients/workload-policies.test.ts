import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { Derived } from '../../cache/derived.ts';
import { MeshLab, proxy, service } from '../../../test/harness/lab.ts';
import { connectedProxy } from '../../../test/harness/mesh.ts';

function policy(kind: string, path: string, spec: object, creationTimestamp?: string): KubernetesObject {
  const [namespace = '', name = ''] = path.split('/');
  const metadata = { namespace, name, ...(creationTimestamp && { creationTimestamp }) };
  return { apiVersion: 'security.istio.io/v1', kind, metadata, spec } as KubernetesObject;
}

const authorization = (path: string, spec: object = {}, created?: string) =>
  policy('AuthorizationPolicy', path, { action: 'DENY', rules: [{}], ...spec }, created);
const requests = (path: string, spec: object = {}) =>
  policy('RequestAuthentication', path, { jwtRules: [{ issuer: `https://${path}`, jwksUri: 'http://k' }], ...spec });
const peers = (path: string, spec: object = {}) =>
  policy('PeerAuthentication', path, { mtls: { mode: 'STRICT' }, ...spec });

const selector = { matchLabels: { app: 'a' } };
const gateway = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' };

const router = (name: string, namespace: string, labels: object) =>
  connectedProxy(`${name}.${namespace}`, {
    id: `router~10.1.0.9~${name}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, LABELS: labels, INSTANCE_IPS: '10.1.0.9' },
  });

const REPLICAS = 10;
const gatewayObject = (namespace: string): KubernetesObject =>
  ({
    apiVersion: 'networking.istio.io/v1',
    kind: 'Gateway',
    metadata: { name: 'g', namespace },
    spec: {
      selector: { istio: 'ingress' },
      servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
    },
  }) as KubernetesObject;

let lab: MeshLab;

beforeEach(() => {
  const named = { istio: 'ingress', 'gateway.networking.k8s.io/gateway-name': 'edge' };
  lab = new MeshLab(
    [
      ...['shop', 'far'].flatMap((namespace) => [
        service(`${namespace}/a`, { selector: { app: 'a' } }),
        service(`${namespace}/b`, { selector: { app: 'b' }, clusterIP: '10.0.0.2' }),
      ]),
      gatewayObject('shop'),
      gatewayObject('far'),
    ],
    [
      ...Array.from({ length: REPLICAS }, (_, i) => proxy(`a${i}.shop`, { app: 'a', pod: `a-${i}` })),
      proxy('b.shop', { app: 'b' }),
      proxy('a.far', { app: 'a' }),
      // Labels do not turn a sidecar into a gateway.
      proxy('liar.shop', { app: 'c', 'gateway.networking.k8s.io/gateway-name': 'edge' }),
      router('edge', 'shop', named),
      router('classic', 'shop', { istio: 'ingress' }),
      router('edge', 'far', named),
    ],
  );
});

const all = () => [...lab.mesh.inputs.proxies.entries()].map(([stream]) => stream);

/** What each proxy has; replicas are named once. */
function held(): Map<string, string> {
  return new Map(
    all().map((stream) => {
      const { cds, lds, rds, eds } = lab.snapshot(stream);
      return [stream, [...cds, ...lds, ...rds, ...eds].map(({ name, version }) => `${name} ${version}`).join('\n')];
    }),
  );
}

/** Proxies that a change reaches. */
function reached(objects: readonly KubernetesObject[]): string[] {
  const before = held();
  lab.apply(objects);
  return names([...held()].filter(([stream, text]) => before.get(stream) !== text).map(([stream]) => stream));
}

const names = (streams: readonly string[]) =>
  [...new Set(streams.map((stream) => stream.replace(/^a\d\./, 'a*.')))].sort();

const inShop = ['a*.shop', 'b.shop', 'classic.shop', 'edge.shop', 'liar.shop'];
const inFar = ['a.far', 'edge.far'];
const everybody = [...inShop, ...inFar].sort();

describe.each([
  ['AuthorizationPolicy', authorization],
  ['RequestAuthentication', requests],
] as const)('%s', (_, make) => {
  test.each<[string, string, object, string[]]>([
    ['with a selector reaches those it selects', 'shop/p', { selector }, ['a*.shop']],
    ['without one, the namespace', 'shop/p', {}, inShop],
    ['of the root namespace, all', 'istio-system/p', {}, everybody],
    [
      'of the root namespace with a selector, those it selects, anywhere',
      'istio-system/p',
      { selector },
      ['a*.shop', 'a.far'],
    ],
    ['with a Gateway, only routers that it names, in its namespace', 'shop/p', { targetRef: gateway }, ['edge.shop']],
    ['of the root namespace with a Gateway, nobody elsewhere', 'istio-system/p', { targetRefs: [gateway] }, []],
    ['of another namespace, nobody here', 'nowhere/p', {}, []],
    ['with a Service, nobody', 'shop/p', { targetRef: { kind: 'Service', name: 'a' } }, []],
    ['with a selector of nobody, nobody', 'shop/p', { selector: { matchLabels: { app: 'a', pod: 'x' } } }, []],
    ['with the label of one replica, that one', 'shop/p', { selector: { matchLabels: { pod: 'a-3' } } }, ['a*.shop']],
  ])('%s', (__, path, spec, expected) => {
    expect(reached([make(path, spec)])).toEqual(expected);
  });

  test('that is edited, or goes, reaches the same', () => {
    lab.apply([make('shop/p', { selector }), make('shop/q')]);
    expect(reached([make('shop/p', { selector: { matchLabels: { app: 'b' } } })])).toEqual(['a*.shop', 'b.shop']);
    const before = held();
    lab.delete([make('shop/p')]);
    const changed = [...held()].filter(([stream, text]) => before.get(stream) !== text).map(([stream]) => stream);
    expect(names(changed)).toEqual(['b.shop']);
  });
});

test('a change of what is not read reaches nobody', () => {
  lab.apply([authorization('shop/p', { selector })]);
  const again = authorization('shop/p', { selector });
  expect(reached([{ ...again, metadata: { ...again.metadata, labels: { a: 'b' }, generation: 2 } }])).toEqual([]);
});

test('PeerAuthentication: a selector in the root namespace is ignored, and routers are not servers of the mesh', () => {
  const inbound = (objects: readonly KubernetesObject[]) =>
    reached(objects).filter((name) => !/^(edge|classic)/.test(name));
  expect(reached([peers('istio-system/p', { selector })])).toEqual([]);
  expect(inbound([peers('shop/p', { selector })])).toEqual(['a*.shop']);
  expect(inbound([peers('shop/q')])).toEqual(['b.shop', 'liar.shop']);
  expect(inbound([peers('istio-system/q')])).toEqual(['a.far']);
});

test('what a policy costs is one run for each class, and one set of filters, however many replicas', () => {
  const { oracle } = lab;
  // Without the comparison with a mesh from scratch, which runs everything.
  Object.assign(lab, { oracle: false });
  const execute = vi.spyOn(Derived.prototype as unknown as { execute: (key: string) => unknown }, 'execute');
  lab.apply([authorization('shop/p', { selector: { matchLabels: { app: 'a' } } })]);
  const runs = (execute.mock.contexts as { name: string }[]).map(({ name }) => name);
  execute.mockRestore();
  Object.assign(lab, { oracle });
  const count = (name: string) => runs.filter((one) => one === name).length;
  expect(count('securityFilters')).toBe(1);
  expect(count('policies of workloads')).toBe(1);
  expect(count('resolvedProxies')).toBe(0);
  expect(lab.changed).toEqual(['Listener virtualInbound']);
});

/** Names of rules and issuers, in the order in which the listener has them. */
const order = (stream: string, pattern: RegExp) => [
  ...new Set([...JSON.stringify(lab.json(stream).lds).matchAll(pattern)].map(([, name]) => name)),
];

test('policies of the root namespace come first, then the oldest', () => {
  lab.apply([
    authorization('shop/young', {}, '2026-01-03T00:00:00Z'),
    authorization('shop/old', { selector }, '2026-01-01T00:00:00Z'),
    authorization('istio-system/root', {}, '2026-01-09T00:00:00Z'),
  ]);
  // Protobuf sorts maps: the set of rules is what counts.
  expect(order('a0.shop', /policy\[(\w+)\]/g).sort()).toEqual(['old', 'root', 'young']);
  expect(order('b.shop', /policy\[(\w+)\]/g).sort()).toEqual(['root', 'young']);
});

test('issuers of the namespace and of the root namespace come together, by name', () => {
  lab.apply([requests('shop/b'), requests('istio-system/c'), requests('shop/a', { selector })]);
  expect(order('a0.shop', /"issuer":"https:\/\/([\w/-]+)"/g)).toEqual(['istio-system/c', 'shop/a', 'shop/b']);
});

test('keys that arrive reach those whose tokens they verify', () => {
  lab.apply([requests('shop/p', { selector, jwtRules: [{ issuer: 'i', jwksUri: 'http://k/1' }] }), requests('far/p')]);
  const before = held();
  lab.commit([lab.mesh.inputs.keySets.write('http://k/1', { jwks: 'fetched' })]);
  const changed = [...held()].filter(([stream, text]) => before.get(stream) !== text).map(([stream]) => stream);
  expect(names(changed)).toEqual(['a*.shop']);
  expect(JSON.stringify(lab.json('a0.shop').lds)).toContain('"inlineString":"fetched"');
});
