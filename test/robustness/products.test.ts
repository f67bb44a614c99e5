import { expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../src/api/object.ts';
import { Derived } from '../../src/cache/derived.ts';
import { types } from '../../src/envoy/encode/proto-types.ts';
import { testProtos } from '../harness/mesh.ts';
import { objectsWithProducts, objectsBeyondLimits, rangesOf } from './large-products.ts';
import { servedBeside } from './large-objects.ts';

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

function custom(kind: string, spec: object): KubernetesObject {
  const metadata = { name: 'large', namespace: 'shop' };
  return { apiVersion: 'networking.istio.io/v1', kind, metadata, spec } as KubernetesObject;
}

const serviceOf = (name: string, ports: number) =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop' },
    spec: { clusterIP: '10.96.1.3', ports: many(ports, (i) => ({ name: `http-${i}`, port: 80 + i })) },
  }) as KubernetesObject;

const wideService = serviceOf('wide', 50);

const routesOf = (hosts: readonly string[], routes: number) =>
  custom('VirtualService', {
    hosts,
    http: many(routes, (i) => ({ match: [{ uri: { prefix: `/${i}/` } }], route: [{ destination: { host: 'a' } }] })),
  });

interface Work {
  /** Most of anything that one step makes or reads. */
  readonly outputs: number;
  readonly reads: number;
  readonly routes: number;
  readonly allRoutes: number;
}

/** What the steps of a mesh with the objects come to. */
function workOf(...objects: readonly KubernetesObject[]): Work {
  const work = { outputs: 0, reads: 0, routes: 0, allRoutes: 0 };
  const protos = testProtos();
  const runs = Derived.prototype as unknown as { execute(key: string, causes: unknown): Map<string, unknown> };
  const recorder = Derived.prototype as unknown as {
    keepReads(run: { reads: readonly unknown[] }, failed: boolean): void;
  };
  const { execute } = runs;
  const { keepReads } = recorder;
  const { encode } = protos;
  let routes = 0;
  protos.encode = (name, message) => {
    const { virtualHosts = [message] } = message as { virtualHosts?: readonly { routes?: readonly unknown[] }[] };
    if (name === types.virtualHost || name === types.route)
      for (const { routes: own = [] } of virtualHosts as readonly { routes?: readonly unknown[] }[])
        routes += own.length;
    return encode(name, message);
  };
  runs.execute = function (key, causes) {
    routes = 0;
    const outputs = execute.call(this, key, causes);
    work.outputs = Math.max(work.outputs, outputs.size);
    work.routes = Math.max(work.routes, routes);
    work.allRoutes += routes;
    return outputs;
  };
  recorder.keepReads = function (run, failed) {
    keepReads.call(this, run, failed);
    work.reads += run.reads.length;
  };
  try {
    const mesh = servedBeside(...objects);
    expect([...mesh.mesh.problems.byObject.entries()]).toEqual([]);
  } finally {
    Object.assign(runs, { execute });
    Object.assign(recorder, { keepReads });
    protos.encode = encode;
  }
  return work;
}

test('routes of a VirtualService are made in small steps, once for all ports of one number, hosts and tables', () => {
  const one = workOf(routesOf(['h0.example.com'], 10_000));
  expect(one.routes).toBeLessThanOrEqual(500);
  expect(one.allRoutes).toBeGreaterThanOrEqual(10_000);
  const hundred = workOf(
    routesOf(
      many(100, (i) => `h${i}.example.com`),
      1000,
    ),
  );
  expect(hundred.routes).toBeLessThanOrEqual(500);
  // For clients of its namespace, and for all others; beside those of Services.
  expect(hundred.allRoutes).toBeLessThanOrEqual(2 * 1000 + 10);
});

test('a VirtualService for a Service of many ports is a step for each port, in pieces', () => {
  const work = workOf(wideService, routesOf(['wide'], 1000));
  expect(work.routes).toBeLessThanOrEqual(500);
});

test('what hosts of a VirtualService look at grows with their number, not with its square', () => {
  const [few, twice] = [300, 600].map(
    (count) =>
      workOf(
        routesOf(
          many(count, (i) => `h${i}.example.com`),
          1,
        ),
      ).reads,
  );
  expect(twice! / few!).toBeLessThan(2.5);
});

/** How many elements are looked at to find something out about lists. */
function visitsOf(object: KubernetesObject): number {
  let visits = 0;
  const counted = (name: 'find' | 'every') => {
    const original = Array.prototype[name] as (this: unknown[], test: (...args: unknown[]) => unknown) => unknown;
    return vi.spyOn(Array.prototype, name).mockImplementation(function (this: unknown[], test) {
      return original.call(this, (...args) => {
        visits++;
        return test(...(args as Parameters<typeof test>));
      }) as never;
    });
  };
  const spies = [counted('find'), counted('every')];
  try {
    servedBeside(object);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return visits;
}

test.each<[string, (size: number) => KubernetesObject]>([
  ['hosts that share ranges', (size) => rangesOf(size, 25, 1, 'TCP')],
  ['ranges of a host', (size) => rangesOf(1, 10 * size, 1, 'TCP')],
])('what is looked at for %s grows with their number, not with its square', (_, objectOf) => {
  const [few, twice] = [40, 80].map((size) => visitsOf(objectOf(size)));
  expect(twice! / few!).toBeLessThan(2.5);
});

test('subsets are a step for each port of the Service', () => {
  const subsets = many(100, (i) => ({ name: `v${i}`, labels: { version: `v${i}` } }));
  const work = workOf(wideService, custom('DestinationRule', { host: 'wide', subsets }));
  expect(work.outputs).toBeLessThanOrEqual(101);
});

const subsetsOf = (count: number, name = 'v') =>
  many(count, (i) => ({ name: `${name}${i}`, labels: { version: `v${i}` } }));
const named = (name: string, object: KubernetesObject): KubernetesObject => ({
  ...object,
  metadata: { ...object.metadata, name },
});

test('of the subsets of a Service of many ports the first 10,000 clusters count, for routes as well', () => {
  const to = (i: number, prefix: string) => ({
    match: [{ uri: { prefix } }],
    route: [{ destination: { host: 'wide', subset: `v${i}` } }],
  });
  const mesh = servedBeside(
    wideService,
    custom('DestinationRule', { host: 'wide', subsets: subsetsOf(1000) }),
    custom('VirtualService', { hosts: ['wide'], http: [to(199, '/last'), to(200, '/beyond')] }),
  );
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems.map(({ object, field, reason }) => `${object.kind} ${field} ${reason}`).sort()).toEqual([
    'DestinationRule spec.subsets Ineffective',
    'VirtualService spec.http[1].route[0].destination.subset RefNotFound',
  ]);
  const { cds, rds } = mesh.snapshot('sidecar');
  const clusters = new Set(cds.map(({ name }) => name).filter((name) => name.includes('|v')));
  expect(clusters.size).toBe(10_000);
  const routed = [...JSON.stringify(rds).matchAll(/outbound\|\d+\|v\d+\|[a-z.]+/g)].map(([name]) => name);
  expect(new Set(routed).size).toBe(50);
  expect(routed.filter((name) => !clusters.has(name))).toEqual([]);
});

test('rules for one wildcard host add 10 subsets to each of its hosts', () => {
  const wildcard = (name: string) =>
    named(name, custom('DestinationRule', { host: '*.example.com', subsets: subsetsOf(10, name) }));
  const mesh = servedBeside(
    wildcard('a'),
    wildcard('b'),
    custom('ServiceEntry', {
      hosts: many(20, (i) => `h${i}.example.com`),
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      resolution: 'NONE',
    }),
  );
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems).toMatchObject([{ object: { name: 'b' }, field: 'spec.subsets', reason: 'Conflicted' }]);
  expect(mesh.snapshot('sidecar').cds.filter(({ name }) => name.endsWith('.example.com'))).toHaveLength(20 * 11);
});

const sizesOf = (mesh: ReturnType<typeof servedBeside>, key: string): number[] => {
  const found = mesh.json('sidecar').cds.map((cluster) => JSON.stringify(cluster));
  return [...found.join().matchAll(new RegExp(`"${key}":"?(\\d+)`, 'g'))].map(([, size]) => Number(size));
};
const hashed = (ring: object) => ({ loadBalancer: { consistentHash: { useSourceIp: true, ...ring } } });
const problemsOf = (mesh: ReturnType<typeof servedBeside>) =>
  [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);

test('rings of all ports and subsets of a Service have five million places together', () => {
  const ring = hashed({ ringHash: { minimumRingSize: 1_000_000 } });
  const mesh = servedBeside(
    wideService,
    custom('DestinationRule', { host: 'wide', trafficPolicy: ring, subsets: subsetsOf(1) }),
  );
  expect(problemsOf(mesh)).toMatchObject([{ field: 'spec.subsets', reason: 'Ineffective' }]);
  expect(new Set(sizesOf(mesh, 'minimumRingSize'))).toEqual(new Set([50_000]));
  const few = servedBeside(custom('DestinationRule', { host: 'a', trafficPolicy: ring, subsets: subsetsOf(3) }));
  expect(problemsOf(few)).toEqual([]);
  expect(new Set(sizesOf(few, 'minimumRingSize'))).toEqual(new Set([1_000_000]));
});

test('tables of which nobody wrote the size count, too', () => {
  const mesh = servedBeside(
    wideService,
    custom('DestinationRule', { host: 'wide', trafficPolicy: hashed({ maglev: {} }), subsets: subsetsOf(9) }),
  );
  expect(problemsOf(mesh)).toMatchObject([{ field: 'spec.subsets', reason: 'Ineffective' }]);
  // The largest prime below 5,000,010 / 500.
  expect(new Set(sizesOf(mesh, 'tableSize'))).toEqual(new Set([9973]));
});

test('hosts of a ServiceEntry that a wildcard covers share the places', () => {
  const mesh = servedBeside(
    custom('DestinationRule', {
      host: '*.example.com',
      trafficPolicy: hashed({ ringHash: { minimumRingSize: 1_000_000 } }),
    }),
    custom('ServiceEntry', {
      hosts: many(20, (i) => `h${i}.example.com`),
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      resolution: 'STATIC',
      endpoints: [{ address: '192.0.2.1' }],
    }),
  );
  expect(problemsOf(mesh)).toMatchObject([{ field: 'spec.trafficPolicy', reason: 'Ineffective' }]);
  expect(new Set(sizesOf(mesh, 'minimumRingSize'))).toEqual(new Set([250_000]));
});

test('of the ports of a Service the first 1,000 count', () => {
  const ports = many(1200, (i) => ({ name: `http-${i}`, port: 1000 + i }));
  const mesh = servedBeside({ ...wideService, spec: { clusterIP: '10.96.1.3', ports } } as KubernetesObject);
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems).toMatchObject([{ object: { name: 'wide' }, field: 'spec.ports', reason: 'Ineffective' }]);
  const clusters = mesh.snapshot('sidecar').cds.filter(({ name }) => name.includes('wide'));
  expect(clusters).toHaveLength(1000);
});

test('the ServiceEntries of a host have 1,000 ports together', () => {
  const entry = (name: string, from: number) =>
    named(
      name,
      custom('ServiceEntry', {
        hosts: ['h.example.com'],
        ports: many(600, (i) => ({ number: from + i, name: `p-${from + i}`, protocol: 'HTTP' })),
        resolution: 'NONE',
      }),
    );
  const mesh = servedBeside(entry('a', 1000), entry('b', 2000), entry('c', 1400));
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems).toMatchObject([{ object: { name: 'b' }, field: 'spec.hosts', reason: 'Conflicted' }]);
  const clusters = mesh.snapshot('sidecar').cds.filter(({ name }) => name.endsWith('h.example.com'));
  expect(clusters).toHaveLength(1000);
});

test('the ServiceEntries of a host have 10,000 addresses × ports together', () => {
  const entry = (name: string, from: number) =>
    named(
      name,
      custom('ServiceEntry', {
        hosts: ['h.example.com'],
        addresses: many(150, (i) => `192.0.${from}.${i}`),
        ports: many(30, (i) => ({ number: from * 100 + i, name: `p-${from * 100 + i}`, protocol: 'TCP' })),
        resolution: 'STATIC',
        endpoints: [{ address: '198.51.100.1' }],
      }),
    );
  const mesh = servedBeside(entry('a', 10), entry('b', 20));
  expect(problemsOf(mesh)).toMatchObject([{ object: { name: 'b' }, field: 'spec.hosts', reason: 'Conflicted' }]);
  expect(mesh.snapshot('sidecar').lds.filter(({ name }) => name.startsWith('192.0.'))).toHaveLength(150 * 30);
});

test.each(objectsBeyondLimits())('%s is told the limit, and makes nothing', (_, object, field) => {
  const mesh = servedBeside(object);
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems.map((problem) => [problem.reason, problem.field])).toContainEqual(['Invalid', field]);
  expect(problems.find((problem) => problem.field === field)?.message).toMatch(/at most [\d_]+/);
  // Beside those of the two Services and of every proxy.
  expect(mesh.snapshot('sidecar').cds.length).toBeLessThanOrEqual(1010);
});

test.each<[string, readonly KubernetesObject[], string]>([
  [
    'a slice of 1,000 endpoints and 100 ports',
    [
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'a-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'a' } },
        addressType: 'IPv4',
        endpoints: many(1000, (i) => ({ addresses: [`10.0.${i >> 8}.${i & 255}`] })),
        ports: many(100, (i) => ({ name: i === 0 ? 'http' : `p-${i}`, port: 80 + i })),
      } as KubernetesObject,
    ],
    'endpoints',
  ],
  [
    'Endpoints of 1,000 addresses and 100 ports',
    [
      {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'a', namespace: 'shop' },
        subsets: [
          {
            addresses: many(1000, (i) => ({ ip: `10.0.${i >> 8}.${i & 255}` })),
            ports: many(100, (i) => ({ name: i === 0 ? 'http' : `p-${i}`, port: 80 + i })),
          },
        ],
      } as KubernetesObject,
    ],
    'subsets',
  ],
  [
    'a ServiceEntry of 1,000 ports that selects 50 workloads',
    [
      custom('ServiceEntry', {
        hosts: ['h.example.com'],
        ports: many(1000, (i) => ({ number: 1000 + i, name: `p-${i}`, protocol: 'HTTP' })),
        resolution: 'STATIC',
        workloadSelector: { labels: { app: 'a' } },
      }),
      ...many(50, (i) => {
        const entry = custom('WorkloadEntry', { address: `10.0.0.${i}`, labels: { app: 'a' } });
        return { ...entry, metadata: { ...entry.metadata, name: `w-${i}` } };
      }),
    ],
    'spec.workloadSelector',
  ],
])('of the endpoints of %s the first 40,000 count', (_, objects, field) => {
  const mesh = servedBeside(...objects);
  const problems = [...mesh.mesh.problems.byObject.entries()].flatMap(([, found]) => found);
  expect(problems).toMatchObject([{ reason: 'Ineffective', field }]);
  const encoded = mesh.graph.collections.find(({ name }) => name === 'encodedEndpoints')!.entries();
  expect(Array.from(encoded, ([, list]) => (list as { endpoints: unknown[] }).endpoints.length)).toEqual([40_000]);
});

test.each(objectsWithProducts())('%s is possible', (_, object) => {
  const mesh = servedBeside(serviceOf('twenty', 20), object);
  expect([...mesh.mesh.problems.byObject.entries()]).toEqual([]);
});
