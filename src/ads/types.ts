import type { EncodedResource } from './store/resource.ts';

/** What the protocol has to know about a resource type. The table of types is made by the composition root. */
export interface ResourceType {
  readonly typeUrl: string;
  /** As in metrics: cds, eds, lds, rds. */
  readonly shortName: string;
  /** A first request without names means "everything" (CDS and LDS). */
  readonly wildcard: boolean;
  /** State of the world: what a response lacks is deleted (CDS and LDS); otherwise it stays unchanged (EDS and RDS). */
  readonly fullState: boolean;
  /**
   * What a name that does not exist is answered with, so that no proxy waits for ever: an empty table, an empty
   * assignment. Undefined for types where absence is an answer.
   */
  readonly whenAbsent?: (name: string) => EncodedResource;
  /**
   * Type URL of the resources that those of this type belong to, name for name (EDS: CDS). A client that gets a
   * changed cluster warms it until its assignment comes again, without asking: it is sent right behind.
   */
  readonly behind?: string;
  /**
   * Type URL of the resources that leaves of this type name in `clusters` (LDS, RDS: CDS): a name is not sent before
   * the client can use what it stands for, and that is not removed while the client may still use the name.
   */
  readonly refersTo?: string;
  /** A replaced or removed one serves on what it has accepted until the client's drain time is over (LDS). */
  readonly drains?: boolean;
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
  /** Names of the extensions that it has beside those of Envoy itself (`envoy.…`); empty when it did not say. */
  readonly extensions: readonly string[];
}

/** A proxy whose stream is over. */
export interface DisconnectedProxy extends Pick<ConnectedProxy, 'stream' | 'nodeId'> {
  /** It took something that it was sent: it is likely to come back. */
  readonly acknowledged: boolean;
}

/** A response that a proxy refused, as far as it could be pinned to resources. */
export interface Refusal {
  readonly stream: string;
  readonly nodeId: string;
  readonly build: string;
  readonly typeUrl: string;
  /** The first of the refused resources, when they are known. */
  readonly name?: string;
  readonly version?: string;
  /** How many they are. */
  readonly resources?: number;
  /** The proxy's own words, cut to a bounded length. */
  readonly message: string;
}

/** What the protocol layer tells the rest of the program. Called synchronously; must be cheap. */
export interface AdsEvents {
  /** Before `connected`: why this proxy is refused, which ends its stream (RESOURCE_EXHAUSTED); undefined if it is not. */
  admit?(proxy: ConnectedProxy, address: string): string | undefined;
  /**
   * The answer is a `WorldChange` for the stream in a later publication; until then its requests wait. `address`: the IP
   * address it came from. Thousands of proxies may share one; it is for budgets, and not for what a proxy is sent.
   */
  connected(proxy: ConnectedProxy, address: string): void;
  disconnected(proxy: DisconnectedProxy): void;
  refused(refusal: Refusal): void;
  /** Everything that a change meant for one client is on its way to it, so many milliseconds after the change came. */
  converged?(ms: number): void;
}
