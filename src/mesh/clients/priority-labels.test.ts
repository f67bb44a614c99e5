import { expect, test } from 'vitest';
import { TestMesh } from '../../../test/harness/mesh.ts';
import { MeshLab, objectOf, proxy, rule, service, slice } from '../../../test/harness/lab.ts';

const preferring = (...failoverPriority: string[]) =>
  rule('shop/r', 'a', {
    trafficPolicy: { loadBalancer: { localityLbSetting: { failoverPriority } }, outlierDetection: {} },
  });

test('proxies look from different places where a priority compares their labels, not where it names the value', () => {
  const lab = new MeshLab(
    [service('shop/a'), preferring('tier=gold')],
    [proxy('x.c', { tier: 'gold' }), proxy('y.c', { tier: 'tin' }), proxy('z.c', { tier: 'tin', other: 'z' })],
  );
  expect(lab.size('topologies')).toBe(1);
  lab.apply([preferring('tier')]);
  expect(lab.size('topologies')).toBe(2);
});

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const addresses = (count: number) => many(count, (i) => `10.2.${i >> 8}.${i & 255}`);
const problemsOf = (lab: TestMesh): string[] =>
  [...lab.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems.map(({ object, field, reason }) => `${object.kind} ${object.namespace}/${object.name} ${field} ${reason}`),
  );
/** That differ in the label. */
const proxies = (count: number) => many(count, (i) => proxy(`x${i}.c`, { pod: `x${i}` }));

test('assignments for proxies that differ in a label are made in small steps', () => {
  const lab = new MeshLab(
    [service('shop/a'), slice('shop/a', ...addresses(300)), preferring('pod')],
    [...proxies(200), proxy('other.c')],
  );
  expect(lab.size('places')).toBe(1);
  // One for each place, with 300 endpoints for the host and for its subset.
  expect(lab.size('more assignmentSets')).toBe(201);
  expect(problemsOf(lab)).toEqual([]);
  for (const stream of ['x0.c', 'x199.c', 'other.c']) expect(lab.faults(stream)).toEqual([]);
});

test('of proxies and endpoints whose product is too large labels are not compared, and the owner of the rule is told', () => {
  const host = objectOf('DestinationRule', 'shop/r', {
    spec: {
      host: 'a',
      trafficPolicy: { loadBalancer: { localityLbSetting: { failoverPriority: ['pod'] } }, outlierDetection: {} },
    },
  });
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([service('shop/a'), slice('shop/a', ...addresses(4000)), host]);
  mesh.commit(proxies(126).map((one) => mesh.mesh.inputs.proxies.write(one.stream, one)));
  expect(problemsOf(mesh)).toEqual([
    'DestinationRule shop/r spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority Ineffective',
  ]);
  expect(mesh.snapshot('x2.c').eds).toHaveLength(1);
  mesh.disconnect('x0.c');
  mesh.disconnect('x1.c');
  expect(problemsOf(mesh)).toEqual([]);
  expect(mesh.snapshot('x2.c').eds).toHaveLength(1);
});

test('of services and proxies whose product is too large labels are not compared, though one rule is for all of them', () => {
  const entries = many(401, (i) =>
    objectOf('ServiceEntry', `shop/s${i}`, {
      spec: {
        hosts: [`s${i}.example.com`],
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        resolution: 'STATIC',
        endpoints: [{ address: `10.3.${i >> 8}.${i & 255}` }],
      },
    }),
  );
  const wildcard = rule('shop/r', '*.example.com', {
    trafficPolicy: { loadBalancer: { localityLbSetting: { failoverPriority: ['pod'] } }, outlierDetection: {} },
  });
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([...entries, wildcard]);
  const { proxies: input } = mesh.mesh.inputs;
  const all = proxies(250);
  mesh.commit(all.map((one) => input.write(one.stream, one)));
  expect(mesh.mesh.proxies.size).toBe(250);
  const tooMany =
    'DestinationRule shop/r spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority Ineffective';
  expect(problemsOf(mesh)).toEqual([tooMany]);
  expect(mesh.snapshot('x2.c').eds).toHaveLength(802);
  mesh.commit(all.slice(10).map((one) => input.write(one.stream, undefined)));
  expect(problemsOf(mesh)).toEqual([]);
  expect(mesh.snapshot('x2.c').eds).toHaveLength(802);
});

test('of localities and endpoints whose product is too large none is near, and the owner of the rule is told', () => {
  const near = objectOf('DestinationRule', 'shop/r', {
    spec: {
      host: 'a',
      trafficPolicy: { loadBalancer: { localityLbSetting: { enabled: true } }, outlierDetection: {} },
    },
  });
  const mesh = new TestMesh({ oracle: false });
  mesh.apply([service('shop/a'), slice('shop/a', ...addresses(4000)), near]);
  const at = (i: number) => ({ ...proxy(`x${i}.c`), locality: { region: `r${i}`, zone: '', subZone: '' } });
  mesh.commit(many(126, at).map((one) => mesh.mesh.inputs.proxies.write(one.stream, one)));
  expect(problemsOf(mesh)).toEqual([
    'DestinationRule shop/r spec.trafficPolicy.loadBalancer.localityLbSetting Ineffective',
  ]);
  mesh.disconnect('x0.c');
  expect(problemsOf(mesh)).toEqual([]);
});

test('subsets of a host hold 500,000 endpoints together, and the owner of the rule is told', () => {
  const subsets = many(200, (i) => ({ name: `v${i}`, labels: {} }));
  const all = objectOf('DestinationRule', 'shop/r', { spec: { host: 'a', subsets } });
  const mesh = new TestMesh({ oracle: false });
  mesh.connect(proxy('x.c'));
  mesh.apply([service('shop/a'), slice('shop/a', ...addresses(3000)), all]);
  expect(problemsOf(mesh)).toEqual(['DestinationRule shop/r spec.subsets Ineffective']);
  const lengths = mesh.snapshot('x.c').eds.map(({ body }) => body.length);
  const [host = 0, ...others] = lengths.sort((a, b) => b - a);
  // 2487 of 3000
  expect(others[0]! / host).toBeCloseTo(2487 / 3000, 2);
});

test('20 labels are compared at most', () => {
  const lab = new MeshLab([service('shop/a'), preferring(...many(21, (i) => `l${i}`))]);
  expect(problemsOf(lab)).toEqual([
    'DestinationRule shop/r spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority Invalid',
  ]);
});
