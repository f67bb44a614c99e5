import { expect, test } from 'vitest';
import { connectedProxy } from '../../test/harness/mesh.ts';
import { MeshLab, proxy, rule, service, slice } from '../../test/harness/lab.ts';

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
