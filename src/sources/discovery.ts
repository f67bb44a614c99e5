import { isDeepStrictEqual } from 'node:util';
import type { ConfigMap } from '../api/core.ts';
import type { Labels } from '../model/labels.ts';
import { type LabelSelector, matchesLabels } from '../model/label-selector.ts';
import { reconcileMeshConfig } from '../reconcilers/mesh-config/mesh-config.ts';

/** Keeps objects of some namespaces back, as the selectors say. */
export interface Selecting {
  /** The selectors have changed. */
  reselect(): void;
}

/** The discovery selectors of the mesh config, for all clusters. */
export class Discovery {
  private selectors: readonly LabelSelector[] = [];
  private isGood = false;
  private readonly followers = new Set<Selecting>();

  /** The mesh config, or none. Without one, or with a mistake in it, the selectors stay, like the rest of it. */
  configured(map: ConfigMap | undefined): void {
    const { config, problems } = reconcileMeshConfig(map?.data?.['mesh']);
    const isValid = map !== undefined && problems.every(({ reason }) => reason !== 'Invalid');
    if (!isValid && this.isGood) return;
    this.isGood = isValid;
    if (isDeepStrictEqual(config.discoverySelectors, this.selectors)) return;
    this.selectors = config.discoverySelectors;
    for (const follower of this.followers) follower.reselect();
  }

  follow(follower: Selecting): void {
    this.followers.add(follower);
  }

  unfollow(follower: Selecting): void {
    this.followers.delete(follower);
  }

  /** There are selectors. */
  get isSelective(): boolean {
    return this.selectors.length > 0;
  }

  /** @param labels of the namespace; undefined: they are not known. */
  selects(labels: Labels | undefined): boolean {
    if (!this.isSelective) return true;
    return labels !== undefined && this.selectors.some((selector) => matchesLabels(selector, labels));
  }
}
