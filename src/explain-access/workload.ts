import type { ConnectedProxy } from '../ads/types.ts';
import type { Pod, Service } from '../api/core.ts';
import type { Gateway } from '../api/gen/gateway.gen.ts';
import type { WorkloadEntry } from '../api/gen/workload-entry.gen.ts';
import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { AccessQuestion } from '../cli/program.ts';
import { UsageError } from '../cli/usage-error.ts';
import type { LoadedDirectory } from '../directory/load.ts';
import { type Labels, printSelector, selects } from '../model/labels.ts';
import { gatewayNameLabel } from '../model/policy-target.ts';
import { isObject } from '../api/json.ts';
import { workloadName } from '../reconcilers/core/workload.ts';
import { readDocument } from '../yaml/document.ts';

export interface FoundWorkload {
  readonly proxy: ConnectedProxy;
  readonly isRouter: boolean;
  /** Its address, if it is known. */
  readonly ip: string | undefined;
  /** What was assumed. */
  readonly remarks: string[];
}

/** By its own name, by that of its workload (such as a Deployment), or by a Service that selects it. */
export function findWorkload(
  { objects }: Pick<LoadedDirectory, 'objects'>,
  { to: { namespace, name }, mesh: { gatewayScope, clusterId } }: Pick<AccessQuestion, 'to' | 'mesh'>,
): FoundWorkload {
  const all = <T extends KubernetesObject>(kind: SourceKindName): readonly T[] =>
    ((objects.get(kind) ?? []) as readonly T[]).filter(({ metadata }) => (metadata.namespace ?? '') === namespace);
  const [pods, entries] = [all<Pod>('Pod'), all<WorkloadEntry>('WorkloadEntry')];
  const isNamed = ({ metadata }: KubernetesObject): boolean => metadata.name === name;
  const service = all<Service>('Service').find(isNamed);
  const selector = service?.spec?.selector;
  const isSelected = (labels: Labels): boolean => selector !== undefined && selects(selector, labels);
  const pod =
    pods.find(isNamed) ??
    pods.find((one) => workloadName(one) === name) ??
    (entries.some(isNamed) ? undefined : pods.find(({ metadata }) => isSelected(metadata.labels ?? {})));
  const entry =
    pod === undefined ? (entries.find(isNamed) ?? entries.find((one) => isSelected(labelsOf(one)))) : undefined;
  const found = pod ?? entry;
  const labels = pod?.metadata.labels ?? (entry === undefined ? selector : labelsOf(entry));
  if (labels === undefined || (found === undefined && service === undefined))
    throw new UsageError(notFound([...pods, ...entries], namespace, name));
  const gateways = (objects.get('Gateway') ?? []) as readonly Gateway[];
  const gateway = gateways.find(
    ({ spec, metadata }) =>
      selectsSome(spec.selector, labels) && (gatewayScope === 'mesh' || metadata.namespace === namespace),
  );
  const isRouter = gateway !== undefined || labels[gatewayNameLabel] !== undefined;
  const remarks: string[] = [];
  if (gateway !== undefined)
    remarks.push(
      `Gateway/${gateway.metadata.namespace ?? ''}/${gateway.metadata.name} selects the labels of ${namespace}/${name}; assuming that it is a gateway, not a sidecar`,
    );
  if (found === undefined)
    remarks.push(
      `there is no Pod or WorkloadEntry for Service/${namespace}/${name}; assuming a workload with the labels ${printSelector(labels)}`,
    );
  else if (!isNamed(found))
    remarks.push(`using ${found.kind}/${namespace}/${found.metadata.name} for ${namespace}/${name}`);
  const isGrpc = pod !== undefined && !isRouter && isGrpcServer(pod);
  if (isGrpc)
    remarks.push(
      `Pod/${namespace}/${pod.metadata.name} has the annotation ${templates}; judging it as a gRPC server without a sidecar, which answers PERMISSION_DENIED instead of 403`,
    );
  else if (pod !== undefined && !isRouter && labels['security.istio.io/tlsMode'] === undefined)
    remarks.push(
      `Pod/${namespace}/${pod.metadata.name} has no label security.istio.io/tlsMode; if it has no sidecar, nothing is enforced`,
    );
  const ip = pod?.status?.podIP ?? entry?.spec.address;
  const metadata = { NAMESPACE: namespace, LABELS: labels, ...(isGrpc && { GENERATOR: 'grpc' }) };
  const proxy = proxyOf(isRouter ? 'router' : 'sidecar', found?.metadata.name ?? name, metadata, ip);
  return { proxy: isRouter ? withPodOf(proxy, namespace, pod, clusterId) : proxy, isRouter, ip, remarks };
}

function labelsOf({ spec, metadata }: WorkloadEntry): Labels {
  return { ...spec.labels, ...metadata.labels };
}

/** An empty selector selects all proxies, but makes no gateways of sidecars. */
function selectsSome(selector: Labels = {}, labels: Labels): boolean {
  return Object.keys(selector).length > 0 && selects(selector, labels);
}

function notFound(workloads: readonly KubernetesObject[], namespace: string, name: string): string {
  const most = 5;
  const names = [...new Set(workloads.map(({ metadata }) => metadata.name))].sort();
  const shown = names.slice(0, most).join(', ') + (names.length > most ? ', ...' : '');
  const there = names.length === 0 ? `the namespace has none` : `the namespace has ${shown}`;
  return `--to: no Pod, workload, WorkloadEntry or Service ${name} in namespace ${namespace}: ${there}`;
}

/** What Istio's injector adds to a Pod. */
const templates = 'inject.istio.io/templates';

function isGrpcServer({ metadata }: Pod): boolean {
  const names = metadata.annotations?.[templates]?.split(',') ?? [];
  return names.some((name) => ['grpc-agent', 'grpc-simple'].includes(name.trim()));
}

/** As Istio's agent would connect it. */
function proxyOf(
  type: 'sidecar' | 'router',
  name: string,
  metadata: { readonly NAMESPACE: string },
  ip = '192.0.2.1',
): ConnectedProxy {
  return {
    stream: 'explain',
    nodeId: `${type}~${ip}~${name}.${metadata.NAMESPACE}~${metadata.NAMESPACE}.svc.cluster.local`,
    nodeCluster: '',
    metadata: { ...metadata, INSTANCE_IPS: ip, ISTIO_VERSION: '1.30.0' },
    locality: { region: '', zone: '', subZone: '' },
    build: '',
    extensions: [],
  };
}

/** What the agent of a router tells about its Pod, too: its account, and its part of the mesh config. */
function withPodOf(proxy: ConnectedProxy, namespace: string, pod: Pod | undefined, cluster: string): ConnectedProxy {
  const annotation = readDocument(pod?.metadata.annotations?.['proxy.istio.io/config'] ?? '');
  const config = 'value' in annotation && isObject(annotation.value) ? { PROXY_CONFIG: annotation.value } : {};
  const serviceAccount = pod?.spec?.serviceAccountName || 'default';
  return {
    ...proxy,
    metadata: { ...proxy.metadata, ...config },
    identity: { trustDomain: '', namespace, serviceAccount, cluster, tenant: namespace },
  };
}
