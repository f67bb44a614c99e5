import type { ConfigMap } from '../../api/core.ts';
import { objectKey, parseObjectKey, refOf, sourceOfKey } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { MESH_CONFIG } from '../../api/mesh-config-names.ts';
import { reconcileTrustDomain } from '../../reconcilers/mesh-config/trust-domain.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type Settings, settingOf } from '../settings.ts';

export interface TrustDomains {
  /** That of Pods and service accounts in a cluster. */
  of(read: Reader, cluster: string): string;
  readonly parsed: Collection<ParsedTrustDomain>;
}

interface ParsedTrustDomain {
  /** Undefined: that of the own cluster. */
  readonly trustDomain: string | undefined;
  readonly problems: readonly Problem[];
}

/**
 * The mesh config of another cluster says which trust domain its certificates have, and nothing else. A cluster without
 * one gets its certificates from here.
 */
export function declareTrustDomains(graph: Graph, inputs: Inputs, settings: Settings): TrustDomains {
  const parsed = graph.derive(
    'trustDomains',
    inputs.objects.ConfigMap,
    (key, object, read, emit: Emit<ParsedTrustDomain>) => {
      const { clusterId, rootNamespace } = optionsOf(read, inputs);
      const { source, namespace, name } = parseObjectKey(key);
      if (source === clusterId || namespace !== rootNamespace || name !== MESH_CONFIG) return;
      const map = object as ConfigMap;
      const newest = reconcileTrustDomain(map.data?.['mesh'], rootNamespace);
      const good = newest.trustDomain === undefined ? read.get(inputs.lastGood, key) : undefined;
      const trustDomain =
        newest.trustDomain ?? (good && reconcileTrustDomain(good.data?.['mesh'], rootNamespace).trustDomain);
      emit(key, {
        trustDomain,
        problems: newest.problems.map(({ field, ...problem }) => ({
          ...problem,
          object: refOf(sourceOfKey(key), map),
          field: field === '' ? 'data.mesh' : `data.mesh.${field}`,
        })),
      });
    },
  );
  return {
    parsed,
    of(read, cluster) {
      const { clusterId, rootNamespace } = optionsOf(read, inputs);
      const own = settingOf(read, settings.visibility).trustDomain;
      if (cluster === clusterId) return own;
      return read.get(parsed, objectKey(cluster, rootNamespace, MESH_CONFIG))?.trustDomain ?? own;
    },
  };
}
