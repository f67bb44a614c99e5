import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { connectedProxy } from '../../../test/harness/mesh.ts';
import { MeshLab, objectOf, proxy, rule, service, slice } from '../../../test/harness/lab.ts';

/** A WorkloadEntry at the address that all proxies of the lab have. */
function entry(path: string, app: string): KubernetesObject {
  return objectOf('WorkloadEntry', path, { spec: { address: '10.1.0.1', labels: { app } } });
}

function pod(path: string, version: string, ready: boolean): KubernetesObject {
  return objectOf(
    'Pod',
    path,
    {
      status: {
        phase: 'Running',
        podIPs: [{ ip: '10.0.9.1' }],
        conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      },
    },
    { labels: { version } },
  );
}

const selecting = (path: string, app: string, port: number) =>
  service(path, { selector: { app }, ports: [{ name: 'http', port }] });

function inbound(lab: MeshLab, stream: string): string[] {
  return (lab.json(stream).cds as { readonly name: string }[]).flatMap(({ name }) =>
    name.startsWith('inbound|') ? [name] : [],
  );
}

/** Addresses of the endpoints of subset v1 of a.shop. */
function subset(lab: MeshLab, stream: string): string {
  const assignments = lab.json(stream).eds as { readonly clusterName: string }[];
  const found = assignments.find(({ clusterName }) => clusterName === 'outbound|80|v1|a.shop.svc.cluster.local');
  return JSON.stringify(found).match(/10\.0\.9\.1/)?.[0] ?? '';
}

test.each([['in their order'], ['in reverse order']])(
  'of several WorkloadEntries at its address a proxy is the one with its name, else the first by name (%s)',
  (order) => {
    const entries = [entry('shop/vm-1', 'a'), entry('shop/vm-2', 'b'), entry('other/vm-0', 'b')];
    const lab = new MeshLab([selecting('shop/a', 'a', 81), selecting('shop/b', 'b', 82)]);
    for (const object of order === 'in their order' ? entries : entries.reverse()) lab.apply([object]);
    lab.join([proxy('vm-2.shop'), proxy('x.shop')]);
    expect(inbound(lab, 'vm-2.shop')).toContain('inbound|82||');
    expect(inbound(lab, 'vm-2.shop')).not.toContain('inbound|81||');
    expect(inbound(lab, 'x.shop')).toContain('inbound|81||');
    lab.delete([entry('shop/vm-1', 'a')]);
    expect(inbound(lab, 'x.shop')).toContain('inbound|82||');
  },
);

test('an endpoint that names no Pod has the labels of a Pod at its address that is ready, and of nothing else', () => {
  const objects = [service('shop/a'), rule('shop/r', 'a'), slice('shop/a', '10.0.9.1')];
  const lab = new MeshLab(
    [
      ...objects,
      objectOf('WorkloadEntry', 'shop/a-0', { spec: { address: '10.0.9.1', labels: { version: 'v1' } } }),
      pod('shop/b', 'v1', false),
    ],
    [proxy('x.shop')],
  );
  expect(subset(lab, 'x.shop')).toBe('');
  lab.apply([pod('shop/b', 'v1', true)]);
  expect(subset(lab, 'x.shop')).toBe('10.0.9.1');
  lab.apply([pod('shop/a-9', 'v2', true)]);
  expect(subset(lab, 'x.shop')).toBe('');
});

test('a proxy is on the node that it names, also where its Pod is not known', () => {
  const onNode = (name: string, ip: string) =>
    objectOf('Pod', `shop/${name}`, {
      spec: { nodeName: name },
      status: { phase: 'Running', podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] },
    });
  const lab = new MeshLab([
    service('shop/a', { internalTrafficPolicy: 'Local' }),
    onNode('node-1', '10.0.9.1'),
    onNode('node-2', '10.0.9.2'),
    slice('shop/a', '10.0.9.1', '10.0.9.2'),
  ]);
  const endpoints = (node: string): unknown => {
    const id = 'sidecar~10.1.0.1~unknown.shop~shop.svc.cluster.local';
    lab.connect(connectedProxy(node, { id, metadata: { NAMESPACE: 'shop', NODE_NAME: node } }));
    return JSON.stringify(lab.json(node).eds).match(/10\.0\.9\.\d/g);
  };
  expect(endpoints('node-1')).toEqual(['10.0.9.1']);
  expect(endpoints('node-2')).toEqual(['10.0.9.2']);
});

test('a pod of a headless Service has the listeners of the other pods, not that of its own address', () => {
  const tcp = [{ name: 'tcp', port: 3306 }];
  const lab = new MeshLab([
    service('shop/db', { clusterIP: 'None', selector: { app: 'db' }, ports: tcp }),
    slice('shop/db', '10.1.0.1', '10.1.0.2'),
  ]);
  const listeners = (stream: string): string[] =>
    (lab.json(stream).lds as { name: string }[]).map(({ name }) => name).filter((name) => name.endsWith('_3306'));
  const connect = (stream: string, ip: string, app: string): void =>
    lab.connect(
      connectedProxy(stream, {
        id: `sidecar~${ip}~${stream}.shop~shop.svc.cluster.local`,
        metadata: { NAMESPACE: 'shop', INSTANCE_IPS: ip, LABELS: { app } },
      }),
    );
  connect('db-1', '10.1.0.1', 'db');
  connect('client', '10.1.0.9', 'client');
  expect(listeners('db-1')).toEqual(['10.1.0.2_3306']);
  expect(listeners('client')).toEqual(['10.1.0.1_3306', '10.1.0.2_3306']);
  lab.apply([service('shop/db', { clusterIP: 'None', selector: { app: 'other' }, ports: tcp })]);
  expect(listeners('db-1')).toEqual(['10.1.0.1_3306', '10.1.0.2_3306']);
});
