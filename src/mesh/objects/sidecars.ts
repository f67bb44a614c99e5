import { sourceOfKey } from '../../api/object.ts';
import type { Sidecar } from '../../api/gen/sidecar.gen.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { type EgressListener, type SidecarModel, everything } from '../../model/sidecar.ts';
import { type ReconciledSidecar, reconcileSidecar } from '../../reconcilers/sidecar/sidecar.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type InForce, declareReconciled } from './in-force.ts';

/** An egress listener of a Sidecar. */
export interface EgressRef {
  readonly sidecar: string;
  readonly listener: number;
}

export interface Sidecars {
  readonly parsed: Collection<ReconciledSidecar & InForce>;
  /** By object key. */
  readonly models: Collection<SidecarModel>;
  /** Oldest first. */
  readonly byNamespace: Index<SidecarModel>;
}

/** The egress listener that a view belongs to; undefined for views of everything visible. */
export function egressOf(
  read: Reader,
  { models }: Pick<Sidecars, 'models'>,
  { egress }: { readonly egress?: EgressRef },
): EgressListener | undefined {
  return egress && (read.get(models, egress.sidecar)?.egress ?? everything)[egress.listener];
}

export function declareSidecars(graph: Graph, inputs: Inputs): Sidecars {
  const parsed = declareReconciled<ReconciledSidecar>(
    graph,
    'sidecars',
    'Sidecar',
    inputs,
    (key, object, read) =>
      reconcileSidecar(object as Sidecar, {
        source: sourceOfKey(key),
        domainSuffix: optionsOf(read, inputs).domainSuffix,
      }),
    { models: [] },
  );
  const models = graph.derive('sidecarModels', parsed, (key, value, _, emit: Emit<SidecarModel>) => {
    for (const model of value.models) emit(key, model);
  });
  return {
    parsed,
    models,
    byNamespace: graph.index(
      'sidecars by namespace',
      models,
      (_, model) => [model.namespace],
      (a, b) => compareAge(a.value, b.value),
    ),
  };
}
