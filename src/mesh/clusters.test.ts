import { expect, test } from 'vitest';
import { connectedProxy } from '../../test/harness/mesh.ts';
import { MeshLab, proxy, service, slice } from './testing/lab.ts';

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
