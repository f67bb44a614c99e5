import { expect, test } from 'vitest';
import { connectedProxy } from '../../../test/harness/mesh.ts';
import { MeshLab, objectOf, proxy, service } from '../../../test/harness/lab.ts';

const entry = (endpoints: object[], spec: object = {}, namespace = 'shop') =>
  objectOf('ServiceEntry', `${namespace}/e`, {
    spec: {
      hosts: ['x.example.com'],
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      resolution: 'STATIC',
      endpoints,
      ...spec,
    },
  });
const admin = { address: '127.0.0.1', ports: { http: 15000 } };
const router = (namespace: string) =>
  connectedProxy(`gw.${namespace}`, {
    id: `router~10.9.0.1~gw.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, INSTANCE_IPS: '10.9.0.1', LABELS: {} },
  });

const clients = [proxy('a.shop'), proxy('a.other'), router('shop'), router('edge')];

/** Clients that have an endpoint at loopback or a socket. */
function reaching(lab: MeshLab): string[] {
  return clients
    .map(({ stream }) => stream)
    .filter((stream) => /"127\.0\.0\.1"|"\/var\/run\/a\.sock"/.test(JSON.stringify(lab.json(stream).eds)));
}

const problemsOf = (lab: MeshLab): string[] =>
  [...lab.mesh.problems.byObject.entries()].flatMap(([, problems]) =>
    problems.map(({ object, field, reason }) => `${object.kind} ${field} ${reason}`),
  );

test.each([admin, { address: 'unix:///var/run/a.sock' }])(
  'an endpoint that is the proxy of the client is for clients of its own namespace: %o',
  (endpoint) => {
    const lab = new MeshLab([service('edge/a'), entry([endpoint])], clients);
    expect(reaching(lab)).toEqual(['a.shop', 'gw.shop']);
    expect(problemsOf(lab)).toEqual(['ServiceEntry spec.endpoints[0].address Ineffective']);
  },
);

test('an entry that joins one which others see takes the host from them', () => {
  const older = entry([{ address: '10.3.0.1' }]);
  const younger = { ...entry([admin]), metadata: { namespace: 'shop', name: 'younger' } };
  const lab = new MeshLab([older, younger], clients);
  expect(reaching(lab)).toEqual(['a.shop', 'gw.shop']);
});

test('an endpoint elsewhere at loopback is for all who see the entry', () => {
  const lab = new MeshLab([entry([{ address: '127.0.0.1', ports: { http: 9080 } }])], clients);
  expect(reaching(lab)).toEqual(clients.map(({ stream }) => stream));
  expect(problemsOf(lab)).toEqual([]);
});

test('the root namespace may have one for all', () => {
  const lab = new MeshLab([entry([admin], {}, 'istio-system')], clients);
  expect(reaching(lab)).toEqual(clients.map(({ stream }) => stream));
  expect(problemsOf(lab)).toEqual([]);
});

test('WorkloadEntries that are the proxy of the client count where no other namespace sees the service', () => {
  const workload = objectOf('WorkloadEntry', 'shop/w', {
    spec: { address: '127.0.0.1', labels: { app: 'w' }, ports: { http: 15000 } },
  });
  const selecting = (exportTo: string[]) =>
    entry([], { endpoints: undefined, workloadSelector: { labels: { app: 'w' } }, exportTo });
  const lab = new MeshLab([workload, selecting(['*'])], clients);
  expect(reaching(lab)).toEqual([]);
  expect(problemsOf(lab)).toEqual(['ServiceEntry spec.workloadSelector Ineffective']);
  lab.apply([selecting(['.'])]);
  expect(reaching(lab)).toEqual(['a.shop', 'gw.shop']);
});
