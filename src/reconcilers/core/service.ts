import type { Namespace, Service } from '../../api/core.ts';
import { refOf } from '../../api/object.ts';
import { spiffeId } from '../../identity/spiffe.ts';
import { type Affinity, affinityOf, type GlobalUse, isClusterMesh } from '../../model/cluster-mesh.ts';
import type { MeshService, Resolution, ServicePort } from '../../model/service.ts';
import { settleExportTo } from '../export-to.ts';
import { servicePortProtocol } from '../protocol.ts';
import { readServiceLabels } from './service-labels.ts';
import { canonicalAddress, isAddress } from '../../model/address.ts';
import { canonicalHost } from '../../model/host.ts';

export interface ServiceContext {
  readonly source: string;
  readonly domainSuffix: string;
  readonly trustDomain: string;
  readonly defaultExportTo: readonly string[];
  /** The Service's Namespace: its annotation is the default traffic distribution. */
  readonly namespace?: Namespace | undefined;
}

/** The host that a Kubernetes Service claims. */
export function reconcileService(object: Service, context: ServiceContext): MeshService {
  const { name, namespace = '' } = object.metadata;
  const annotations = object.metadata.annotations ?? {};
  const spec = object.spec ?? {};
  // What other clusters of a ClusterMesh tell of is global there.
  const affinity = isClusterMesh(context.source) ? 'none' : affinityOf(annotations);
  const distribution = trafficDistribution(
    spec.trafficDistribution ??
      annotations['networking.istio.io/traffic-distribution'] ??
      context.namespace?.metadata.annotations?.['networking.istio.io/traffic-distribution'],
  );
  return {
    host: canonicalHost(`${name}.${namespace}.svc.${context.domainSuffix}`),
    namespace,
    name,
    createdAt: object.metadata.creationTimestamp ?? '',
    registry: 'Kubernetes',
    resolution: resolutionOf(spec),
    ports: portsOf(spec),
    addresses: addressesOf(spec),
    autoAddresses: [],
    exportTo: settleExportTo(list(annotations[exportToAnnotation]), namespace, context.defaultExportTo),
    meshExternal: spec.type === 'ExternalName',
    ...(spec.publishNotReadyAddresses === true && { publishesNotReady: true }),
    ...readServiceLabels(object.metadata.labels),
    ...(spec.selector === undefined || Object.keys(spec.selector).length === 0 ? {} : { selector: spec.selector }),
    ...(spec.type === 'ExternalName' && spec.externalName ? { externalName: canonicalHost(spec.externalName) } : {}),
    endpoints: [],
    subjectAltNames: [
      ...list(annotations[accountAnnotations[0]]),
      ...list(annotations[accountAnnotations[1]]).map((account) => spiffeId(context.trustDomain, namespace, account)),
    ],
    ...(distribution === undefined ? {} : { trafficDistribution: distribution }),
    ...(affinity === undefined ? {} : { global: globalUse(affinity, spec) }),
    nodeLocal: spec.internalTrafficPolicy === 'Local',
    aliases: [],
    raceConnect: false,
    origins: [refOf(context.source, object)],
  };
}

/**
 * An API server allows as many as fit into the object. Each is a cluster, a step of its own, and up to 0.2 ms of a
 * listener's step.
 */
export const mostPorts = 1000;

/** A number may appear for UDP and another transport; of two of a kind, which API servers refuse, the first counts. */
function portsOf(spec: NonNullable<Service['spec']>): ServicePort[] {
  const ports = new Map<string, ServicePort>();
  for (const port of spec.ports?.slice(0, mostPorts) ?? []) {
    const { name = '', port: number, targetPort } = port;
    const protocol = servicePortProtocol(port);
    const key = `${number} ${String(protocol === 'UDP')}`;
    if (!ports.has(key))
      ports.set(key, { name, number, protocol, ...(targetPort === undefined ? {} : { targetPort }) });
  }
  return [...ports.values()];
}

function resolutionOf(spec: NonNullable<Service['spec']>): Resolution {
  if (spec.clusterIP === 'None') return 'Passthrough';
  return spec.type === 'ExternalName' && spec.externalName ? 'Alias' : 'ClientSideLB';
}

/** Addresses only: an API server refuses anything else. */
function addressesOf({ clusterIP = '', clusterIPs = [] }: NonNullable<Service['spec']>): readonly string[] {
  const addresses = (clusterIPs.length > 1 ? clusterIPs : [clusterIP]).filter(isAddress).map(canonicalAddress);
  return isAddress(clusterIP) && addresses.length > 0 ? addresses : ['0.0.0.0'];
}

function globalUse(affinity: Affinity, spec: NonNullable<Service['spec']>): GlobalUse {
  const addresses = addressesOf(spec).filter((address) => address !== '0.0.0.0');
  const families = addresses.map((address) => (address.includes(':') ? 'IPv6' : 'IPv4'));
  return {
    affinity,
    families: families.length > 0 ? families : (spec.ipFamilies ?? ['IPv4', 'IPv6']),
    ports: (spec.ports ?? []).slice(0, mostPorts).map(({ name = '', protocol = 'TCP' }) => ({ name, protocol })),
  };
}

const exportToAnnotation = 'networking.istio.io/exportTo';
const accountAnnotations = [
  'alpha.istio.io/canonical-serviceaccounts',
  'alpha.istio.io/kubernetes-serviceaccounts',
] as const;

/** Annotations whose value is a list. */
export const listAnnotations: readonly string[] = [exportToAnnotation, ...accountAnnotations];

/**
 * Names in such a list; an API server allows a hundred thousand. Each namespace has views of its own, 5 kB and 0.15 ms, and
 * each account is in every cluster of the service.
 */
export const mostListed = 1_000;

/** A comma-separated annotation. */
export function namesIn(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function list(text: string | undefined): string[] {
  return text === undefined ? [] : namesIn(text).slice(0, mostListed);
}

/** `PreferClose` and its newer names; anything else expresses no preference. */
export function trafficDistribution(text: string | undefined): 'same-zone' | 'same-node' | undefined {
  switch (text?.toLowerCase()) {
    case 'preferclose':
    case 'prefersamezone':
      return 'same-zone';
    case 'prefersamenode':
      return 'same-node';
    default:
      return undefined;
  }
}
