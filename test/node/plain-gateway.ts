import { version } from '../../src/base/version.ts';
import { SYSTEM } from './bookshop.ts';

const NAMESPACE = 'plain';
const labels = { app: 'gateway', istio: 'ingressgateway' };

/** Not of an agent: it is told by its command line who it is, and connects without TLS. */
const BOOTSTRAP = {
  node: { metadata: { NAMESPACE, LABELS: labels } },
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
                      socket_address: { address: `fairlead.${SYSTEM}.svc.cluster.local`, port_value: 15010 },
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

/** An Envoy without an agent as gateway of the bookshop, which knows it by its label. */
export const PLAIN_GATEWAY = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'bootstrap', namespace: NAMESPACE },
    data: { 'envoy.json': JSON.stringify(BOOTSTRAP) },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'gateway', namespace: NAMESPACE },
    spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'gateway', namespace: NAMESPACE },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [
            {
              name: 'envoy',
              image: `fairlead-proxy:${version}`,
              command: ['envoy'],
              args: [
                ...['-c', '/etc/bootstrap/envoy.json', '--service-cluster', 'gateway'],
                ...['--service-node', 'router~$(POD_IP)~$(POD_NAME).plain~plain.svc.cluster.local'],
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
