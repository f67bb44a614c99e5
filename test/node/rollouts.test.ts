import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { version } from '../../src/version.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure } from '../peers/with-peers.ts';
import { buildImages } from './images.ts';
import type { RunningNode } from './node.ts';
import { startOnlyNode } from './only-node.ts';
import { buildProjectImages, shopImage } from './project-images.ts';
import { startLoad } from './steady-load.ts';
import { withNode } from './with-node.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'istio-system';

withNode('a plain Envoy as gateway, under load', () => {
  let node: RunningNode | undefined;
  const started = (): RunningNode => node ?? expect.fail('it did not start');
  const kubectl = (...args: string[]): Promise<string> => started().kubectl(...args);
  printLogOnFailure(() => node);
  let origin = '';

  beforeAll(async () => {
    const images = [
      ...(await buildProjectImages(['fairlead', 'fairlead-proxy'])),
      ...(await buildImages([shopImage()])),
    ];
    node = await startOnlyNode({ images });
    await kubectl('create', 'namespace', NAMESPACE);
    const values = ['--set', 'plaintext.enabled=true'];
    await node.helm('install', 'fairlead', join(ROOT, 'charts/fairlead'), '-n', NAMESPACE, ...values, '--wait');
    for (const name of ['shop', 'gateway'])
      await node.apply(await readFile(join(ROOT, `examples/cluster/${name}.yaml`), 'utf8'));
    await node.apply(GATEWAY);
    await kubectl('-n', 'bookshop', 'wait', '--for=condition=Available', 'deployment', '--all', '--timeout=90s');
    origin = `http://127.0.0.1:${await node.forward('ingressgateway.bookshop.svc.cluster.local', 80)}`;
    await programmed();
  }, 600_000);
  afterAll(async () => {
    await node?.stop();
  });

  /** Every proxy has what the VirtualService says now. */
  async function programmed(): Promise<void> {
    await kubectl('-n', 'bookshop', 'wait', '--for=condition=Programmed', 'virtualservice/storefront', '--timeout=60s');
  }

  /** Restarts it while requests come, and goes on until its last old Pod has ended and more have come after that. */
  async function restart(namespace: string, deployment: string, selector: string): Promise<readonly string[]> {
    const load = startLoad(origin, 4);
    try {
      await more(load.answered, 50);
      const pods = await kubectl('-n', namespace, 'get', 'pods', '-l', selector, '-o', 'name');
      await kubectl('-n', namespace, 'rollout', 'restart', `deployment/${deployment}`);
      await kubectl('-n', namespace, 'rollout', 'status', `deployment/${deployment}`, '--timeout=120s');
      await kubectl('-n', namespace, 'wait', '--for=delete', ...pods.trim().split('\n'), '--timeout=60s');
      await more(load.answered, 200);
    } finally {
      await load.stop();
    }
    return load.stop();
  }

  test('loses no request while Fairlead restarts, and follows it afterwards', { timeout: 180_000 }, async () => {
    expect(await restart(NAMESPACE, 'fairlead', 'app.kubernetes.io/name=fairlead')).toEqual([]);
    const fault = [{ op: 'add', path: '/spec/http/0/redirect/uri', value: '/moved-again' }];
    await kubectl('-n', 'bookshop', 'patch', 'virtualservice/storefront', '--type=json', '-p', JSON.stringify(fault));
    await programmed();
    const answer = await fetch(`${origin}/catalogue`, { redirect: 'manual' });
    expect(answer.headers.get('location')).toBe(`${origin}/moved-again`);
  });

  test('loses no request while the application restarts', { timeout: 180_000 }, async () => {
    expect(await restart('bookshop', 'storefront-v1', 'app=storefront')).toEqual([]);
  });
});

/** Until so many more have been answered. */
async function more(answered: () => number, count: number): Promise<void> {
  const until = answered() + count;
  await poll('answers', () => Promise.resolve(answered() >= until || undefined));
}

const labels = { app: 'ingressgateway', istio: 'ingressgateway' };

/** Not by an agent: it is told by its command line who it is, and connects without TLS. */
const BOOTSTRAP = {
  node: { metadata: { NAMESPACE: 'bookshop', LABELS: labels } },
  admin: { address: { socket_address: { address: '0.0.0.0', port_value: 15000 } } },
  dynamic_resources: {
    ads_config: {
      api_type: 'DELTA_GRPC',
      transport_api_version: 'V3',
      set_node_on_first_message_only: true,
      grpc_services: [{ envoy_grpc: { cluster_name: 'xds-grpc' } }],
    },
    lds_config: { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' },
    cds_config: { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' },
  },
  static_resources: {
    clusters: [
      {
        name: 'xds-grpc',
        type: 'STRICT_DNS',
        typed_extension_protocol_options: {
          'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
            '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
            explicit_http_config: { http2_protocol_options: {} },
          },
        },
        load_assignment: {
          cluster_name: 'xds-grpc',
          endpoints: [
            {
              lb_endpoints: [
                {
                  endpoint: {
                    address: {
                      socket_address: { address: `fairlead.${NAMESPACE}.svc.cluster.local`, port_value: 15010 },
                    },
                  },
                },
              ],
            },
          ],
        },
      },
    ],
  },
};

const GATEWAY = [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'bootstrap', namespace: 'bookshop' },
    data: { 'envoy.json': JSON.stringify(BOOTSTRAP) },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'ingressgateway', namespace: 'bookshop' },
    spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'ingressgateway', namespace: 'bookshop' },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { 'sidecar.istio.io/inject': 'false' } },
        spec: {
          containers: [
            {
              name: 'envoy',
              image: `fairlead-proxy:${version}`,
              command: ['envoy'],
              args: [
                ...['-c', '/etc/bootstrap/envoy.json', '--service-cluster', 'ingressgateway'],
                ...['--service-node', 'router~$(POD_IP)~$(POD_NAME).bookshop~bookshop.svc.cluster.local'],
                ...['--disable-hot-restart', '--concurrency', '1', '-l', 'warning'],
              ],
              env: [
                { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
                { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              ],
              readinessProbe: { httpGet: { path: '/ready', port: 15000 }, periodSeconds: 1 },
              volumeMounts: [{ name: 'bootstrap', mountPath: '/etc/bootstrap' }],
            },
          ],
          volumes: [{ name: 'bootstrap', configMap: { name: 'bootstrap' } }],
        },
      },
    },
  },
]
  .map((object) => JSON.stringify(object))
  .join('\n---\n');
