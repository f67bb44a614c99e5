import type { ObjectRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Clause } from '../../model/authorization.ts';
import { type Labels, selects } from '../../model/labels.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { ownValue } from '../../model/own-value.ts';
import { firstBy } from '../../model/remembered.ts';
import type { MeshService } from '../../model/service.ts';
import { labelKeys } from '../objects/label-keys.ts';
import type { Policies } from '../objects/policies.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Workloads, selectedWorkloads } from '../objects/workloads.ts';
import { type Settings, settingOf } from '../settings.ts';

export interface WorkloadPortDeps {
  readonly services: Services;
  readonly policies: Policies;
  readonly sidecars: Sidecars;
  readonly settings: Settings;
  readonly workloads: Workloads;
}

/** Workloads that are asked for the number of a name. */
const mostWorkloads = 1_000;

/** Of more Services that share a label, it is not known which ports their workloads have. */
const mostServices = 50;

/** The ports of a Service, and of the workloads behind it. */
interface Translation {
  /** `Service namespace/name` */
  readonly service: string;
  readonly selector: Labels;
  /** Workloads know the number of a name. */
  readonly ports: readonly { readonly number: number; readonly target: number | string }[];
}

/** A port that an object names, where it wants that of a workload. */
interface NamedPort {
  readonly field: string;
  readonly port: number;
  readonly consequence: string;
}

/** Ports of Services in places where the ports of workloads are meant. */
export function declareWorkloadPortRemarks(graph: Graph, deps: WorkloadPortDeps): readonly Collection<HasProblems>[] {
  const { services, policies, sidecars, settings } = deps;
  const byLabel: Collection<readonly Translation[]> = graph.derive(
    'port translations by label',
    graph.index('services by label of their selector', services.services, (_, { namespace, selector = {} }) =>
      Object.keys(selector).length === 0 ? [] : [`${namespace}|`, ...labelKeys(namespace, selector)],
    ),
    (key, members, _, emit: Emit<readonly Translation[]>) =>
      emit(
        key,
        members.slice(0, mostServices + 1).map(({ value }) => translationOf(value)),
      ),
  );
  const found = (
    read: Reader,
    of: { readonly ref: ObjectRef; readonly namespace: string; readonly selector: Labels },
    named: readonly NamedPort[],
  ): readonly Problem[] => {
    if (named.length === 0) return [];
    const { namespace, selector } = of;
    const keys = Object.keys(selector).length === 0 ? [`${namespace}|`] : labelKeys(namespace, selector);
    const groups = keys.map((key) => read.get(byLabel, key) ?? []);
    if (groups.some(({ length }) => length > mostServices)) return [];
    const related = groups.flat().filter((one) => selects(one.selector, selector) || selects(selector, one.selector));
    const translations = related.flatMap(({ service, selector: behind, ports }) =>
      ports.map(({ number, target }) => ({ service, number, targets: numbersOf(read, namespace, behind, target) })),
    );
    const targets = new Set(translations.flatMap((translation) => translation.targets));
    if (translations.some((translation) => translation.targets.length === 0)) return [];
    return named.flatMap(({ field, port, consequence }): Problem[] => {
      const found = targets.has(port) ? undefined : translationFor(translations, port);
      if (found === undefined) return [];
      const [target] = found.targets;
      const message = `names port ${port} of ${found.service}, but here the port of the workload counts, which is ${target}: ${consequence}. Write ${target}.`;
      return [{ object: of.ref, field, reason: 'Ineffective', message }];
    });
  };
  /** The ports of workloads that a Service's target may be; none: it is not known. */
  const numbersOf = (read: Reader, namespace: string, selector: Labels, target: number | string): readonly number[] => {
    if (typeof target === 'number') return [target];
    const behind = selectedWorkloads(read, deps.workloads, namespace, selector).slice(0, mostWorkloads);
    return behind.flatMap(({ labels, ports = {} }) =>
      selects(selector, labels) ? (ownValue(ports, target) ?? []) : [],
    );
  };
  const peers = graph.derive('ports of peers', policies.peers.models, (key, policy, read, emit: Emit<HasProblems>) => {
    const { ref, namespace, target, ports } = policy;
    if (target.kind !== 'labels') return;
    const consequence = 'the setting has no effect, and the mode of the workload applies';
    const named = Object.keys(ports).map((port) => ({
      field: `spec.portLevelMtls["${port}"]`,
      port: Number(port),
      consequence,
    }));
    const problems = found(read, { ref, namespace, selector: target.labels }, named);
    if (problems.length > 0) emit(key, { problems });
  });
  const authorization = graph.derive(
    'ports of authorization',
    policies.authorization.models,
    (key, { ref, namespace, target, rules, action }, read, emit: Emit<HasProblems>) => {
      if (target.kind === 'gateways' || namespace === settingOf(read, settings.visibility).rootNamespace) return;
      const [selector = {}] = selectorsOf(target);
      const nothing = action === 'ALLOW' ? 'the rule allows nothing' : 'the rule matches nothing';
      const named = rules.flatMap(({ index, to, when }) =>
        [...to, when].flatMap((clause) => portsIn(clause, nothing, `spec.rules[${index}]`)),
      );
      const problems = boundProblems(found(read, { ref, namespace, selector }, named));
      if (problems.length > 0) emit(key, { problems });
    },
  );
  const ingress = graph.derive('ports of sidecars', sidecars.models, (key, model, read, emit: Emit<HasProblems>) => {
    const { ref, namespace, workloadSelector: selector = {} } = model;
    const consequence = 'no connection comes to it there';
    const named = model.ingress.map(({ port }, i) => ({ field: `spec.ingress[${i}].port.number`, port, consequence }));
    const problems = found(read, { ref, namespace, selector }, named);
    if (problems.length > 0) emit(key, { problems });
  });
  return [peers, authorization, ingress];
}

const translationFor = firstBy(
  ({ number }: { readonly service: string; readonly number: number; readonly targets: readonly number[] }) => number,
);

function translationOf({ namespace, name, selector = {}, ports, registry }: MeshService): Translation {
  return {
    service: registry === 'Kubernetes' ? `Service ${namespace}/${name}` : `host ${quote(name)}`,
    selector,
    ports: ports.map(({ number, targetPort = number }) => ({ number, target: targetPort })),
  };
}

function portsIn(clause: Clause, nothing: string, field: string): readonly NamedPort[] {
  return clause.flatMap(({ attribute, values, notValues }) =>
    attribute.kind === 'port'
      ? [
          ...values.map((port) => ({ field, port: Number(port), consequence: nothing })),
          ...notValues.map((port) => ({ field, port: Number(port), consequence: 'the rule excludes nothing by it' })),
        ]
      : [],
  );
}
