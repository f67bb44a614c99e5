/** CPU per commit as the mesh grows: `node --expose-gc bench/scale.ts [SERVICES...]`. */
import { TestMesh, connectedProxy } from '../test/harness/mesh.ts';
import { namespaceOf, scaleObjects, service, slice, virtualService } from './scale-mesh.ts';

const namespaces = 20;
const sizes = process.argv.slice(2).map(Number);

function sidecar(namespace: string, pod = 'client') {
  const ip = '10.1.0.1';
  return connectedProxy(`${pod}.${namespace}`, {
    id: `sidecar~${ip}~${pod}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: namespace, ISTIO_VERSION: '1.32.0', INSTANCE_IPS: ip, LABELS: { app: pod } },
  });
}

const cpu = (work: () => void): number => {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
};

const memory = (): number => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
};

for (const services of sizes.length > 0 ? sizes : [100, 1000, 10_000]) {
  const options = { services, namespaces, endpoints: 5, routes: true };
  const empty = memory();
  const mesh = new TestMesh({ oracle: false });
  mesh.connect(sidecar('ns-0'));
  const build = cpu(() => mesh.apply(scaleObjects(options)));
  const first = memory();
  const more = cpu(() => {
    for (let n = 1; n < namespaces; n++) mesh.connect(sidecar(`ns-${n}`));
  });
  const all = memory();
  mesh.connect(
    connectedProxy('gw', {
      id: 'router~10.1.0.2~gw.istio-system~istio-system.svc.cluster.local',
      metadata: {
        NAMESPACE: 'istio-system',
        ISTIO_VERSION: '1.32.0',
        INSTANCE_IPS: '10.1.0.2',
        LABELS: { istio: 'ingressgateway' },
      },
    }),
  );
  const rounds = 200;
  const each = (change: (i: number, round: number) => void): number => {
    for (let r = 0; r < 50; r++) change((r * 35) % services, r + 500);
    return (
      cpu(() => {
        for (let r = 0; r < rounds; r++) change((r * 35) % services, r);
      }) / rounds
    );
  };
  const endpoint = each((i, round) => mesh.apply([slice(i, options, 5, round + 1)]));
  const route = each((i, round) => mesh.apply([virtualService(i, options, 1 + (round % 99))]));
  const label = each((i, round) => mesh.apply([service(i, options, { round: String(round) })]));
  const created = each((_, round) =>
    mesh.apply([service(services + round, options), slice(services + round, options, 5)]),
  );
  const known = each((i, round) => mesh.connect(sidecar(namespaceOf(i, options), `p${round}`)));
  console.log(
    JSON.stringify({
      services,
      buildMs: Math.round(build),
      perNamespaceMs: Math.round((more / (namespaces - 1)) * 10) / 10,
      firstMB: Math.round(first - empty),
      perNamespaceMB: Math.round(((all - first) / (namespaces - 1)) * 10) / 10,
      kbPerService: Math.round(((first - empty) * 1024) / services),
      endpointMs: endpoint.toFixed(3),
      routeMs: route.toFixed(3),
      labelMs: label.toFixed(3),
      createdMs: created.toFixed(3),
      connectMs: known.toFixed(3),
      failures: mesh.graph.failures.size,
    }),
  );
}
