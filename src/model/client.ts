import type { DestinationRuleModel, HashKey } from './traffic-policy.ts';
import type { Labels } from './labels.ts';
import type { MeshService } from './service.ts';
import type { Traits } from './traits.ts';

/**
 * The client side of a route or a listener: who asks, and what it can reach. Proxies that differ in nothing here share
 * everything that is generated.
 */
export interface Client {
  readonly namespace: string;
  /** Suffix of cluster hosts, `cluster.local`. */
  readonly domainSuffix: string;
  readonly traits: Traits;
  /** Whether the proxy has all the labels of a selector that a sourceLabels or workloadSelector mentions. */
  matches(selector: Labels): boolean;
}

/** What a route says about where requests go. */
export interface DestinationName {
  readonly host: string;
  readonly subset: string;
  readonly port?: number;
}

/** Where a destination of a route leads, as this client sees it. */
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
   * Host, port or subset does not exist or is not visible, or there is no endpoint of a service that Envoy looks up,
   * which has no cluster then: `BlackHoleCluster` with its weight kept.
   */
  | {
      readonly kind: 'missing';
      readonly what: 'host' | 'port' | 'subset' | 'endpoints';
      /** The cluster that the destination would have. */
      readonly cluster: string;
    };

/** Looks a destination up; every look-up is recorded as a dependency. */
export type DestinationLookup = (destination: DestinationName, listenerPort: number) => DestinationTarget;
