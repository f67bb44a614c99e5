import type { DestinationRuleModel, HashKey } from './traffic-policy.ts';
import type { Labels } from './labels.ts';
import type { MeshService } from './service.ts';
import type { Traits } from './traits.ts';

/**
 * The client side of a route or a listener: who sends the traffic, and what it can reach. Proxies that are equal here
 * share everything that is generated.
 */
export interface Client {
  readonly namespace: string;
  /** Suffix of cluster hosts, `cluster.local`. */
  readonly domainSuffix: string;
  readonly traits: Traits;
  /** Whether the proxy has all labels of a selector that a sourceLabels or workloadSelector mentions. */
  matches(selector: Labels): boolean;
}

/** Where requests go, as a route says it. */
export interface DestinationName {
  readonly host: string;
  readonly subset: string;
  readonly port?: number;
}

/** Where a route's destination leads, as this client sees it. */
export type DestinationTarget =
  | {
      readonly kind: 'cluster';
      /** `outbound|80|v1|host` */
      readonly cluster: string;
      /** The target of an Alias, never the Alias itself. */
      readonly service: MeshService;
      readonly port: number;
      readonly rule?: DestinationRuleModel;
      /** From the consistentHash of the rule. */
      readonly hash?: HashKey;
    }
  /**
   * The host, port or subset does not exist or is not visible, or a service resolved by Envoy has no endpoints and
   * therefore no cluster: `BlackHoleCluster`, keeping its weight.
   */
  | {
      readonly kind: 'missing';
      readonly what: 'host' | 'port' | 'subset' | 'endpoints';
      /** The cluster that the destination would have. */
      readonly cluster: string;
    };

/** Looks up a destination; every lookup is recorded as a dependency. */
export type DestinationLookup = (destination: DestinationName, listenerPort: number) => DestinationTarget;
