/** The fields of core kinds that Fairlead reads. A source may deliver more; nothing here is written back. */
import type { KubernetesObject } from './object.ts';

export interface Namespace extends KubernetesObject {
  readonly kind: 'Namespace';
}

/** Labels and annotations say where a node is, external addresses how others reach it. */
export interface Node extends KubernetesObject {
  readonly kind: 'Node';
  readonly status?: { readonly addresses?: readonly { readonly type: string; readonly address: string }[] };
}

export interface ConfigMap extends KubernetesObject {
  readonly kind: 'ConfigMap';
  readonly data?: Readonly<Record<string, string>>;
}

/** Its entries are read, and nothing else. They are never shown. */
export interface Secret extends KubernetesObject {
  readonly kind: 'Secret';
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
  /** In files only; takes precedence. */
  readonly stringData?: Readonly<Record<string, string>>;
}

export interface Service extends KubernetesObject {
  readonly kind: 'Service';
  readonly spec?: ServiceSpec;
  readonly status?: ServiceStatus;
}

export interface ServiceSpec {
  /** ClusterIP if absent. */
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** `None` for a headless Service. */
  readonly clusterIP?: string;
  /** One per IP family; the first is `clusterIP`. */
  readonly clusterIPs?: readonly string[];
  /** Of its addresses, or of its endpoints if it is headless. */
  readonly ipFamilies?: readonly ('IPv4' | 'IPv6')[];
  readonly externalIPs?: readonly string[];
  readonly externalName?: string;
  readonly ports?: readonly CoreServicePort[];
  readonly selector?: Readonly<Record<string, string>>;
  readonly publishNotReadyAddresses?: boolean;
  readonly internalTrafficPolicy?: 'Cluster' | 'Local';
  /** `PreferClose`, `PreferSameZone`, `PreferSameNode`, or a name that is not known yet. */
  readonly trafficDistribution?: string;
  /** Proxies ignore it. */
  readonly sessionAffinity?: 'None' | 'ClientIP';
  readonly sessionAffinityConfig?: { readonly clientIP?: { readonly timeoutSeconds?: number } };
}

export interface CoreServicePort {
  /** May be absent if there is only one port. */
  readonly name?: string;
  readonly port: number;
  /** TCP if absent. */
  readonly protocol?: Transport;
  readonly appProtocol?: string;
  /** A number, or the name of a container port. The same as `port` if absent. */
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
  /** null means the same as absent. */
  readonly conditions?: {
    readonly ready?: boolean | null;
    readonly serving?: boolean | null;
    readonly terminating?: boolean | null;
  };
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly zone?: string;
  /** The zones whose clients are to use it. */
  readonly hints?: { readonly forZones?: readonly { readonly name: string }[] | null };
  readonly targetRef?: TargetRef;
}

export interface SlicePort {
  /** Name of the Service's port; empty if it is the only one. */
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

/** The legacy kind, for Services without slices. */
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
  /** Containers with restartPolicy Always run beside the others and have their own ports. */
  readonly initContainers?: readonly Container[];
  readonly serviceAccountName?: string;
  readonly nodeName?: string;
  readonly hostNetwork?: boolean;
  /** For the Pod's own DNS names within a headless Service. */
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
