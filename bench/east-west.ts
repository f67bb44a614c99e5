/**
 * What a router with an AUTO_PASSTHROUGH server costs in the graph, beside one without:
 * `node --expose-gc bench/east-west.ts [services]`.
 */
import type { KubernetesObject } from '../src/api/object.ts';
import { TestMesh, connectedProxy } from '../test/harness/mesh.ts';
import { scaleObjects, slice } from './scale-mesh.ts';
import { cpu, heap } from './usage.ts';

const [services = 10_000] = process.argv.slice(2).map(Number);
const options = { services, namespaces: 50, endpoints: 2, routes: false };
const rounds = 100;

const router = connectedProxy('router', {
  id: 'router~10.9.0.1~gateway.ns-0~ns-0.svc.cluster.local',
  metadata: { NAMESPACE: 'ns-0', ISTIO_VERSION: '1.32.0', INSTANCE_IPS: '10.9.0.1', LABELS: { istio: 'eastwest' } },
});

const gateway = {
  apiVersion: 'networking.istio.io/v1',
  kind: 'Gateway',
  metadata: { namespace: 'ns-0', name: 'east-west' },
  spec: {
    selector: { istio: 'eastwest' },
    servers: [
      { port: { number: 15443, name: 'tls', protocol: 'TLS' }, hosts: ['*.local'], tls: { mode: 'AUTO_PASSTHROUGH' } },
    ],
  },
} as KubernetesObject;

const more = (round: number): KubernetesObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: `ns-${round % 50}`, name: `more-${round}` },
    spec: { clusterIP: `10.200.0.${round % 250}`, ports: [{ name: 'http', port: 80 }] },
  }) as KubernetesObject;

const mesh = new TestMesh({ oracle: false });
mesh.apply(scaleObjects(options));
mesh.connect(router);

/** Milliseconds of CPU per change. */
function changes(objectOf: (round: number) => KubernetesObject): number {
  const begin = cpu();
  for (let round = 0; round < rounds; round++) mesh.apply([objectOf(round)]);
  return (cpu() - begin) / rounds;
}

let shift = 0;
const endpoint = (round: number): KubernetesObject => slice(round, options, 2, ++shift);
/** Of an endpoint, and of a Service that comes. */
function costs(): { readonly endpoint: number; readonly service: number } {
  changes(endpoint);
  const found = { endpoint: changes(endpoint), service: changes(more) };
  mesh.delete(Array.from({ length: rounds }, (_, round) => more(round)));
  return found;
}

const without = costs();
const before = heap();
const begin = cpu();
mesh.apply([gateway]);
const first = cpu() - begin;
const bytes = heap() - before;
const within = costs();
const listener = mesh.resources('router').find(({ name }) => name === '0.0.0.0_15443');
console.log(`AUTO_PASSTHROUGH over ${services} services`);
console.log(`  the Gateway comes: ${first.toFixed(0)} ms, ${(bytes / services / 1024).toFixed(1)} KB per service`);
console.log(`  its listener: ${((listener?.body.length ?? 0) / 1e6).toFixed(1)} MB`);
console.log(`  an endpoint changes: ${within.endpoint.toFixed(2)} ms, without ${without.endpoint.toFixed(2)} ms`);
console.log(`  a Service comes: ${within.service.toFixed(2)} ms, without ${without.service.toFixed(2)} ms`);
