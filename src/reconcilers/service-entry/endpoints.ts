import type { Endpoint, Workload } from '../../model/endpoint.ts';
import { selects } from '../../model/labels.ts';
import { networkLabel } from '../../model/locality.ts';
import { type MeshService, type ServicePort, isDns, type InlineEndpoint } from '../../model/service.ts';
import { ownValue } from '../../model/own-value.ts';
import { augmentLabels } from '../core/workload.ts';

/**
 * The endpoints of a ServiceEntry: its own, or the workloads that its selector picks (Pods and WorkloadEntries in its
 * namespace).
 * @param cluster where the ServiceEntry is.
 */
export function entryEndpoints(
  service: MeshService,
  cluster: string,
  workloads: readonly Workload[],
): readonly Endpoint[] {
  if (service.resolution === 'DynamicDNS') return [];
  if (service.selector !== undefined) return service.ports.flatMap((port) => selected(service, port, workloads));
  const endpoints = service.endpoints.flatMap((endpoint) =>
    endpoint.servicePorts.map((port) => inline(endpoint, port, service.namespace, cluster)),
  );
  return service.resolution === 'DNSRoundRobinLB' ? firstOfEachPort(endpoints) : endpoints;
}

function firstOfEachPort(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const seen = new Set<number | undefined>();
  return endpoints.filter(({ servicePort }) => !seen.has(servicePort) && seen.add(servicePort));
}

/** The WorkloadEntries that a Kubernetes Service selects, in addition to its slices. */
export function selectedEntries(service: MeshService, workloads: readonly Workload[]): readonly Endpoint[] {
  const { selector } = service;
  if (selector === undefined || service.registry !== 'Kubernetes') return [];
  return service.ports.flatMap((port) =>
    workloads
      .filter((w) => w.kind === 'WorkloadEntry' && w.ready && selects(selector, w.labels) && isAddress(w))
      .map((workload) => {
        const target = port.targetPort ?? port.number;
        const named = ownValue(workload.ports, typeof target === 'string' ? target : port.name);
        return fromWorkload(workload, named ?? (typeof target === 'number' ? target : port.number), port.name);
      }),
  );
}

const NO_WORKLOAD = {
  labels: {},
  locality: '',
  network: '',
  identity: '',
  tlsMode: 'disabled',
  workload: '',
  nodeName: '',
} as const;

const targetOf = (port: ServicePort): number => (typeof port.targetPort === 'number' ? port.targetPort : port.number);

function inline(endpoint: InlineEndpoint, port: ServicePort, namespace: string, cluster: string): Endpoint {
  const path = endpoint.address.startsWith('unix://') ? endpoint.address.slice('unix://'.length) : undefined;
  const { locality } = endpoint;
  const network = endpoint.network || (endpoint.labels[networkLabel] ?? '');
  return {
    ...NO_WORKLOAD,
    addresses: [path ?? endpoint.address],
    port: path === undefined ? (ownValue(endpoint.ports, port.name) ?? targetOf(port)) : 0,
    portName: port.name,
    servicePort: port.number,
    labels: endpoint.isHost ? {} : augmentLabels(endpoint.labels, { locality, network, cluster, nodeName: '' }),
    locality,
    network,
    cluster,
    identity: endpoint.identity,
    tlsMode: endpoint.tlsMode,
    ...(endpoint.weight === undefined ? {} : { weight: endpoint.weight }),
    namespace,
  };
}

function selected(service: MeshService, port: ServicePort, workloads: readonly Workload[]): Endpoint[] {
  return workloads
    .filter((w) => w.ready && selects(service.selector!, w.labels) && (isDns(service) || isAddress(w)))
    .map((workload) => {
      const number = workload.kind === 'WorkloadEntry' ? ownValue(workload.ports, port.name) : undefined;
      const endpoint = fromWorkload(workload, number ?? targetOf(port), port.name);
      return { ...endpoint, servicePort: port.number };
    });
}

/**
 * WorkloadEntries may name hosts or sockets; only services that resolve names can use these. One without an address is
 * behind the gateway of its network.
 */
function isAddress(workload: Workload): boolean {
  if (workload.addresses.length === 0) return workload.network !== '';
  return workload.addresses.some((address) => /^[0-9.]+$|:/.test(address) && !address.startsWith('unix:'));
}

function fromWorkload(workload: Workload, port: number, portName: string): Endpoint {
  return {
    addresses: workload.kind === 'Pod' ? workload.addresses.slice(0, 1) : workload.addresses,
    port,
    portName,
    ...(workload.kind === 'Pod' ? { health: 'Healthy' as const } : {}),
    labels: workload.labels,
    locality: workload.locality,
    network: workload.network,
    cluster: workload.cluster,
    identity: workload.identity,
    tlsMode: workload.tlsMode,
    ...(workload.weight === undefined ? {} : { weight: workload.weight }),
    workload: workload.workload,
    namespace: workload.namespace,
    nodeName: workload.nodeName,
  };
}
