import type { EncodedResource } from './resource.ts';
import type { Rollout } from '../rollouts/rollout.ts';

/**
 * What one published commit changed, in the form that the ADS store takes. The store is a forest of named lists: a list
 * has members (resources) and children (other lists). A proxy's world is everything reachable from its roots. Lists are
 * shared: most proxies reach the same ones, so a change is stored once, and the streams that it concerns are found by
 * climbing from the list to its parents, to the roots, to the streams.
 */
export interface Publication {
  readonly members: readonly MemberChange[];
  readonly lists: readonly ListChange[];
  readonly worlds: readonly WorldChange[];
}

/** A resource appeared in, changed in or left a list. */
export interface MemberChange {
  readonly list: string;
  readonly typeUrl: string;
  readonly name: string;
  /**
   * Empty: for every proxy that reaches the list. Otherwise only for proxies that have this qualifier (a locality,
   * say); a proxy never has two qualifiers under which a name exists, nor one besides the empty one.
   */
  readonly qualifier: string;
  /** Absent: it left. */
  readonly resource?: EncodedResource;
  /** The rollouts that this is part of; absent if there are none. */
  readonly rollouts?: readonly Rollout[];
}

/** The children of a list changed; absent: it has none any more. Its members are others' to take out. */
export interface ListChange {
  readonly list: string;
  readonly children?: readonly string[];
  /** The rollouts that this is part of; absent if there are none. */
  readonly rollouts?: readonly Rollout[];
}

/** What a connected stream may see has changed. Neither world nor error: the stream is unknown (its world is empty). */
export interface WorldChange {
  readonly stream: string;
  readonly world?: World;
  /** The proxy cannot be served as it describes itself. The stream ends with this text. */
  readonly error?: string;
  /** The rollouts that this is part of; absent if there are none. */
  readonly rollouts?: readonly Rollout[];
}

export interface World {
  readonly roots: readonly string[];
  readonly qualifiers: readonly string[];
  /** Names of resources below the roots that these proxies do not get. */
  readonly excluded?: readonly string[];
}
