/** Of the ConfigMap with the mesh config, and the key that it has here, whichever of its names it has in the cluster. */
export const MESH_CONFIG = 'istio';

/**
 * Names that the mesh config of a revision may have, the first of which that exists is used. Istio's charts call that of a
 * revision `istio-REVISION`; where there is none, a revision shares that of all others.
 */
export function meshConfigNames(revision: string | undefined): readonly string[] {
  return revision === undefined || revision === 'default' ? [MESH_CONFIG] : [`${MESH_CONFIG}-${revision}`, MESH_CONFIG];
}
