import { isObject } from '../api/json.ts';
import type { AgentSettings } from './settings/settings.ts';

/** `envoy.config.core.v3.Node` as JSON. */
export interface Node {
  readonly id: string;
  readonly cluster: string;
  readonly locality?: { readonly region: string; readonly zone?: string; readonly subZone?: string };
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Istio versions whose behaviour the control plane may expect of this agent. */
const ISTIO_VERSION = '1.30.0';

/** The node by which the control plane knows this proxy. Keys of the metadata are Istio's. */
export function nodeOf(settings: AgentSettings): Node {
  const { type, pod, domain } = settings;
  const [address = '127.0.0.1'] = pod.addresses;
  const name = pod.name || 'proxy';
  const locality = localityOf(pod.labels);
  return {
    id: `${type}~${address}~${name}.${pod.namespace}~${domain}`,
    cluster: clusterOf(settings),
    ...(locality && { locality }),
    metadata: metadataOf(settings),
  };
}

function metadataOf(settings: AgentSettings): Readonly<Record<string, unknown>> {
  const { pod, proxy, env, ports } = settings;
  const metadata: Record<string, unknown> = {
    NAME: pod.name,
    NAMESPACE: pod.namespace,
    SERVICE_ACCOUNT: pod.serviceAccount,
    INSTANCE_IPS: pod.addresses.join(','),
    ISTIO_VERSION,
    INTERCEPTION_MODE: 'REDIRECT',
    CLUSTER_ID: settings.clusterId,
    ...(proxy.meshId !== '' && { MESH_ID: proxy.meshId }),
    ENVOY_STATUS_PORT: ports.ready,
    ENVOY_PROMETHEUS_PORT: ports.metrics,
    ...(ports.secureMetrics !== 0 && { ENVOY_SECURE_METRICS_PORT: ports.secureMetrics }),
    ...(ports.secureMergedMetrics !== 0 && { ENVOY_SECURE_MERGED_METRICS_PORT: ports.secureMergedMetrics }),
    ...(settings.hasCredentialSocket && { credential: 'true' }),
    PILOT_SAN: [hostOf(proxy.discoveryAddress)],
    PROXY_CONFIG: proxy.whole,
    LABELS: withoutHash(pod.labels),
    ANNOTATIONS: pod.annotations,
  };
  for (const [key, value] of Object.entries(env))
    if (key.startsWith('ISTIO_META_')) metadata[key.slice('ISTIO_META_'.length)] = value;
  for (const [key, text] of Object.entries(env)) {
    if (!key.startsWith('ISTIO_METAJSON_')) continue;
    const value = parse(text);
    if (key === 'ISTIO_METAJSON_LABELS' && isObject(value))
      Object.assign(metadata, { STATIC_LABELS: value, LABELS: { ...value, ...withoutHash(pod.labels) } });
    else if (isObject(value)) Object.assign(metadata, value);
  }
  const podPorts = metadata['POD_PORTS'];
  if (typeof podPorts === 'string' && !Array.isArray(parse(podPorts))) delete metadata['POD_PORTS'];
  return metadata;
}

/** As Istio names it: by the app, the workload, or else for all proxies of the namespace. */
function clusterOf({ proxy, pod, env }: AgentSettings): string {
  if (proxy.serviceCluster !== '' && proxy.serviceCluster !== 'istio-proxy') return proxy.serviceCluster;
  const app = ['app', 'app.kubernetes.io/name', 'service.istio.io/canonical-name']
    .map((label) => pod.labels[label])
    .find((value) => value !== undefined && value !== '');
  return `${app ?? (env['ISTIO_META_WORKLOAD_NAME'] || 'istio-proxy')}.${pod.namespace}`;
}

/** Label `istio-locality`: `region.zone.subzone`. Without it, the control plane knows the place from the Node. */
function localityOf(labels: Readonly<Record<string, string>>): Node['locality'] {
  const label = labels['topology.istio.io/locality'] ?? labels['istio-locality'] ?? '';
  const [region = '', zone, subZone] = label.split(label.includes('/') ? '/' : '.');
  if (region === '') return undefined;
  return { region, ...(zone !== undefined && { zone }), ...(subZone !== undefined && { subZone }) };
}

const withoutHash = (labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => name !== 'pod-template-hash'));

/** Of `host:port` or `[host]:port`. */
export const hostOf = (address: string): string => address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
