import type { ConnectedProxy } from '../ads/types.ts';
import type { Pod, Service } from '../api/core.ts';
import type { Gateway } from '../api/gen/gateway.gen.ts';
import { compareText } from '../model/age.ts';
import { type Labels, selects } from '../model/labels.ts';
import type { LoadedDirectory } from '../directory/load.ts';

/** Labels that tell the replicas of a workload apart, and nothing else. */
const OF_REPLICAS = ['pod-template-hash', 'controller-revision-hash', 'statefulset.kubernetes.io/pod-name'];

/**
 * The routers that the Gateways in some files are for, as if they were connected: what a Gateway means depends on them.
 * Each is one of the Pods that a Gateway selects, of those that differ only in what no selector names. For a selector
 * without Pods, it is a Pod of the Services whose selectors contain it; without these, one in the Gateway's namespace.
 */
export function routersOf({ objects }: Pick<LoadedDirectory, 'objects'>, cluster: string): readonly ConnectedProxy[] {
  const gateways = ((objects.get('Gateway') ?? []) as readonly Gateway[]).map(({ metadata, spec }) => ({
    namespace: metadata.namespace ?? '',
    selector: spec.selector ?? {},
  }));
  const pods = (objects.get('Pod') ?? []) as readonly Pod[];
  const services = ((objects.get('Service') ?? []) as readonly Service[]).map(({ metadata, spec }) => ({
    namespace: metadata.namespace ?? '',
    selector: spec?.selector ?? {},
  }));
  const routers = new Map<string, ConnectedProxy>();
  const add = (namespace: string, labels: Labels, pod?: Pod): void => {
    const named = Object.entries(labels).filter(([label]) => !OF_REPLICAS.includes(label));
    const account = pod?.spec?.serviceAccountName || 'default';
    const key = JSON.stringify([namespace, account, named.sort(([a], [b]) => compareText(a, b))]);
    if (!routers.has(key)) routers.set(key, routerOf(key, { namespace, labels, account, cluster, pod }));
  };
  for (const selector of new Map(
    gateways.map((gateway) => [JSON.stringify(gateway.selector), gateway.selector]),
  ).values()) {
    // One without a selector is for whatever the others select.
    if (Object.keys(selector).length === 0) continue;
    const selected = pods.filter(({ metadata }) => selects(selector, metadata.labels ?? {}));
    for (const pod of selected) add(pod.metadata.namespace ?? '', pod.metadata.labels ?? {}, pod);
    if (selected.length > 0) continue;
    const leading = services.filter((service) => selects(selector, service.selector));
    for (const { namespace, selector: labels } of leading) add(namespace, labels);
    if (leading.length > 0) continue;
    for (const gateway of gateways) if (isSame(gateway.selector, selector)) add(gateway.namespace, selector);
  }
  if (routers.size === 0) for (const { namespace } of gateways) add(namespace, {});
  return [...routers.values()];
}

const isSame = (a: Labels, b: Labels): boolean => JSON.stringify(a) === JSON.stringify(b);

/** What the agent of an injected gateway says of it. */
const asAgentsTell = { ISTIO_VERSION: '1.0.0', ENVOY_STATUS_PORT: 15021, ENVOY_PROMETHEUS_PORT: 15090 };

function routerOf(
  stream: string,
  of: {
    readonly namespace: string;
    readonly labels: Labels;
    readonly account: string;
    readonly cluster: string;
    readonly pod: Pod | undefined;
  },
): ConnectedProxy {
  const { namespace, labels, account, cluster, pod } = of;
  return {
    stream,
    nodeId: `router~127.0.0.1~${pod?.metadata.name ?? ''}.${namespace}~${namespace}.svc.cluster.local`,
    nodeCluster: '',
    metadata: { NAMESPACE: namespace, LABELS: labels, ...asAgentsTell },
    locality: { region: '', zone: '', subZone: '' },
    build: '',
    extensions: [],
    identity: { trustDomain: '', namespace, serviceAccount: account, cluster, tenant: namespace },
  };
}
