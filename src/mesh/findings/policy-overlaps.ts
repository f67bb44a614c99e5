import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { type PolicyObject, selectorsOf } from '../../model/policy-target.ts';
import { type PolicyKind, comparedPolicies } from '../objects/policies.ts';
import { type Settings, settingOf } from '../settings.ts';

/** Of more different selectors, it is not known which ones select the same workloads. */
const mostCompared = 20;

/** Which policies of a kind that are of interest may select the same workloads as another policy. */
export interface Overlaps {
  /** False if none does. True if one does, or it depends on workloads that are not known. */
  mayOverlap(read: Reader, policy: PolicyObject): boolean;
}

interface SelectorNames {
  readonly namespace: string;
  /** Names of labels, sorted. */
  readonly names: readonly string[];
}

/**
 * Compares selectors without looking at workloads, and without scanning the policies of a namespace. If another policy
 * selects by labels that this one does not name, both may select the same workload. Otherwise, it does if all its labels
 * are among those of this one, and these are found by label.
 */
export function declareOverlaps<Model extends PolicyObject>(
  graph: Graph,
  name: string,
  kind: PolicyKind<Model>,
  settings: Settings,
  isOfInterest: (model: Model) => boolean,
): Overlaps {
  const namesOf = ({ target }: Model): string[] =>
    selectorsOf(target).map((selector) => JSON.stringify(Object.keys(selector).sort()));
  const distinct = graph.derive(
    `${name}: distinct selectors`,
    graph.index(`${name} by namespace and labels`, kind.models, (_, model) =>
      isOfInterest(model) ? namesOf(model).map((names) => `${model.namespace}|${names}`) : [],
    ),
    (key, [{ value }], _, emit: Emit<SelectorNames>) => {
      const { namespace } = value;
      emit(key, { namespace, names: JSON.parse(key.slice(namespace.length + 1)) as readonly string[] });
    },
  );
  const inNamespace: Collection<readonly (readonly string[])[]> = graph.derive(
    `${name}: selectors of namespaces`,
    graph.index(`${name}: selectors by namespace`, distinct, (_, { namespace }) => [namespace, anywhere]),
    (key, members, _, emit: Emit<readonly (readonly string[])[]>) =>
      emit(
        key,
        members.slice(0, mostCompared + 1).map(({ value }) => value.names),
      ),
  );
  return {
    mayOverlap(read, { namespace, target }) {
      const { rootNamespace } = settingOf(read, settings.visibility);
      if (namespace === rootNamespace) return read.get(inNamespace, anywhere) !== undefined;
      const namespaces = [rootNamespace, namespace];
      const groups = namespaces.flatMap((where) => read.get(inNamespace, where) ?? []);
      if (groups.length > mostCompared) return true;
      return selectorsOf(target).some(
        (labels) =>
          groups.some((names) => names.some((label) => !Object.hasOwn(labels, label))) ||
          comparedPolicies(read, kind, namespaces, labels)?.some(isOfInterest) !== false,
      );
    },
  };
}

const anywhere = '*';
