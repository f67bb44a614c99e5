/**
 * The fields of core kinds that Fairlead reads. What a source delivers may have more; nothing here is written back.
 */
import type { KubernetesObject } from './object.ts';

export interface Namespace extends KubernetesObject {
  readonly kind: 'Namespace';
}

/** Labels and annotations say where a node is; nothing else of it matters. */
export interface Node extends KubernetesObject {
  readonly kind: 'Node';
}

export interface ConfigMap extends KubernetesObject {
  readonly kind: 'ConfigMap';
  readonly data?: Readonly<Record<string, string>>;
}

export interface Service extends KubernetesObject {
  readonly kind: 'Service';
  readonly spec?: ServiceSpec;
  readonly status?: ServiceStatus;
}

export interface ServiceSpec {
  /** ClusterIP when absent. */
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** `None` for a headless Service. */
  readonly clusterIP?: string;
  /** One for each IP family; the first one is `clusterIP`. */
  readonly clusterIPs?: readonly string[];
  readonly externalIPs?: readonly string[];
  readonly externalName?: string;
  readonly ports?: readonly CoreServicePort[];
  readonly selector?: Readonly<Record<string, string>>;
  readonly publishNotReadyAddresses?: boolean;
  readonly internalTrafficPolicy?: 'Cluster' | 'Local';
  /** `PreferClose`, `PreferSameZone`, `PreferSameNode`, or a name that is not known yet. */
  readonly trafficDistribution?: string;
}

export interface CoreServicePort {
  /** May be absent when there is one port only. */
  readonly name?: string;
  readonly port: number;
  /** TCP when absent. */
  readonly protocol?: Transport;
  readonly appProtocol?: string;
  /** A number, or the name of a container port. The same as `port` when absent. */
  readonly targetPort?: number | string;
  readonly nodePort?: number;
}

export type Transport = 'TCP' | 'UDP' | 'SCTP';

export interface ServiceStatus {
  readonly loadBalancer?: {
    readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[];
  };
}

export interface EndpointSlice extends KubernetesObject {
  readonly kind: 'EndpointSlice';
  readonly addressType: 'IPv4' | 'IPv6' | 'FQDN';
  readonly endpoints?: readonly SliceEndpoint[] | null;
  readonly ports?: readonly SlicePort[] | null;
}

export interface SliceEndpoint {
  readonly addresses: readonly string[];
  /** null and absent mean the same. */
  readonly conditions?: {
    readonly ready?: boolean | null;
    readonly serving?: boolean | null;
    readonly terminating?: boolean | null;
  };
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly zone?: string;
  readonly targetRef?: TargetRef;
}

export interface SlicePort {
  /** Name of the port of the Service; empty for one that is alone. */
  readonly name?: string;
  readonly port?: number;
  readonly protocol?: Transport;
  readonly appProtocol?: string;
}

/** What runs behind an address, mostly a Pod. */
export interface TargetRef {
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
}

/** The legacy kind, for Services that have no slice. */
export interface Endpoints extends KubernetesObject {
  readonly kind: 'Endpoints';
  readonly subsets?: readonly EndpointSubset[];
}

export interface EndpointSubset {
  readonly addresses?: readonly EndpointAddress[];
  readonly notReadyAddresses?: readonly EndpointAddress[];
  readonly ports?: readonly EndpointPort[];
}

export interface EndpointAddress {
  readonly ip: string;
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly targetRef?: TargetRef;
}

export interface EndpointPort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: Transport;
  readonly appProtocol?: string;
}

export interface Pod extends KubernetesObject {
  readonly kind: 'Pod';
  readonly spec?: PodSpec;
  readonly status?: PodStatus;
}

export interface PodSpec {
  readonly containers?: readonly Container[];
  /** Those with restartPolicy Always run beside the containers and have ports of their own. */
  readonly initContainers?: readonly Container[];
  readonly serviceAccountName?: string;
  readonly nodeName?: string;
  readonly hostNetwork?: boolean;
  /** Own DNS names of the Pod within a headless Service. */
  readonly hostname?: string;
  readonly subdomain?: string;
}

export interface Container {
  readonly name: string;
  readonly ports?: readonly ContainerPort[];
  readonly restartPolicy?: string;
}

export interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol?: Transport;
}

export interface PodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}
