import { expect, test } from 'vitest';
import { types } from '../../envoy/encode/proto-types.ts';
import { TestMesh, connectedProxy } from '../../../test/harness/mesh.ts';
import { MeshLab, proxy, rule, service, slice } from '../../../test/harness/lab.ts';

test('sidecars and routers share assignments, and clusters where nothing that clusters depend on tells proxies apart', () => {
  const lab = new MeshLab([service('shop/a'), slice('shop/a', '10.0.1.1')], [proxy('x.shop')]);
  expect(lab.size('clusterSets')).toBe(1);
  lab.connect(
    connectedProxy('y.shop', {
      id: 'sidecar~10.1.0.2~y.shop~shop.svc.cluster.local',
      metadata: { NAMESPACE: 'shop', DNS_CAPTURE: 'true', HTTP10: '1', IDLE_TIMEOUT: '5s' },
    }),
  );
  expect(lab.size('scopes')).toBe(2);
  expect(lab.size('clusterSets')).toBe(1);
  lab.connect(
    connectedProxy('r.edge', {
      id: 'router~10.1.0.3~r.edge~edge.svc.cluster.local',
      metadata: { NAMESPACE: 'edge' },
    }),
  );
  expect(lab.size('clusterSets')).toBe(2);
  expect(lab.size('assignmentSets')).toBe(1);
});

test('one more kind of proxy, or namespace, makes none of the clusters again that it shares', () => {
  let encoded = 0;
  const mesh = new TestMesh({
    encoder: {
      amend: (type, message) => {
        if (type === types.cluster) encoded++;
        return message;
      },
    },
    oracle: false,
  });
  mesh.apply(['shop/a', 'shop/b', 'bank/c'].map((path) => service(path)));
  const encodedFor = (pod: string, metadata: object): number => {
    const before = encoded;
    const [name, namespace] = pod.split('.');
    mesh.connect(
      connectedProxy(pod, {
        id: `sidecar~10.1.0.1~${name}.${namespace}~${namespace}.svc.cluster.local`,
        metadata: { NAMESPACE: namespace, ...metadata },
      }),
    );
    return encoded - before;
  };
  const first = encodedFor('x.shop', {});
  const ofScope = first - 3;
  expect(ofScope).toBeGreaterThan(0);
  expect(encodedFor('y.shop', { DNS_CAPTURE: 'true' })).toBe(ofScope);
  expect(encodedFor('z.bank', {})).toBe(ofScope);
  expect(encodedFor('w.shop', { ISTIO_VERSION: '1.32.0' })).toBe(first);
});

test('an assignment is made once for all places that it looks the same from', () => {
  const near = (path: string, label: string) =>
    rule(path, path.slice(path.indexOf('/') + 1), {
      trafficPolicy: { loadBalancer: { localityLbSetting: { failoverPriority: [label] } }, outlierDetection: {} },
    });
  const lab = new MeshLab(
    [...['shop/a', 'shop/b'].map((path) => service(path)), near('shop/a', 'tier'), near('shop/b', 'rack')],
    [proxy('x.shop', { tier: 'gold', rack: '1' }), proxy('y.shop', { tier: 'gold', rack: '2' })],
  );
  expect(lab.size('topologies')).toBe(2);
  const assignment = (stream: string, host: string) =>
    lab
      .resources(stream)
      .find(
        ({ typeUrl, name }) => typeUrl.endsWith('Assignment') && name === `outbound|80||${host}.shop.svc.cluster.local`,
      );
  expect(assignment('x.shop', 'a')).toBeDefined();
  expect(assignment('x.shop', 'a')).toBe(assignment('y.shop', 'a'));
  expect(assignment('x.shop', 'b')).not.toBe(assignment('y.shop', 'b'));
});
