import type { ConnectedProxy } from '../ads/types.ts';
import type { Pod } from '../api/core.ts';
import { compareText } from '../model/age.ts';
import type { Labels } from '../model/labels.ts';

/** Labels that tell the replicas of a workload apart, and nothing else. */
const OF_REPLICAS = ['pod-template-hash', 'controller-revision-hash', 'statefulset.kubernetes.io/pod-name'];

/** Equal for proxies that differ only in what no selector names. */
export function classOf(namespace: string, account: string, labels: Labels): string {
  const named = Object.entries(labels).filter(([label]) => !OF_REPLICAS.includes(label));
  return JSON.stringify([namespace, account, named.sort(([a], [b]) => compareText(a, b))]);
}

export function accountOf(pod: Pod | undefined): string {
  return pod?.spec?.serviceAccountName || 'default';
}

/** What the agent of an injected proxy says of it. */
const asAgentsTell = { ISTIO_VERSION: '1.0.0', ENVOY_STATUS_PORT: 15021, ENVOY_PROMETHEUS_PORT: 15090 };

/** A proxy as if it were connected. */
export function proxyOf(
  stream: string,
  of: {
    readonly type: 'router' | 'sidecar';
    readonly namespace: string;
    readonly labels: Labels;
    readonly account: string;
    readonly cluster: string;
    readonly pod: Pod | undefined;
  },
): ConnectedProxy {
  const { type, namespace, labels, account, cluster, pod } = of;
  // One that no endpoint has, unlike those of loopback.
  const address = pod?.status?.podIP ?? '240.255.255.254';
  return {
    stream: `${type} ${stream}`,
    nodeId: `${type}~${address}~${pod?.metadata.name ?? ''}.${namespace}~${namespace}.svc.cluster.local`,
    nodeCluster: '',
    metadata: { NAMESPACE: namespace, LABELS: labels, ...asAgentsTell },
    locality: { region: '', zone: '', subZone: '' },
    build: '',
    extensions: [],
    identity: { trustDomain: '', namespace, serviceAccount: account, cluster, tenant: namespace },
  };
}
