import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';

/**
 * Who looks a rule up: clients in its own namespace, clients in other namespaces, and, for rules in the root namespace,
 * proxies in that namespace, which are bound only by rules exported to it alone.
 */
export type RuleAudience = 'own' | 'others' | 'private';

/** A DestinationRule as parsed; rules with the same namespace, host and visibility are merged into one. */
export interface DestinationRuleModel extends Aged {
  /** `namespace/host@...`: unique among merged rules. Used in keys, so it must not change with the content. */
  readonly id: string;
  /** Resolved to a full name; may be a wildcard. */
  readonly host: string;
  /** `*` or namespaces; `.` is already replaced. Sorted. */
  readonly exportTo: readonly string[];
  readonly workloadSelector?: Labels;
  /**
   * Absent: all audiences that `exportTo` implies. Rules for one host with different exports are merged per audience.
   */
  readonly audiences?: readonly RuleAudience[];
  readonly policy: TrafficPolicy;
  readonly portPolicies: Readonly<Record<number, TrafficPolicy>>;
  readonly subsets: readonly Subset[];
  readonly origins: readonly ObjectRef[];
}

export interface Subset {
  readonly name: string;
  readonly labels: Labels;
  readonly policy: TrafficPolicy;
  readonly portPolicies: Readonly<Record<number, TrafficPolicy>>;
}

/** Blocks replace each other as a whole; fields within a block are never merged. */
export interface TrafficPolicy {
  readonly connectionPool?: ConnectionPool;
  readonly loadBalancer?: LoadBalancer;
  readonly outlierDetection?: OutlierDetection;
  readonly tls?: ClientTls;
  readonly proxyProtocol?: 'V1' | 'V2';
  readonly retryBudget?: RetryBudget;
  readonly tunnel?: Tunnel;
}

export interface Tunnel {
  readonly protocol: 'CONNECT' | 'POST';
  readonly targetHost: string;
  readonly targetPort: number;
}

export interface RetryBudget {
  readonly percent?: number;
  readonly minRetryConcurrency?: number;
  readonly budgetInterval?: number;
}

/** Durations are in milliseconds; absent fields are unset in the rule. */
export interface ConnectionPool {
  readonly tcp: {
    readonly maxConnections?: number;
    readonly connectTimeout?: number;
    readonly idleTimeout?: number;
    readonly maxConnectionDuration?: number;
    readonly tcpKeepalive?: { readonly probes?: number; readonly time?: number; readonly interval?: number };
  };
  readonly http: {
    readonly http1MaxPendingRequests?: number;
    readonly http2MaxRequests?: number;
    readonly maxRequestsPerConnection?: number;
    readonly maxRetries?: number;
    readonly idleTimeout?: number;
    readonly h2UpgradePolicy?: 'DO_NOT_UPGRADE' | 'UPGRADE';
    readonly useClientProtocol: boolean;
    readonly maxConcurrentStreams?: number;
    readonly http2KeepAlive?: { readonly interval?: number; readonly timeout?: number };
  };
}

export interface LocalityLbSetting {
  readonly distribute: readonly { readonly from: string; readonly to: Readonly<Record<string, number>> }[];
  readonly failover: readonly { readonly from: string; readonly to: string }[];
  readonly failoverPriority: readonly string[];
}

export interface LoadBalancer {
  readonly simple?: 'UNSPECIFIED' | 'LEAST_CONN' | 'LEAST_REQUEST' | 'RANDOM' | 'PASSTHROUGH' | 'ROUND_ROBIN';
  readonly consistentHash?: ConsistentHash;
  readonly backendUtilization?: BackendUtilization;
  /** `enabled: false` is kept: it switches off the mesh default. */
  readonly localityLb?: LocalityLbSetting & { readonly enabled: boolean };
  readonly warmup?: { readonly duration: number; readonly minimumPercent?: number; readonly aggression?: number };
  /** Deprecated warmupDurationSecs. */
  readonly warmupDuration?: number;
}

/** Weights from the load that endpoints report (ORCA). Absent fields: Envoy's defaults, which are those of the API. */
export interface BackendUtilization {
  readonly stabilizationPeriod?: number;
  readonly expirationPeriod?: number;
  readonly updatePeriod?: number;
  /** In percent of the share of errors. */
  readonly errorPenaltyPercent?: number;
  readonly metricNames: readonly string[];
}

export interface ConsistentHash {
  readonly key?: HashKey;
  readonly ring?:
    | { readonly kind: 'ringHash'; readonly minimumRingSize?: number }
    | { readonly kind: 'maglev'; readonly tableSize?: number };
  /** Deprecated field next to `ringHash`. */
  readonly minimumRingSize?: number;
}

export type HashKey =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'queryParameter'; readonly name: string }
  | { readonly kind: 'sourceIp' }
  | {
      readonly kind: 'cookie';
      readonly name: string;
      readonly path: string;
      /** Milliseconds; absent: no cookie is generated. */
      readonly ttl?: number;
      readonly attributes: readonly { readonly name: string; readonly value: string }[];
    };

export interface OutlierDetection {
  readonly consecutive5xx?: number;
  readonly consecutiveGatewayErrors?: number;
  readonly splitExternalLocalOriginErrors: boolean;
  readonly consecutiveLocalOriginFailures?: number;
  readonly interval?: number;
  readonly baseEjectionTime?: number;
  readonly maxEjectionPercent?: number;
  readonly minHealthPercent?: number;
  /** HTTP statuses that count as errors, instead of 5xx. */
  readonly httpErrorCodes?: readonly number[];
  /** From this share of failed requests on, an endpoint is ejected. */
  readonly failurePercentageThreshold?: number;
}

export interface ClientTls {
  readonly mode: 'DISABLE' | 'SIMPLE' | 'MUTUAL' | 'ISTIO_MUTUAL';
  readonly clientCertificate: string;
  readonly privateKey: string;
  /** Path; empty: the roots of the operating system. */
  readonly caCertificates: string;
  /** Path of a certificate revocation list; empty: none. */
  readonly caCrl: string;
  readonly credentialName: string;
  /** The Secret or ConfigMap with the roots; empty: those of `credentialName` or the files. */
  readonly caCredentialName: string;
  /** Paths in its object of the settings that name the Secrets of the pair and of the roots, if one of them is set. */
  readonly credentialFields?: { readonly pair: string; readonly roots: string };
  /** Path of the setting in its object, if it names files. */
  readonly filesField?: string;
  readonly subjectAltNames: readonly string[];
  readonly sni: string;
  readonly insecureSkipVerify: boolean;
  /** The files that it names may not be used here, so no connection may succeed. */
  readonly isWithheld?: true;
}
