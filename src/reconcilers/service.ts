import type { Namespace, Service } from '../api/core.ts';
import { refOf } from '../api/object.ts';
import type { MeshService, Resolution } from '../model/service.ts';
import { settleExportTo } from './export-to.ts';
import { servicePortProtocol } from './protocol.ts';

export interface ServiceContext {
  readonly source: string;
  readonly domainSuffix: string;
  readonly trustDomain: string;
  readonly defaultExportTo: readonly string[];
  /** The Namespace of the Service: its annotation is the default traffic distribution. */
  readonly namespace?: Namespace | undefined;
}

/** The host that a Kubernetes Service claims. */
export function reconcileService(object: Service, context: ServiceContext): MeshService {
  const { name, namespace = '' } = object.metadata;
  const annotations = object.metadata.annotations ?? {};
  const spec = object.spec ?? {};
  const distribution = trafficDistribution(
    spec.trafficDistribution ??
      annotations['networking.istio.io/traffic-distribution'] ??
      context.namespace?.metadata.annotations?.['networking.istio.io/traffic-distribution'],
  );
  return {
    host: `${name}.${namespace}.svc.${context.domainSuffix}`,
    namespace,
    name,
    createdAt: object.metadata.creationTimestamp ?? '',
    registry: 'Kubernetes',
    resolution: resolutionOf(spec),
    ports: (spec.ports ?? []).map((port) => ({
      name: port.name ?? '',
      number: port.port,
      protocol: servicePortProtocol(port),
      ...(port.targetPort === undefined ? {} : { targetPort: port.targetPort }),
    })),
    addresses: addressesOf(spec),
    autoAddresses: [],
    exportTo: settleExportTo(list(annotations['networking.istio.io/exportTo']), namespace, context.defaultExportTo),
    meshExternal: spec.type === 'ExternalName',
    labels: object.metadata.labels ?? {},
    ...(spec.selector === undefined || Object.keys(spec.selector).length === 0 ? {} : { selector: spec.selector }),
    ...(spec.type === 'ExternalName' && spec.externalName ? { externalName: spec.externalName } : {}),
    endpoints: [],
    subjectAltNames: [
      ...list(annotations['alpha.istio.io/canonical-serviceaccounts']),
      ...list(annotations['alpha.istio.io/kubernetes-serviceaccounts']).map(
        (account) => `spiffe://${context.trustDomain}/ns/${namespace}/sa/${account}`,
      ),
    ],
    ...(distribution === undefined ? {} : { trafficDistribution: distribution }),
    nodeLocal: spec.internalTrafficPolicy === 'Local',
    publishNotReadyAddresses: spec.publishNotReadyAddresses === true,
    aliases: [],
    raceConnect: false,
    origins: [refOf(context.source, object)],
  };
}

function resolutionOf(spec: NonNullable<Service['spec']>): Resolution {
  if (spec.clusterIP === 'None') return 'Passthrough';
  return spec.type === 'ExternalName' && spec.externalName ? 'Alias' : 'ClientSideLB';
}

function addressesOf(spec: NonNullable<Service['spec']>): readonly string[] {
  if (spec.clusterIP === undefined || spec.clusterIP === '' || spec.clusterIP === 'None') return ['0.0.0.0'];
  return spec.clusterIPs !== undefined && spec.clusterIPs.length > 1 ? spec.clusterIPs : [spec.clusterIP];
}

/** A comma separated annotation. */
function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** `PreferClose` and its newer names; anything else is no preference. */
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
