import type { EncodedResource } from './store/resource.ts';

/** What the protocol needs to know about a resource type. The composition root builds the table of types. */
export interface ResourceType {
  readonly typeUrl: string;
  /** As in metrics: cds, eds, lds, rds. */
  readonly shortName: string;
  /** A first request without names means "everything" (CDS and LDS). */
  readonly wildcard: boolean;
  /** State of the world: what a response lacks is deleted (CDS and LDS); otherwise it stays unchanged (EDS and RDS). */
  readonly fullState: boolean;
  /**
   * The answer for a name that does not exist, so that no proxy waits forever: an empty table, an empty assignment.
   * Undefined for types where absence is an answer.
   */
  readonly whenAbsent?: (name: string) => EncodedResource;
  /**
   * Type URL of the resources that those of this type belong to, name for name (EDS: CDS). A client that gets a changed
   * cluster warms it until its assignment comes again, without asking: the assignment is sent right after.
   */
  readonly behind?: string;
  /**
   * Type URL of the resources that leaves of this type name in `clusters` (LDS, RDS: CDS). A name is not sent before
   * the client can use the resource that it refers to, and that resource is not removed while the client may still use
   * the name.
   */
  readonly refersTo?: string;
  /** Clients may reject it: a new version goes to one client of a build first. */
  readonly isTried?: boolean;
  /** When replaced or removed, it keeps serving what it has accepted until the client's drain time is over (LDS). */
  readonly drains?: boolean;
  /**
   * Computed only while someone asks for it, which {@link AdsEvents.asked} reports. There is always something once it is
   * computed, and nothing is answered before.
   */
  readonly onDemand?: true;
  /** At least this many milliseconds pass between two responses of this type on a stream. */
  readonly paceMs?: number;
  /**
   * A gRPC service of its own. A client that uses several of them has a stream for each, and nothing on one waits for
   * another.
   */
  readonly service?: DiscoveryService;
}

/** A gRPC service, and its two methods. */
export interface DiscoveryService {
  readonly name: string;
  readonly stream: string;
  readonly delta: string;
}

/** Types in the order in which they are sent within a push: CDS, EDS, LDS, RDS. */
export type ResourceTypes = readonly ResourceType[];

/** A proxy as its first request described it. Plain JSON. */
export interface ConnectedProxy {
  /** Unique in this process. */
  readonly stream: string;
  readonly nodeId: string;
  readonly nodeCluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality: { readonly region: string; readonly zone: string; readonly subZone: string };
  /** `user_agent_name` and build version, e.g. `envoy 1.40.0`; empty when unknown. */
  readonly build: string;
  /** Names of the extensions that it has besides Envoy's own (`envoy.…`); empty if it did not report any. */
  readonly extensions: readonly string[];
  /** `client_features`: what it says that it understands. Shown to people; nothing depends on it. */
  readonly features?: readonly string[];
  /** From its credential; absent: it came without one, on the plaintext port. */
  readonly identity?: PeerIdentity;
}

/** Who a client has proven to be: `spiffe://trustDomain/ns/namespace/sa/serviceAccount`. */
export interface PeerIdentity {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The id of the cluster that vouches for it: its account is one of this cluster. */
  readonly cluster: string;
  /**
   * Whose it is when it comes to shares and to what others are sent: those of a namespace of the own cluster, or of all of
   * another cluster, which can vouch for as many namespaces as it likes. Never empty.
   */
  readonly tenant: string;
}

/** Why a proxy is not admitted, or a question not answered. */
export interface Denial {
  readonly code: 'RESOURCE_EXHAUSTED' | 'PERMISSION_DENIED' | 'UNAUTHENTICATED' | 'INVALID_ARGUMENT';
  readonly message: string;
}

/**
 * Request types that ask about this server instead of subscribing to configuration. Each request gets one response.
 * Whoever asks is not a proxy: nothing is computed for it, and its node does not matter.
 */
export interface Questions {
  isOne(typeUrl: string): boolean;
  /** Settles soon after the signal has fired. */
  answer(question: Question, signal: AbortSignal): Promise<Answer | Denial>;
}

export interface Question {
  readonly typeUrl: string;
  readonly names: readonly string[];
  /** IP address of the client. */
  readonly address: string;
  /** Absent: it came without a credential, on the plaintext port. */
  readonly identity?: PeerIdentity;
}

export interface Answer {
  readonly resources: readonly EncodedResource[];
  /** Identifies this process to the client. */
  readonly controlPlane?: string;
}

/** A proxy whose stream has ended. */
export interface DisconnectedProxy extends Pick<ConnectedProxy, 'stream' | 'nodeId'> {
  /** It accepted something that it was sent: it is likely to come back. */
  readonly acknowledged: boolean;
}

/** A response that a proxy rejected, as far as the rejection could be pinned to resources. */
export interface Rejection {
  readonly stream: string;
  readonly nodeId: string;
  readonly build: string;
  readonly typeUrl: string;
  /** The first of the rejected resources, if known. */
  readonly name?: string;
  readonly version?: string;
  /** How many resources were rejected. */
  readonly resources?: number;
  /** The proxy's own words, cut to a bounded length. */
  readonly message: string;
}

/** What the protocol layer reports to the rest of the program. Called synchronously; must be cheap. */
export interface AdsEvents {
  /** Before `connected`: why to reject this proxy, ending its stream; undefined to admit it. */
  admit?(proxy: ConnectedProxy, address: string): Denial | undefined;
  /**
   * The answer is a `WorldChange` for the stream in a later publication; until then its requests wait. `address`: the
   * IP address that it came from. Thousands of proxies may share one; it is for budgets, not for what a proxy is sent.
   */
  connected(proxy: ConnectedProxy, address: string): void;
  /** Between `connected` and its answer: others come first, and nothing is computed for this proxy yet. */
  isDeferred?(stream: string): boolean;
  disconnected(proxy: DisconnectedProxy): void;
  /** A stream requests a type that is computed on demand, for the first time. It has been `connected`. */
  asked?(stream: string, typeUrl: string): void;
  rejected(rejection: Rejection): void;
  /** All that a change means for one client is on its way, this many milliseconds after the change came. */
  converged?(ms: number): void;
}
