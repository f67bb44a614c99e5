import type { PatchSets } from '../objects/patch-sources.ts';

/** What scopes share is patched by these; keys of {@link PatchSet}s, only those that exist. */
export type ScopePatches = Readonly<Partial<Record<'clusters' | 'listeners' | 'routes', string>>>;

/** Of these, what is in the lists of views. */
export type ViewPatches = Pick<ScopePatches, 'clusters' | 'routes'>;

export function scopePatches(sets: PatchSets): ScopePatches | undefined {
  const { clusters = sets.routerClusters, listeners, routes } = sets;
  const found = {
    ...(clusters && { clusters: clusters.key }),
    ...(listeners && { listeners: listeners.key }),
    ...(routes && { routes: routes.key }),
  };
  return Object.keys(found).length === 0 ? undefined : found;
}

/** One text for equal patches; empty: none. */
export const patchesKey = (patches: ScopePatches | undefined): string =>
  Object.entries(patches ?? {})
    .map(([area, set]) => `${area}=${set}`)
    .join();
