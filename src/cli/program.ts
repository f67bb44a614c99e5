import type { ConnectedProxy } from '../ads/types.ts';
import type { ClusterSettings, Config, MeshSettings, SourceConfig } from '../config/config.ts';
import type { PeerAddress } from '../debug/peer-address.ts';
import type { ClusterReport } from '../debug/cluster-report.ts';
import type { StatusReport } from '../debug/status-report.ts';
import type { RotationReport } from '../identity/rotation-report.ts';
import type { ServedType } from '../envoy/encode/served-types.ts';

/**
 * What the commands do, provided by the composition root. A mistake that the user can fix is thrown as an error with
 * one of the codes in `explainedCodes`; any other error is a bug and is printed with its stack.
 */
export interface Program {
  /** Serves until the signal fires, and settles once everything is closed. Rejects if it cannot start. */
  serve(config: Config, signal: AbortSignal): Promise<void>;
  /** Finds what is wrong with the objects in files. */
  check(request: CheckRequest): Promise<CheckResult>;
  /** Computes what a proxy would receive for the objects in files. */
  translate(request: TranslateRequest): Promise<Translation>;
  /** Says what a workload's proxy answers to a request, and which policy is why. */
  explainAccess(question: AccessQuestion, signal: AbortSignal): Promise<AccessAnswer>;
  /** What replicas say of who has what. Those that do not answer are among them. */
  status(request: StatusRequest, signal: AbortSignal): Promise<readonly ReplicaStatus[]>;
  /** What replicas say of the clusters that objects come from. */
  clusters(request: ReplicaRequest, signal: AbortSignal): Promise<readonly ReplicaClusters[]>;
  /** Who has an address, as replicas know it from clusters of a ClusterMesh. */
  identities(request: IdentitiesRequest, signal: AbortSignal): Promise<readonly ReplicaIdentities[]>;
  /** Records a running server. */
  record(request: RecordRequest, signal: AbortSignal): Promise<{ readonly bytes: number }>;
  /** Computes again what a recording has. */
  replay(path: string): Promise<Replay>;
  /** What proxies in a cluster trust, as the leader has published it, or undefined if it has not. */
  identity(cluster: ClusterSettings, signal: AbortSignal): Promise<RotationReport | undefined>;
  /** Lets go of the endpoints that are held for a Service. */
  release(cluster: ClusterSettings, service: ServiceName, signal: AbortSignal): Promise<void>;
}

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** Codes of errors whose message says everything: what is wrong, and where. */
export const explainedCodes: ReadonlySet<string> = new Set([
  ...['CLUSTER', 'CONFIG', 'DIRECTORY', 'INTERCEPTION', 'KUBECONFIG', 'LISTEN', 'USAGE'],
]);

export interface ReplicaRequest {
  /** `host:port` of each replica; or all in a cluster. */
  readonly from: { readonly addresses: readonly string[] } | ClusterSettings;
}

export interface StatusRequest extends ReplicaRequest {
  /** `pod.namespace` or the id of a node: only this proxy, and the objects that wait for it. */
  readonly proxy?: string;
}

/** `address`: or `namespace/pod`. */
export type ReplicaAnswer<Report> = { readonly address: string } & (
  | { readonly report: Report }
  /** Why there is no report. */
  | { readonly failure: string }
);

export type ReplicaStatus = ReplicaAnswer<StatusReport>;
export type ReplicaClusters = ReplicaAnswer<readonly ClusterReport[]>;

export type ReplicaIdentities = ReplicaAnswer<readonly PeerAddress[]>;

export interface IdentitiesRequest extends ReplicaRequest {
  readonly address: string;
}

export interface RecordRequest {
  readonly file: string;
  /** `host:port` of a server on this machine. */
  readonly server: string;
  readonly seconds: number;
}

export interface Replay {
  /** After the state in which the recording begins. */
  readonly commits: number;
  readonly resources: number;
  /** Version that made the recording, if it is another. */
  readonly recordedBy?: string;
  /** Why the recording ends. */
  readonly end?: string;
  /** The first resource that is not as recorded. */
  readonly difference?: {
    readonly commit: number;
    readonly resource: string;
    readonly recorded: string;
    readonly computed: string;
  };
}

export interface CheckRequest {
  /** Directories or files. */
  readonly paths: readonly string[];
  /** The files are complete: a reference to anything outside them is an error, not a warning. */
  readonly complete: boolean;
  readonly mesh: MeshSettings;
}

export interface CheckResult {
  /** In the order of printing. */
  readonly findings: readonly Finding[];
  /** Number of objects that were checked. */
  readonly objects: number;
  /** Number of objects of kinds that Fairlead does not know. */
  readonly ignored: number;
}

/** One finding about the files: a report from the directory, or a Problem with its location. */
export interface Finding {
  readonly severity: 'error' | 'warning';
  readonly file?: string;
  readonly line?: number;
  /** Absent if the finding is about a file, or a document that is not an object. */
  readonly object?: { readonly kind: string; readonly namespace: string; readonly name: string };
  /** Empty for the object, document or file as a whole. */
  readonly field: string;
  /** A ProblemReason, or `Unreadable` for a report from the directory. */
  readonly reason: string;
  readonly message: string;
}

/** A proxy as its node describes it. */
export type ProxyNode = Omit<ConnectedProxy, 'stream'>;

export interface TranslateRequest {
  readonly paths: readonly string[];
  readonly proxy: ProxyNode;
  readonly mesh: MeshSettings;
  /** Also list what everything was made from. */
  readonly explain?: boolean;
}

export interface Translation {
  /** Protobuf JSON with `@type`, in the order of sending. EDS, RDS and SDS: everything that CDS and LDS name. */
  readonly resources: Readonly<Record<ServedType, readonly ResourceJson[]>>;
  /** What these were made from, if requested. */
  readonly explained?: Readonly<Record<ServedType, readonly ExplainedResource[]>>;
  /** What is wrong with the content of the files. Anything with errors is left out, as in a server. */
  readonly findings: readonly Finding[];
  /** Why the proxy receives nothing: a server would refuse it. */
  readonly refusal?: string;
  /** Why the proxy receives nothing although a server would serve it. */
  readonly remark?: string;
}

/** Locations as `FILE:LINE: KIND/NAMESPACE/NAME: FIELD`. Empty if no single object accounts for it. */
export interface ExplainedResource {
  readonly name: string;
  readonly from?: readonly string[];
  /** For a route table. */
  readonly virtualHosts?: readonly ExplainedVirtualHost[];
}

export interface ExplainedVirtualHost {
  readonly name: string;
  /** What its names come from. */
  readonly from: readonly string[];
  readonly routes: readonly {
    readonly name?: string;
    /** As protobuf JSON. */
    readonly match: object;
    readonly from: readonly string[];
  }[];
}

export interface AccessQuestion {
  readonly source: SourceConfig;
  readonly mesh: MeshSettings;
  /** See {@link Config}. */
  readonly jwksAllowedNetworks: readonly string[];
  /** SPIFFE ID, or `namespace/account` in the mesh's trust domain, or undefined if there is none. */
  readonly from: string | undefined;
  readonly to: { readonly namespace: string; readonly name: string };
  /** Undefined: the only one that the workload serves. */
  readonly port: number | undefined;
  readonly method: string;
  readonly path: string;
  readonly host: string | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly sourceIp: string | undefined;
  readonly token: string | undefined;
}

export interface AccessAnswer {
  readonly verdict: 'allowed' | 'denied' | 'unknown';
  /** The HTTP status of a denial; or the connection is closed. */
  readonly answer?: 401 | 403 | 'closed';
  /** Why, as the end of a sentence. */
  readonly reason: string;
  /** What decides, as {@link ExplainedResource} names it; of several policies of which none allows it, all. */
  readonly by: readonly string[];
  /** What else happens to the request, and what was assumed. */
  readonly remarks: readonly string[];
  /** About the policies in the workload's reach. */
  readonly findings: readonly Finding[];
}

export type ResourceJson = Readonly<Record<string, unknown>> & { readonly '@type': string };
