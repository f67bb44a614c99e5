/** What a changed policy costs beside a thousand others: `node --expose-gc bench/policies.ts`. */
import type { KubernetesObject } from '../src/api/object.ts';
import { TestMesh, connectedProxy } from '../test/harness/mesh.ts';
import { namespaceOf, scaleObjects } from './scale-mesh.ts';

const size = { services: 1_000, namespaces: 20 };
const rounds = 60;

const policy = (name: string, namespace: string, labels: object | undefined, round: number): KubernetesObject =>
  ({
    apiVersion: 'security.istio.io/v1',
    kind: 'AuthorizationPolicy',
    metadata: { name, namespace },
    spec: {
      ...(labels && { selector: { matchLabels: labels } }),
      rules: [{ from: [{ source: { principals: [`cluster.local/ns/shop/sa/client-${round}`] } }] }],
    },
  }) as unknown as KubernetesObject;

const peers = (namespace: string, i: number, mode: string): KubernetesObject =>
  ({
    apiVersion: 'security.istio.io/v1',
    kind: 'PeerAuthentication',
    metadata: { name: `p-${i}`, namespace },
    spec: { selector: { matchLabels: { app: `s-${i}` } }, mtls: { mode } },
  }) as unknown as KubernetesObject;

const mesh = new TestMesh({ oracle: false });
const all = Array.from({ length: size.services }, (_, i) => i);
mesh.apply([
  ...scaleObjects({ ...size, endpoints: 2, routes: false }),
  ...all.map((i) => policy(`a-${i}`, namespaceOf(i, size), { app: `s-${i}` }, 0)),
]);
mesh.commit(
  all.map((i) => {
    const namespace = namespaceOf(i, size);
    const ip = `10.9.${i >> 8}.${i & 255}`;
    const proxy = connectedProxy(`p${i}`, {
      id: `sidecar~${ip}~s-${i}-1.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, ISTIO_VERSION: '1.32.0', INSTANCE_IPS: ip, LABELS: { app: `s-${i}` } },
    });
    return mesh.mesh.inputs.proxies.write(proxy.stream, proxy);
  }),
);

/** Median CPU of a commit, in milliseconds. */
function measure(what: string, change: (round: number) => KubernetesObject): void {
  const times: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const before = process.cpuUsage();
    mesh.apply([change(round)]);
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1_000);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): string => times[Math.floor(share * (rounds - 1))]!.toFixed(2);
  console.log(`${what.padEnd(60)} p50 ${at(0.5)} ms  p90 ${at(0.9)} ms`);
}

const first = namespaceOf(0, size);
measure('an AuthorizationPolicy of one workload', (round) => policy('a-0', first, { app: 's-0' }, round));
measure('a PeerAuthentication of one workload', (round) => peers(first, 0, round % 2 === 0 ? 'STRICT' : 'DISABLE'));
measure('an AuthorizationPolicy of a namespace with 50 workloads', (round) => policy('all', first, undefined, round));
measure('an AuthorizationPolicy of all 1,000 workloads', (round) => policy('mesh', 'istio-system', undefined, round));
