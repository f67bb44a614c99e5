import type { DestinationRuleModel, HashKey } from './traffic-policy.ts';
import { type Labels, printSelector } from './labels.ts';
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
  /** See {@link matchesSelector}. */
  readonly matched: readonly string[];
}

/**
 * Whether the client's proxy has all labels of a selector.
 *
 * @param matched of the selectors that routes and rules mention, those that it has the labels of, as `printSelector`
 * prints them.
 */
export function matchesSelector({ matched }: Pick<Client, 'matched'>, selector: Labels): boolean {
  for (const _ in selector) return matched.includes(printSelector(selector));
  return true;
}

/** The client that DestinationRules are for. */
export type RuleClient = Pick<Client, 'namespace' | 'matched'>;

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

/** Equal for destinations that lead to the same place from a listener. */
export function destinationKey({ host, subset, port }: DestinationName): string {
  return `${port ?? ''}|${subset}|${host}`;
}

/** Where destinations lead from one listener, by {@link destinationKey}. */
export type Targets = ReadonlyMap<string, DestinationTarget>;

/** Of a destination that the table was made for. */
export function targetIn(targets: Targets, destination: DestinationName): DestinationTarget {
  const target = targets.get(destinationKey(destination));
  if (target === undefined)
    throw new Error(`a destination was not resolved beforehand: ${destinationKey(destination)}`);
  return target;
}
