import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { DestinationLookup } from '../model/client.ts';
import type { RouteSettings } from '../model/mesh-config.ts';
import type { RouteScope } from '../model/virtual-service-selection.ts';
import type { VirtualServiceModel } from '../model/virtual-service.ts';

export interface RouteContext extends RouteScope {
  /** Whose routes they are: the root, where delegates are involved. */
  readonly model: VirtualServiceModel;
  readonly lookup: DestinationLookup;
  readonly settings: RouteSettings;
  /** The listener terminates TLS: a redirect that names no scheme stays on https. */
  readonly tls?: boolean;
}

/** What comes up while routes are built. */
export class Found {
  readonly problems: Problem[] = [];
  readonly origins: Set<ObjectRef>;
  private readonly clusters = new Set<string>();

  constructor(...origins: readonly ObjectRef[]) {
    this.origins = new Set(origins);
  }

  cluster(name: string): string {
    this.clusters.add(name);
    return name;
  }

  sortedClusters(): readonly string[] {
    return [...this.clusters].sort();
  }
}
