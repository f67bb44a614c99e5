import type { ObjectRef } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { type Labels, printSelector } from '../../model/labels.ts';
import type { Rules } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { SelectsNobody } from './selection.ts';

export interface IdleSelectorDeps {
  readonly sidecars: Sidecars;
  readonly rules: Rules;
  readonly services: Services;
  readonly settings: Settings;
  readonly selectsNobody: SelectsNobody;
}

/** What the owners of Sidecars, DestinationRules and ServiceEntries are told if the workloadSelector selects nobody. */
export function declareIdleSelectors(
  graph: Graph,
  { sidecars, rules, services, settings, selectsNobody }: IdleSelectorDeps,
): readonly Collection<HasProblems>[] {
  const idle = (
    read: Reader,
    of: { readonly objects: readonly ObjectRef[]; readonly namespace: string; readonly selector: Labels | undefined },
    consequence: string,
  ): HasProblems | undefined => {
    const { objects, namespace, selector = {} } = of;
    if (Object.keys(selector).length === 0) return undefined;
    // In the root namespace, some of these objects select workloads of all namespaces.
    if (namespace === settingOf(read, settings.visibility).rootNamespace) return undefined;
    if (!selectsNobody(read, namespace, [selector])) return undefined;
    const message = `no known workload in namespace ${namespace} has the labels ${printSelector(selector)}${consequence}`;
    return {
      problems: objects.map((object) => ({ object, field: 'spec.workloadSelector', reason: 'Ineffective', message })),
    };
  };
  return [
    graph.derive('idle sidecars', sidecars.models, (key, model, read, emit: Emit<HasProblems>) => {
      const { ref, namespace, workloadSelector: selector } = model;
      const found = idle(
        read,
        { objects: [ref], namespace, selector },
        ', so that the Sidecar has no effect. Correct the labels, if such a workload is to exist.',
      );
      if (found !== undefined) emit(key, found);
    }),
    graph.derive('idle rules', rules.single, (key, rule, read, emit: Emit<HasProblems>) => {
      const { origins: objects, namespace, workloadSelector: selector } = rule;
      const found = idle(
        read,
        { objects, namespace, selector },
        ', which clients need for this rule to have an effect. Correct the labels, if such a workload is to exist.',
      );
      if (found !== undefined) emit(key, found);
    }),
    graph.derive('idle entries', services.parsedEntries, (key, entry, read, emit: Emit<HasProblems>) => {
      const [first] = entry.services;
      if (first === undefined) return;
      const { origins: objects, namespace, selector } = first;
      const found = idle(
        read,
        { objects, namespace, selector },
        ', so that the hosts have no endpoint. Correct the labels, if such a workload is to exist; until then, requests get 503.',
      );
      if (found !== undefined) emit(key, found);
    }),
  ];
}
