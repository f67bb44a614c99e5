/** Pods injected one after the other on one core, without the webhook around it: `taskset -c 0 node bench/injection.ts`. */
import type { Json } from '../src/api/json.ts';
import type { Injector } from '../src/injection/injector.ts';
import { injectorWith } from '../test/injection/case.ts';

const warmUp = 200;
const rounds = 1000;

function podWith(containers: number): Json {
  const container = (at: number): Json => ({
    name: `app-${at}`,
    image: 'app',
    ports: [{ name: 'http', containerPort: 8000 + at }],
    env: Array.from({ length: 10 }, (_, i) => ({ name: `VARIABLE_${i}`, value: 'x'.repeat(20) })),
    readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
    livenessProbe: { tcpSocket: { port: 8000 + at } },
  });
  return {
    metadata: {
      generateName: 'cart-6d5f9c7b8d-',
      labels: { app: 'cart', 'pod-template-hash': '6d5f9c7b8d' },
      annotations: {
        'traffic.sidecar.istio.io/excludeOutboundIPRanges': '10.1.0.0/16,10.2.0.0/16',
        'proxy.istio.io/config': 'concurrency: 2\nproxyMetadata:\n  ISTIO_META_DNS_CAPTURE: "true"\n',
      },
    },
    spec: { containers: Array.from({ length: containers }, (_, at) => container(at)) },
  };
}

interface Times {
  readonly cpu: string;
  readonly p50: string;
  readonly p99: string;
}

/** Milliseconds for each of many Pods: CPU on average, and wall time, which others on the machine share. */
function times(injector: Injector, pod: Json): Times {
  const namespace = { name: 'shop', labels: { 'istio-injection': 'enabled' } };
  const inject = (own: Json): void => {
    const result = injector.inject({ pod: own, namespace, meshConfig: {}, parameters: { env: {} } });
    if (!('pod' in result)) throw new Error(JSON.stringify(result));
  };
  for (let i = 0; i < warmUp; i++) inject(pod);
  // Each review has a Pod of its own.
  const pods = Array.from({ length: rounds }, () => structuredClone(pod));
  const before = process.threadCpuUsage();
  const taken = pods.map((own) => {
    const start = performance.now();
    inject(own);
    return performance.now() - start;
  });
  const { user, system } = process.threadCpuUsage(before);
  taken.sort((a, b) => a - b);
  const at = (part: number): string => taken[Math.floor(part * (rounds - 1))]!.toFixed(2);
  return { cpu: ((user + system) / 1000 / rounds).toFixed(2), p50: at(0.5), p99: at(0.99) };
}

const injector = injectorWith();
const cases = { '1 container': podWith(1), '5 containers': podWith(5), '250 containers': podWith(250) };
console.table(Object.fromEntries(Object.entries(cases).map(([name, pod]) => [name, times(injector, pod)])));
