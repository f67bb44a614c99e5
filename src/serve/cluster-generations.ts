import type { KindName } from '../api/kinds.ts';
import { type KubernetesObject, objectKey, revisionOf } from '../api/object.ts';
import type { Validate } from '../api/validate.ts';
import type { Engine } from '../engine/engine.ts';
import { keptGenerations, nameOfKept, printKept, readKept } from '../engine/kept-generations.ts';
import {
  type GenerationInForce,
  GenerationsInForce,
  type GenerationsInForceOptions,
} from '../kube/writing/generations-in-force.ts';
import { generationKey, parseGenerationKey } from '../mesh/objects/in-force.ts';

export interface ClusterGenerationsOptions extends Pick<
  GenerationsInForceOptions,
  'api' | 'clock' | 'random' | 'log' | 'outages' | 'signal'
> {
  readonly engine: Engine;
  readonly validate: Validate;
  /** Cluster id, as in the keys of objects. */
  readonly clusterId: string;
  /** The latest copy of an object from the server. */
  readonly latest: (kind: KindName, namespace: string, name: string) => KubernetesObject | undefined;
}

/** Generations in force that are not the newest: kept in the cluster, for restarts and other replicas. */
export function keepGenerations(options: ClusterGenerationsOptions): GenerationsInForce {
  const { engine, validate, clusterId, latest } = options;
  const { mesh, committer, generations } = engine;
  const { formerGenerations, rejectedGenerations } = mesh.inputs;
  /** By `namespace/name` of what is kept or to be kept: the key of the object. */
  const objects = new Map<string, string>();
  /** What is kept, or pretends to be. */
  const present = new Set<string>();

  function decided(key: string) {
    return keptGenerations({
      verdict: mesh.verdicts.get(key),
      former: formerGenerations.get(key),
      rejected: rejectedGenerations.get(key),
    });
  }

  function ownerOf(keptKey: string): KubernetesObject | undefined {
    const { kind, namespace, name } = parseGenerationKey(objects.get(keptKey) ?? '');
    return latest(kind, namespace, name);
  }

  function wanted(keptKey: string): GenerationInForce | 'nothing' | 'undecided' {
    const key = objects.get(keptKey);
    // Before the first commit it is not known what is good.
    if (committer.stats.commits === 0) return 'undecided';
    if (key === undefined) return 'nothing';
    const owner = ownerOf(keptKey);
    const verdict = mesh.verdicts.get(key);
    if (owner === undefined) return verdict === undefined ? 'nothing' : 'undecided';
    const { uid = '', generation = 0 } = owner.metadata;
    if (verdict?.uid !== uid || verdict.generation !== generation) return 'undecided';
    const kept = decided(key);
    if (typeof kept !== 'object') return kept ?? 'nothing';
    const { apiVersion, kind, metadata } = owner;
    return {
      owner: { apiVersion, kind, name: metadata.name, uid },
      revision: revisionOf(owner),
      spec: printKept(kept),
    };
  }

  /** Something about this object may have been decided. */
  function look(key: string): void {
    const { kind, namespace, name } = parseGenerationKey(key);
    const keptKey = `${namespace}/${nameOfKept(kind, name)}`;
    const isWanted = decided(key) !== undefined;
    if (!isWanted && !objects.has(keptKey)) return;
    if (isWanted || present.has(keptKey)) objects.set(keptKey, key);
    else objects.delete(keptKey);
    kept.changed(keptKey);
  }

  const kept = new GenerationsInForce({
    ...options,
    keys: () => new Set([...objects.keys(), ...present]),
    revision(keptKey) {
      const owner = ownerOf(keptKey);
      return owner && revisionOf(owner);
    },
    wanted,
    found(keptKey, there) {
      if (there === undefined) present.delete(keptKey);
      else present.add(keptKey);
      const { namespace = '', name, ownerReferences = [] } = there?.metadata ?? { name: '' };
      const content = there && readKept(namespace, (there as { readonly spec?: unknown }).spec, validate);
      const about = content && nameOfKept(content.object.kind, content.object.name) === name ? content : undefined;
      const key = about
        ? generationKey(about.object.kind, objectKey(clusterId, namespace, about.object.name))
        : objects.get(keptKey);
      if (key === undefined) return;
      if (about !== undefined) objects.set(keptKey, key);
      else if (there === undefined && decided(key) === undefined) objects.delete(keptKey);
      const isOwned = (ownerReferences as readonly { readonly uid?: string }[]).some(
        ({ uid }) => uid === about?.object.uid,
      );
      generations.found(key, isOwned ? about : undefined);
    },
  });
  let isFirst = true;
  committer.onCommit(() => {
    if (isFirst) for (const keptKey of present) kept.changed(keptKey);
    isFirst = false;
  });
  mesh.verdicts.follow(look);
  mesh.graph.observe(({ writes }) => {
    for (const { input, key } of writes) if (input === formerGenerations || input === rejectedGenerations) look(key);
  }, 'generations in force');
  return kept;
}
