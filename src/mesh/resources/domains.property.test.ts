import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EnvoyNode, TestMesh, connectedProxy } from '../../../test/harness/mesh.ts';
import { createCheckSound } from '../../../test/harness/sound.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { objectOf } from '../../../test/harness/lab.ts';
import { runs } from '../../testing/runs.ts';

// Few names, so that worlds are full of objects that want the same domains.
const namespaces = ['shop', 'other'] as const;
const namespace = fc.constantFrom(...namespaces);
const host = fc.constantFrom(
  ...['a.shop', 'b.shop', 'a.other'].flatMap((name) => [name, `${name}.svc`, `${name}.svc.cluster.local`]),
  ...[
    'a',
    'A.Shop',
    'a.shop.svc.cluster.local.',
    'x.example.com',
    '10.0.0.1',
    '2001:DB8::1',
    'a.shop.svc.svc.cluster.local',
  ],
);
const wildcard = fc.constantFrom(
  '*.a.shop.svc.cluster.local',
  '*.a.shop',
  '*.a',
  '*.shop.svc.cluster.local',
  '*.shop',
  '*.com',
);
const anyHost = fc.oneof({ weight: 4, arbitrary: host }, { weight: 1, arbitrary: wildcard });
const address = fc.constantFrom('10.0.0.1', '10.0.0.2', '2001:db8::1', '2001:0DB8::1', '10.0.0.0/24');
const exportTo = fc.oneof(
  { weight: 3, arbitrary: fc.constant<readonly string[]>([]) },
  { weight: 1, arbitrary: fc.constantFrom(['.'], ['shop'], ['other'], ['.', 'other'], ['~']) },
);
const creationTimestamp = fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z');
const name = fc.constantFrom('a', 'b');
const ports = fc.uniqueArray(
  fc.constantFrom(
    { name: 'http', number: 80, protocol: 'HTTP' },
    { name: 'alt', number: 8080, protocol: 'HTTP' },
    { name: 'auto', number: 8080, protocol: '' },
    { name: 'tcp', number: 80, protocol: 'TCP' },
  ),
  { selector: (port) => port.number, minLength: 1, maxLength: 2 },
);

interface Common {
  readonly namespace: string;
  readonly name: string;
  readonly exportTo: readonly string[];
  readonly creationTimestamp: string;
}
const common = { namespace, name, exportTo, creationTimestamp };
const path = (own: Common) => `${own.namespace}/${own.name}`;

const service = fc
  .record({
    ...common,
    ports,
    spec: fc.oneof(
      fc.record({ clusterIP: fc.constantFrom('10.0.0.1', '10.0.0.2') }),
      fc.constant({ clusterIP: 'None' }),
      host.map((externalName) => ({ type: 'ExternalName', externalName })),
    ),
  })
  .map(({ ports: list, spec, ...own }) =>
    objectOf(
      'Service',
      path(own),
      { spec: { ...spec, ports: list.map(({ number, name: port }) => ({ name: port, port: number })) } },
      {
        creationTimestamp: own.creationTimestamp,
        annotations: { 'networking.istio.io/exportTo': own.exportTo.join(',') },
      },
    ),
  );

const entry = fc
  .record({
    ...common,
    hosts: fc.uniqueArray(anyHost, { minLength: 1, maxLength: 2 }),
    addresses: fc.uniqueArray(address, { maxLength: 2 }),
    allocated: fc.boolean(),
    ports: ports.filter((list) => list.every(({ protocol }) => protocol !== 'TCP')),
  })
  .map(({ hosts, addresses, allocated, ports: list, ...own }) =>
    objectOf(
      'ServiceEntry',
      path(own),
      {
        spec: { hosts, addresses, ports: list, resolution: 'STATIC', exportTo: own.exportTo },
        ...(allocated && { status: { addresses: hosts.map((of) => ({ host: of, value: '240.240.0.1' })) } }),
      },
      own,
    ),
  );

const route = fc
  .record({
    ...common,
    hosts: fc.uniqueArray(anyHost, { minLength: 1, maxLength: 3 }),
    to: host,
    gateways: fc.constantFrom(['mesh'], ['mesh', 'shop/gw'], ['shop/gw']),
    match: fc.constantFrom<object[]>(
      [],
      [{ port: 8080 }],
      [{ sourceNamespace: 'shop' }],
      [{ sourceLabels: { app: 'x' } }],
    ),
  })
  .map(({ hosts, to, gateways, match, ...own }) =>
    objectOf(
      'VirtualService',
      path(own),
      {
        spec: { hosts, gateways, exportTo: own.exportTo, http: [{ match, route: [{ destination: { host: to } }] }] },
      },
      own,
    ),
  );

const sidecar = fc
  .record({
    ...common,
    egress: fc.array(
      fc.record({
        hosts: fc.uniqueArray(fc.constantFrom('./*', '*/*', 'other/*', 'shop/a.shop.svc.cluster.local'), {
          minLength: 1,
        }),
        port: fc.constantFrom(
          undefined,
          { number: 8080, name: 'http', protocol: 'HTTP' },
          { number: 7000, name: 'proxy', protocol: 'HTTP_PROXY' },
        ),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  })
  .map(({ egress, ...own }) =>
    objectOf(
      'Sidecar',
      path(own),
      {
        spec: {
          workloadSelector: { labels: { sidecar: 'yes' } },
          egress: egress.map(({ port, hosts }) => (port ? { port, hosts } : { hosts })),
        },
      },
      own,
    ),
  );

const gateway = fc
  .record({ ...common, hosts: fc.uniqueArray(anyHost, { minLength: 1, maxLength: 3 }), redirect: fc.boolean() })
  .map(({ hosts, redirect, ...own }) =>
    objectOf('Gateway', `shop/gw${own.name === 'a' ? '' : '2'}`, {
      spec: {
        servers: [
          {
            port: { number: 80, name: 'http', protocol: 'HTTP' },
            hosts,
            ...(redirect && { tls: { httpsRedirect: true } }),
          },
          { port: { number: 80, name: 'more', protocol: 'HTTP' }, hosts: hosts.map((of) => of.toUpperCase()) },
        ],
      },
    }),
  );

const world: fc.Arbitrary<KubernetesObject[]> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: service },
      { weight: 2, arbitrary: entry },
      { weight: 3, arbitrary: route },
      { weight: 1, arbitrary: sidecar },
      { weight: 1, arbitrary: gateway },
    ),
    { minLength: 2, maxLength: 8, size: 'max' },
  )
  .map((objects) => {
    const byName = new Map(objects.map((object) => [`${object.kind} ${path(object.metadata as Common)}`, object]));
    return [...byName.values()];
  });

/** All kinds of tables: of ports, of HTTP proxies, of single services, of Sidecars, of Gateways. */
const nodes: readonly EnvoyNode[] = [
  ...['shop', 'other', 'third'].flatMap((own) => {
    const node = (more: object, ips = '10.1.0.1'): EnvoyNode => ({
      id: `sidecar~10.1.0.1~client.${own}~${own}.svc.cluster.local`,
      metadata: { NAMESPACE: own, INSTANCE_IPS: ips, ...more },
    });
    return [
      node({ LABELS: { app: 'x' } }),
      node({ DNS_CAPTURE: 'true', HTTP_PROXY_PORT: '15080' }, '10.1.0.1,fd00::1'),
      node({ LABELS: { sidecar: 'yes', app: 'x' } }),
    ];
  }),
  { id: 'router~10.1.0.2~router.shop~shop.svc.cluster.local', metadata: { NAMESPACE: 'shop' } },
];

const checkSound = createCheckSound();

// fast-check prints the seed of a world that fails.
test('whoever wants a domain, in a table it is there once', () => {
  fc.assert(
    fc.property(world, (objects) => {
      const mesh = new TestMesh({ oracle: false });
      mesh.apply(objects);
      for (const [i, node] of nodes.entries()) mesh.connect(connectedProxy(`proxy-${i}`, node));
      const faults = nodes.flatMap((_, i) =>
        checkSound(mesh.snapshot(`proxy-${i}`)).map((line) => `proxy-${i}: ${line}`),
      );
      expect(faults).toEqual([]);
    }),
    { numRuns: runs(60) },
  );
});
