import { type KubernetesObject, objectKey, parseObjectKey } from '../../api/object.ts';
import type { Graph } from '../../cache/graph.ts';
import type { Inputs } from '../inputs.ts';

/** The Namespaces of each cluster. */
export interface ClusterNamespaces {
  /** Names of those that exist and are not being deleted. */
  of(cluster: string): readonly string[];
  /** Undefined: it does not exist, or is being deleted. */
  get(cluster: string, name: string): KubernetesObject | undefined;
  /** Calls back when some have come, gone or changed. */
  onChange(changed: (cluster: string, names: readonly string[]) => void): void;
}

export function clusterNamespaces(graph: Graph, { objects: { Namespace: all } }: Inputs): ClusterNamespaces {
  const isThere = ({ metadata }: KubernetesObject): boolean => metadata.deletionTimestamp === undefined;
  return {
    of: (cluster) =>
      [...all.entries()].flatMap(([key, namespace]) =>
        parseObjectKey(key).source === cluster && isThere(namespace) ? [namespace.metadata.name] : [],
      ),
    get(cluster, name) {
      const found = all.get(objectKey(cluster, '', name));
      return found !== undefined && isThere(found) ? found : undefined;
    },
    onChange(changed) {
      graph.follow(all, (changes) => {
        const keys = changes.map(({ key }) => parseObjectKey(key));
        for (const [cluster, found] of Map.groupBy(keys, ({ source }) => source))
          changed(
            cluster,
            found.map(({ name }) => name),
          );
      });
    },
  };
}
