import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EnvoyNode, TestMesh, connectedProxy } from '../../../test/harness/mesh.ts';
import { objectOf } from '../../../test/harness/lab.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { egressImports, egressImportsRoutes, type EgressHost } from '../../model/sidecar.ts';
import { runs } from '../../testing/runs.ts';

// Few names, so that worlds are full of objects that meet.
const namespaces = ['shop', 'other', 'third'] as const;
const svc = (name: string, namespace: string) => `${name}.${namespace}.svc.cluster.local`;
const serviceHosts = ['a', 'b'].flatMap((name) => namespaces.map((namespace) => svc(name, namespace)));
const entryHosts = ['a.partner.example', 'x-a.partner.example', 'b.sub.partner.example', '*.sub.partner.example'];
const wildcards = ['*.partner.example', '*-a.partner.example', '*.sub.partner.example', '*.shop.svc.cluster.local'];
const anyHost = fc.oneof(
  fc.constantFrom(...entryHosts),
  fc.constantFrom(...serviceHosts),
  fc.constantFrom(...wildcards),
  fc.constantFrom('new.example', 'a.shop'),
);
const exportTo = fc.oneof(
  fc.constant<readonly string[]>([]),
  fc.constantFrom(['.'], ['shop'], ['other'], ['.', 'other'], ['~']),
);
const common = {
  namespace: fc.constantFrom(...namespaces),
  name: fc.constantFrom('a', 'b'),
  exportTo,
  creationTimestamp: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'),
};
interface Common {
  readonly namespace: string;
  readonly name: string;
  readonly exportTo: readonly string[];
  readonly creationTimestamp: string;
}
const path = (own: Pick<Common, 'namespace' | 'name'>) => `${own.namespace}/${own.name}`;
const portNumber = fc.constantFrom(80, 8080, 9000);
const ports = fc.uniqueArray(
  fc.record({ number: portNumber, protocol: fc.constantFrom('HTTP', 'HTTP', 'TCP', 'TLS', '') }),
  { selector: (port) => port.number, minLength: 1, maxLength: 2 },
);

const service = fc
  .record({
    ...common,
    ports,
    spec: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom<object>({ clusterIP: '10.0.0.1' }, { clusterIP: '10.0.0.2' }) },
      { weight: 1, arbitrary: fc.constant<object>({ clusterIP: 'None' }) },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom(...serviceHosts, 'a.partner.example')
          .map((externalName): object => ({ type: 'ExternalName', externalName })),
      },
    ),
  })
  .map(({ ports: list, spec, ...own }) =>
    objectOf(
      'Service',
      path(own),
      {
        spec: {
          ...spec,
          ports: list.map(({ number, protocol }) => ({
            name: `${protocol.toLowerCase() || 'auto'}-${number}`,
            port: number,
          })),
        },
      },
      {
        creationTimestamp: own.creationTimestamp,
        annotations: { 'networking.istio.io/exportTo': own.exportTo.join(',') },
      },
    ),
  );

const entry = fc
  .record({ ...common, hosts: fc.uniqueArray(fc.constantFrom(...entryHosts), { minLength: 1, maxLength: 2 }), ports })
  .map(({ hosts, ports: list, ...own }) =>
    objectOf(
      'ServiceEntry',
      path(own),
      {
        spec: {
          hosts,
          ports: list.map(({ number, protocol }) => ({ number, protocol, name: `p${number}` })),
          resolution: hosts.some((host) => host.startsWith('*')) ? 'NONE' : 'STATIC',
          ...(!hosts.some((host) => host.startsWith('*')) && { endpoints: [{ address: '192.0.2.1' }] }),
          exportTo: own.exportTo,
        },
      },
      { creationTimestamp: own.creationTimestamp },
    ),
  );

const destination = fc.oneof(
  fc.constantFrom(...serviceHosts).map((host): object => ({ host })),
  fc.constantFrom('a.partner.example', 'x-a.partner.example').map((host): object => ({ host })),
  fc.record({ host: fc.constantFrom(svc('a', 'shop'), svc('b', 'other')), subset: fc.constant('v1') }),
  fc.record({ host: fc.constantFrom('a.partner.example'), port: fc.record({ number: portNumber }) }),
);
const match = fc.constantFrom<object[]>(
  [],
  [],
  [{ port: 8080 }],
  [{ sourceNamespace: 'shop' }],
  [{ sourceLabels: { app: 'x' } }],
);
const route = fc
  .record({
    ...common,
    hosts: fc.uniqueArray(anyHost, { minLength: 1, maxLength: 3 }),
    to: destination,
    match,
    kind: fc.constantFrom('http', 'http', 'http', 'delegate', 'tcp', 'tls'),
  })
  .map(({ hosts, to, match: matches, kind, ...own }) => {
    const routes = [{ destination: to }];
    const spec =
      kind === 'delegate'
        ? { http: [{ match: matches, delegate: { name: 'delegate', namespace: 'other' } }] }
        : kind === 'tcp'
          ? { tcp: [{ route: routes }] }
          : kind === 'tls'
            ? { tls: [{ match: [{ sniHosts: hosts }], route: routes }] }
            : { http: [{ match: matches, route: routes }] };
    return objectOf(
      'VirtualService',
      path(own),
      { spec: { hosts, exportTo: own.exportTo, ...spec } },
      { creationTimestamp: own.creationTimestamp },
    );
  });
const delegate = destination.map((to) =>
  objectOf('VirtualService', 'other/delegate', { spec: { http: [{ route: [{ destination: to }] }] } }),
);

const rule = fc
  .record({
    ...common,
    host: anyHost,
    policy: fc.constantFrom<object>(
      { tls: { mode: 'SIMPLE' } },
      { loadBalancer: { consistentHash: { httpHeaderName: 'x-user' } } },
      { connectionPool: { tcp: { maxConnections: 3 } } },
    ),
    subsets: fc.boolean(),
    selector: fc.boolean(),
  })
  .map(({ host, policy, subsets, selector, ...own }) =>
    objectOf(
      'DestinationRule',
      path(own),
      {
        spec: {
          host,
          trafficPolicy: policy,
          exportTo: own.exportTo,
          ...(subsets && { subsets: [{ name: 'v1', labels: { version: 'v1' } }] }),
          ...(selector && { workloadSelector: { matchLabels: { app: 'x' } } }),
        },
      },
      { creationTimestamp: own.creationTimestamp },
    ),
  );

const sidecar = fc
  .record({
    namespace: common.namespace,
    hosts: fc.uniqueArray(
      fc.constantFrom(
        ...['./*', '*/*', 'other/*', 'shop/*', '~other/*', '~*/a.partner.example'],
        ...['*/*.partner.example', 'shop/a.partner.example', `shop/${svc('a', 'shop')}`, '*/*.sub.partner.example'],
      ),
      { minLength: 1, maxLength: 3 },
    ),
  })
  .map(({ namespace, hosts }) =>
    objectOf('Sidecar', `${namespace}/egress`, {
      spec: { workloadSelector: { labels: { sidecar: 'yes' } }, egress: [{ hosts }] },
    }),
  );

const world = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: service },
      { weight: 4, arbitrary: entry },
      { weight: 4, arbitrary: route },
      { weight: 1, arbitrary: delegate },
      { weight: 3, arbitrary: rule },
      { weight: 2, arbitrary: sidecar },
    ),
    { minLength: 2, maxLength: 9, size: 'max' },
  )
  .map((objects) => {
    const named = objects.map((object): [string, KubernetesObject] => [`${object.kind} ${nameOf(object)}`, object]);
    return [...new Map(named).values()];
  });

const nameOf = ({ metadata }: KubernetesObject) => path({ namespace: '', ...metadata });

interface Client {
  readonly stream: string;
  readonly namespace: string;
  readonly hasSidecar: boolean;
  readonly node: EnvoyNode;
}

const clients: readonly Client[] = namespaces.flatMap((namespace) =>
  [{ app: 'x' }, { sidecar: 'yes' }].map((labels, i): Client => {
    const stream = `client-${i}.${namespace}`;
    const id = `sidecar~10.1.0.1~${stream}~${namespace}.svc.cluster.local`;
    const metadata = { NAMESPACE: namespace, INSTANCE_IPS: '10.1.0.1', LABELS: labels, HTTP_PROXY_PORT: '15080' };
    return { stream, namespace, hasSidecar: 'sidecar' in labels, node: { id, metadata } };
  }),
);

interface Spec {
  readonly hosts?: readonly string[];
  readonly host?: string;
  readonly exportTo?: readonly string[];
  readonly egress?: readonly [{ readonly hosts: readonly string[] }];
  readonly workloadSelector?: object;
  readonly externalName?: string;
}
const specOf = (object: KubernetesObject): Spec => (object as unknown as { readonly spec: Spec }).spec;
const namespaceOf = ({ metadata }: KubernetesObject): string => metadata.namespace ?? '';
const isDelegate = (object: KubernetesObject) => object.kind === 'VirtualService' && specOf(object).hosts === undefined;
const isService = ({ kind }: KubernetesObject) => kind === 'Service' || kind === 'ServiceEntry';

function hostsOf(object: KubernetesObject): readonly string[] {
  if (object.kind === 'Service') return [svc(object.metadata.name, namespaceOf(object))];
  return specOf(object).hosts ?? [];
}

function isExported(object: KubernetesObject, namespace: string): boolean {
  const annotation = object.metadata.annotations?.['networking.istio.io/exportTo'];
  const targets = annotation === undefined ? (specOf(object).exportTo ?? []) : annotation.split(',').filter(Boolean);
  return (
    targets.length === 0 ||
    targets.some((target) => target === namespace || (target === '.' && namespaceOf(object) === namespace))
  );
}

/** Everything that a client can see neither by `exportTo` nor because of its Sidecar. */
function hiddenFrom(client: Client, objects: readonly KubernetesObject[]): KubernetesObject[] {
  const { namespace } = client;
  const own = client.hasSidecar
    ? objects.find((object) => object.kind === 'Sidecar' && namespaceOf(object) === namespace)
    : undefined;
  const egress = (own && specOf(own).egress)?.[0].hosts.map((text): EgressHost => {
    const [target = '', host = ''] = text.replace('~', '').split('/');
    return { namespace: target, host, excluded: text.startsWith('~') };
  });
  const hidden = new Set(
    objects.filter((object) => {
      if (object.kind === 'Sidecar') return object !== own;
      return !isDelegate(object) && namespaceOf(object) !== namespace && !isExported(object, namespace);
    }),
  );
  // Routes that are not imported, then services that are not imported and that no route or name leads to.
  const imports = (object: KubernetesObject): boolean => {
    if (egress === undefined) return true;
    const at = { namespace: namespaceOf(object), hosts: hostsOf(object) };
    if (object.kind === 'VirtualService') return egressImportsRoutes(egress, namespace, at);
    // Another name for a service comes with that service.
    if (specOf(object).externalName !== undefined) return true;
    return at.hosts.some((host) => egressImports(egress, namespace, { namespace: at.namespace, host }));
  };
  for (const object of objects)
    if (object.kind === 'VirtualService' && !isDelegate(object) && !imports(object)) hidden.add(object);
  const texts = objects
    .filter((object) => !hidden.has(object) && (object.kind === 'VirtualService' || object.kind === 'Service'))
    .map((object) => JSON.stringify(specOf(object)));
  for (const object of objects)
    if (isService(object) && !imports(object) && !hostsOf(object).some((host) => texts.some((it) => it.includes(host))))
      hidden.add(object);
  // Claims of one host in one namespace are one service.
  for (const object of objects)
    if (
      isService(object) &&
      objects.some(
        (other) =>
          !hidden.has(other) &&
          isService(other) &&
          namespaceOf(other) === namespaceOf(object) &&
          hostsOf(other).some((host) => hostsOf(object).includes(host)),
      )
    )
      hidden.delete(object);
  return [...hidden];
}

// fast-check prints the seed of a world that fails.
test('what a client cannot see changes nothing for it', () => {
  fc.assert(
    fc.property(world, (objects) => {
      const mesh = new TestMesh({ oracle: false });
      mesh.apply(objects);
      for (const { stream, node } of clients) mesh.connect(connectedProxy(stream, node));
      for (const client of clients) {
        const hidden = hiddenFrom(client, objects);
        if (hidden.length === 0) continue;
        const before = versionsOf(mesh, client);
        mesh.delete(hidden);
        const changed = difference(before, versionsOf(mesh, client));
        mesh.apply(hidden);
        if (changed.length > 0)
          expect({ client: client.stream, hidden: hidden.map((o) => `${o.kind} ${nameOf(o)}`), changed }).toEqual({});
      }
    }),
    { numRuns: runs(160) },
  );
});

function versionsOf(mesh: TestMesh, { stream }: Client): Map<string, string> {
  const { cds, eds, lds, rds } = mesh.snapshot(stream);
  return new Map(
    [...cds, ...eds, ...lds, ...rds].map(({ typeUrl, name, version }) => [
      `${typeUrl.slice(typeUrl.lastIndexOf('.') + 1)} ${name}`,
      version,
    ]),
  );
}

function difference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key));
}
