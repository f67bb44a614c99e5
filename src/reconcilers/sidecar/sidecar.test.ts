import { expect, test } from 'vitest';
import { egressImports, egressImportsRoutes } from '../../model/sidecar.ts';
import { reconcileSidecar, selectSidecar } from './sidecar.ts';

const context = { source: 'test', domainSuffix: 'cluster.local' };

function reconcile(spec: unknown, metadata: { name?: string; namespace?: string; creationTimestamp?: string } = {}) {
  return reconcileSidecar(
    {
      apiVersion: 'networking.istio.io/v1',
      kind: 'Sidecar',
      metadata: { name: 's', namespace: 'shop', ...metadata },
      spec,
    },
    context,
  );
}

const model = (spec: unknown, metadata = {}) => {
  const { models, problems } = reconcile(spec, metadata);
  expect(problems).toEqual([]);
  return models[0]!;
};

test('all parts of a Sidecar', () => {
  expect(
    model({
      workloadSelector: { labels: { app: 'a' } },
      outboundTrafficPolicy: { mode: 'ALLOW_ANY', egressProxy: { host: 'proxy', port: { number: 3128 } } },
      inboundConnectionPool: { tcp: { maxConnections: 3 } },
      egress: [
        { port: { number: 80, protocol: 'HTTP', name: 'h' }, bind: '127.0.0.2', captureMode: 'NONE', hosts: ['./*'] },
        { hosts: ['~prod/x.example.com', '*/*'] },
      ],
      ingress: [
        { port: { number: 8080, protocol: 'HTTP', name: 'h' }, defaultEndpoint: '127.0.0.1:9080' },
        {
          port: { number: 8081, protocol: 'TCP' },
          defaultEndpoint: '[::]:9081',
          bind: '10.0.0.1',
          captureMode: 'NONE',
        },
        { port: { number: 8082, protocol: 'HTTP' }, defaultEndpoint: 'unix:///tmp/a.sock' },
        { port: { number: 8083, protocol: 'grpc' }, connectionPool: { tcp: { maxConnections: 1 } } },
      ],
    }),
  ).toMatchObject({
    key: 'test/shop/s',
    workloadSelector: { app: 'a' },
    outboundTrafficPolicy: { mode: 'ALLOW_ANY', egressProxy: { host: 'proxy.shop.svc.cluster.local', port: 3128 } },
    inboundConnectionPool: { tcp: { maxConnections: 3 } },
    egress: [
      {
        port: { number: 80, protocol: 'HTTP', name: 'h' },
        bind: '127.0.0.2',
        bindToPort: true,
        hosts: [{ namespace: '.', host: '*', excluded: false }],
      },
      {
        bind: '',
        bindToPort: false,
        hosts: [
          { namespace: 'prod', host: 'x.example.com', excluded: true },
          { namespace: '*', host: '*', excluded: false },
        ],
      },
    ],
    ingress: [
      { port: 8080, protocol: 'HTTP', endpoint: { kind: 'loopback', family: 'v4', port: 9080 } },
      { port: 8081, bind: '10.0.0.1', bindToPort: true, endpoint: { kind: 'workload', family: 'v6', port: 9081 } },
      { port: 8082, endpoint: { kind: 'unix', path: '/tmp/a.sock' } },
      { port: 8083, protocol: 'GRPC', endpoint: { kind: 'originalDestination' }, connectionPool: {} },
    ],
  });
});

test('without egress listeners everything is seen', () => {
  expect(model({ outboundTrafficPolicy: {} })).toMatchObject({
    egress: [{ hosts: [{ namespace: '*', host: '*' }] }],
    // The first value of the API's enum is what an empty policy means.
    outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' },
  });
});

test('a unix socket has port 0 and binds', () => {
  const spec = { egress: [{ port: { number: 0, protocol: 'HTTP' }, bind: 'unix:///tmp/e.sock', hosts: ['./*'] }] };
  expect(model(spec).egress[0]).toMatchObject({ bind: 'unix:///tmp/e.sock', bindToPort: true, port: { number: 0 } });
});

const egress = (listener: object) => ({ egress: [{ hosts: ['*/*'], ...listener }] });
const files = { serverCertificate: '/cert.pem', privateKey: '/key.pem' };
const ingressTls = (tls: object, protocol = 'HTTPS') => ({
  ingress: [{ port: { number: 443, protocol, name: 'a' }, tls }],
});
const ingress = (listener: object) => ({ ingress: [{ port: { number: 80, protocol: 'HTTP' }, ...listener }] });

test.each([
  [{}, 'spec'],
  [undefined, 'spec'],
  [{ egress: [{ hosts: [] }] }, 'spec.egress[0].hosts'],
  [{ egress: [{ hosts: ['*'] }] }, 'spec.egress[0].hosts[0]'],
  [{ egress: [{ hosts: ['a/b/c'] }] }, 'spec.egress[0].hosts[0]'],
  [{ egress: [{ hosts: ['./reviews'] }] }, 'spec.egress[0].hosts[0]'],
  [{ egress: [{ hosts: ['UPPER_case/*'] }] }, 'spec.egress[0].hosts[0]'],
  [{ egress: [{ hosts: ['*/*'] }, { hosts: ['*/*'] }] }, 'spec.egress[0]'],
  [egress({ port: { number: 0, protocol: 'HTTP' } }), 'spec.egress[0].port.number'],
  [egress({ port: { number: 70000, protocol: 'HTTP' } }), 'spec.egress[0].port.number'],
  [egress({ bind: 'localhost' }), 'spec.egress[0].bind'],
  [egress({ bind: 'unix:///x' }), 'spec.egress[0].port'],
  [egress({ bind: 'unix:///x', port: { number: 80, protocol: 'HTTP' } }), 'spec.egress[0].port.number'],
  [egress({ bind: 'unix://x', port: { number: 0, protocol: 'HTTP' } }), 'spec.egress[0].bind'],
  [{ egress: [1, 2].map(() => ({ port: { number: 80, protocol: 'HTTP' }, hosts: ['*/*'] })) }, 'spec.egress[1].port'],
  [{ ingress: [{}] }, 'spec.ingress[0].port'],
  [ingress({ defaultEndpoint: '10.0.0.1:80' }), 'spec.ingress[0].defaultEndpoint'],
  [ingress({ defaultEndpoint: '127.0.0.1:0' }), 'spec.ingress[0].defaultEndpoint'],
  [ingress({ defaultEndpoint: 'unix://' }), 'spec.ingress[0].defaultEndpoint'],
  [ingress({ bind: 'x' }), 'spec.ingress[0].bind'],
  [ingressTls({ mode: 'SIMPLE', ...files }, 'HTTP'), 'spec.ingress[0].tls'],
  [ingressTls({ ...files }), 'spec.ingress[0].tls.mode'],
  [ingressTls({ mode: 'ISTIO_MUTUAL' }), 'spec.ingress[0].tls.mode'],
  [ingressTls({ mode: 'SIMPLE', credentialName: 'a' }), 'spec.ingress[0].tls.credentialName'],
  [ingressTls({ mode: 'SIMPLE' }), 'spec.ingress[0].tls.serverCertificate'],
  [ingressTls({ mode: 'MUTUAL', ...files }), 'spec.ingress[0].tls.caCertificates'],
  [{ ingress: [80, 80].map((number) => ({ port: { number, protocol: 'HTTP' } })) }, 'spec.ingress[1].port.number'],
  [
    { outboundTrafficPolicy: { mode: 'REGISTRY_ONLY', egressProxy: { host: 'a.com', port: { number: 1 } } } },
    'spec.outboundTrafficPolicy.egressProxy',
  ],
  [
    { outboundTrafficPolicy: { mode: 'ALLOW_ANY', egressProxy: { host: 'a.com' } } },
    'spec.outboundTrafficPolicy.egressProxy.port',
  ],
])('%j is refused at %s', (spec, field) => {
  const { models, problems } = reconcile(spec);
  expect(models).toEqual([]);
  expect(problems).toContainEqual(expect.objectContaining({ field, reason: 'Invalid' }));
});

test('the Sidecar with a selector that fits wins, then that of the namespace, then that of the root namespace', () => {
  const policy = { outboundTrafficPolicy: {} };
  const at = (creationTimestamp: string, name: string, labels?: object, namespace = 'shop') =>
    model({ ...policy, ...(labels && { workloadSelector: { labels } }) }, { name, namespace, creationTimestamp });
  const younger = at('2026-01-02T00:00:00Z', 'a-younger', { app: 'a' });
  const older = at('2026-01-01T00:00:00Z', 'z-older', { app: 'a' });
  const plain = at('2025-01-01T00:00:00Z', 'plain');
  const root = at('2024-01-01T00:00:00Z', 'root', undefined, 'istio-system');
  const rootSelected = at('2023-01-01T00:00:00Z', 'root-selected', { app: 'a' }, 'istio-system');
  const own = [younger, plain, older];
  expect(selectSidecar({ own, root: [root] }, { app: 'a' })).toBe(older);
  expect(selectSidecar({ own, root: [root] }, { app: 'b' })).toBe(plain);
  expect(selectSidecar({ own: [younger], root: [rootSelected, root] }, { app: 'b' })).toBe(root);
  expect(selectSidecar({ own: [], root: [rootSelected] }, { app: 'a' })).toBeUndefined();
});

const hosts = (...texts: string[]) => model({ egress: [{ hosts: texts }] }).egress[0]!.hosts;

test.each([
  [['*/*'], 'other', 'a.com', true],
  [['./*'], 'shop', 'a.com', true],
  [['./*'], 'other', 'a.com', false],
  [['other/*'], 'other', 'a.com', true],
  [['*/a.com'], 'other', 'a.com', true],
  [['*/*.com'], 'other', 'a.com', true],
  [['*/*.com'], 'other', '*.a.com', true],
  [['*/x.a.com'], 'other', '*.a.com', false],
  [['*/b.com'], 'other', 'a.com', false],
  [['~/*'], 'shop', 'a.com', false],
  [['*/*', '~other/a.com'], 'other', 'a.com', false],
  [['~other/*.com', '*/*'], 'other', 'a.com', false],
  [['*/*', '~third/*'], 'other', 'a.com', true],
])('egress hosts %j import the service %s/%s: %s', (texts, namespace, host, imported) => {
  expect(egressImports(hosts(...texts), 'shop', { namespace, host })).toBe(imported);
});

test('a VirtualService is imported by any of its hosts, and a wildcard host takes what it covers', () => {
  const routes = { namespace: 'shop', hosts: ['z.org', '*.a.com'] };
  expect(egressImportsRoutes(hosts('./x.a.com'), 'shop', routes)).toBe(true);
  expect(egressImportsRoutes(hosts('./z.org'), 'shop', routes)).toBe(true);
  expect(egressImportsRoutes(hosts('./b.com'), 'shop', routes)).toBe(false);
});

const at = (bind: string, captureMode: string, number = 9080) => ({
  port: { number, protocol: 'HTTP', name: 'h' },
  captureMode,
  ...(bind === '' ? {} : { bind }),
});
test.each([
  ['0.0.0.0', at('0.0.0.0', 'NONE'), true],
  ['0.0.0.0', at('', 'DEFAULT'), true],
  ['127.0.0.1', at('', 'NONE'), true],
  ['0.0.0.0', at('', 'NONE'), false],
  ['0.0.0.0', at('0.0.0.0', 'NONE', 9081), false],
  ['', at('0.0.0.0', 'NONE'), false],
])('an ingress listener bound to %j beside the egress listener %j', (bind, egress, shared) => {
  const { models, problems } = reconcile({
    ingress: [{ ...at(bind, 'NONE'), defaultEndpoint: '127.0.0.1:8080' }],
    egress: [{ ...egress, hosts: ['./*'] }],
  });
  expect(models[0]?.ingress).toHaveLength(shared ? 0 : 1);
  expect(problems).toMatchObject(shared ? [{ field: 'spec.ingress[0].port', reason: 'Ineffective' }] : []);
});
