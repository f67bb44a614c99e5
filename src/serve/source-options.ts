import { getHeapStatistics } from 'node:v8';
import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { MeshConfigChoice } from '../sources/mesh-config-choice.ts';
import type { KubeconfigPlace } from '../other-clusters/remote-clusters.ts';
import type { SourceSurroundings } from './object-source.ts';

/** Where a source delivers objects: of several mesh configs, the one of this revision passes. */
export function meshConfigChoice(
  { mesh: { rootNamespace }, revision }: Config,
  { objects: sink }: Engine,
): MeshConfigChoice {
  return new MeshConfigChoice({ sink, rootNamespace, revision });
}

/** Undefined: kubeconfigs of other clusters are not in files. */
export function kubeconfigFiles({ remoteKubeconfigs: directory }: Config): KubeconfigPlace | undefined {
  return directory === undefined ? undefined : { kind: 'Files', directory };
}

/** How large the heap of this process may become. */
export function heapOf({ heapBytes = getHeapStatistics().heap_size_limit }: SourceSurroundings): number {
  return heapBytes;
}
