/** What 2,000 proxies of 50 Deployments in 20 namespaces share: `node bench/sharing.ts`. */
import type { KubernetesObject } from '../src/api/object.ts';
import { TestMesh, connectedProxy } from '../test/harness/mesh.ts';
import { scaleObjects } from './scale-mesh.ts';

const namespaces = 20;
const deployments = 50;
const proxies = 2_000;
const namespaceOf = (deployment: number): string => `ns-${deployment % namespaces}`;

const mesh = new TestMesh({ oracle: false });
const own = Array.from(
  { length: deployments },
  (_, d) =>
    ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `own-${d}`, namespace: namespaceOf(d) },
      spec: {
        clusterIP: `10.200.0.${d}`,
        selector: { app: `d-${d}` },
        ports: [{ name: 'http', port: 80, targetPort: 8000 + d }],
      },
    }) as unknown as KubernetesObject,
);
mesh.apply([...scaleObjects({ services: 100, namespaces, endpoints: 2, routes: true }), ...own]);
mesh.commit(
  Array.from({ length: proxies }, (_, p) => {
    const deployment = p % deployments;
    const namespace = namespaceOf(deployment);
    const ip = `10.9.${p >> 8}.${p & 255}`;
    const proxy = connectedProxy(`p${p}`, {
      id: `sidecar~${ip}~d-${deployment}-${p}.${namespace}~${namespace}.svc.cluster.local`,
      metadata: {
        NAMESPACE: namespace,
        ISTIO_VERSION: '1.32.0',
        INSTANCE_IPS: ip,
        LABELS: { app: `d-${deployment}`, 'pod-template-hash': `h${p}` },
      },
    });
    return mesh.mesh.inputs.proxies.write(proxy.stream, proxy);
  }),
);
const size = (name: string): number => mesh.graph.collections.find((collection) => collection.name === name)?.size ?? 0;
console.log(
  JSON.stringify({
    proxies,
    deployments,
    namespaces,
    scopes: size('scopes'),
    workloadClasses: size('workloadClasses'),
  }),
);
