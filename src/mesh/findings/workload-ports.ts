import type { ObjectRef } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { boundProblems } from '../../api/problem-list.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Clause } from '../../model/authorization.ts';
import { type Labels, selects } from '../../model/labels.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import type { MeshService } from '../../model/service.ts';
import { labelKeys } from '../objects/label-keys.ts';
import type { Policies } from '../objects/policies.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { HasProblems } from './problems.ts';

export interface WorkloadPortDeps {
  readonly services: Services;
  readonly policies: Policies;
  readonly sidecars: Sidecars;
  readonly settings: Settings;
}

/** Of more Services that share a label, it is not known which ports their workloads have. */
const mostServices = 50;

/** The ports of a Service, and of the workloads behind it. */
interface Translation {
  /** `namespace/name` */
  readonly service: string;
  readonly selector: Labels;
  /** A name of which the number is not known is kept as it is. */
  readonly ports: readonly { readonly number: number; readonly target: number | string }[];
}

/** A port that an object names, where it wants that of a workload. */
interface NamedPort {
  readonly field: string;
  readonly port: number;
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
    consequence: string,
  ): readonly Problem[] => {
    if (named.length === 0) return [];
    const { namespace, selector } = of;
    const keys = Object.keys(selector).length === 0 ? [`${namespace}|`] : labelKeys(namespace, selector);
    const groups = keys.map((key) => read.get(byLabel, key) ?? []);
    if (groups.some(({ length }) => length > mostServices)) return [];
    const related = groups.flat().filter((one) => selects(one.selector, selector) || selects(selector, one.selector));
    return named.flatMap(({ field, port }): Problem[] => {
      const targets = related.flatMap(({ ports }) => ports.map(({ target }) => target));
      if (targets.some((target) => target === port || typeof target === 'string')) return [];
      for (const { service, ports } of related) {
        const translated = ports.find(({ number, target }) => number === port && target !== number);
        if (translated === undefined) continue;
        const message = `names port ${port} of Service ${service}, but here the port of the workload counts, which is ${translated.target}: ${consequence}. Write ${translated.target}.`;
        return [{ object: of.ref, field, reason: 'Ineffective', message }];
      }
      return [];
    });
  };
  const peers = graph.derive('ports of peers', policies.peers.models, (key, policy, read, emit: Emit<HasProblems>) => {
    const { ref, namespace, target, ports } = policy;
    if (target.kind !== 'labels') return;
    const named = Object.keys(ports).map((port) => ({ field: `spec.portLevelMtls["${port}"]`, port: Number(port) }));
    const selector = target.labels;
    const problems = found(
      read,
      { ref, namespace, selector },
      named,
      'the setting has no effect, and the mode of the workload applies',
    );
    if (problems.length > 0) emit(key, { problems });
  });
  const authorization = graph.derive(
    'ports of authorization',
    policies.authorization.models,
    (key, { ref, namespace, target, rules, action }, read, emit: Emit<HasProblems>) => {
      if (target.kind === 'gateways' || namespace === settingOf(read, settings.visibility).rootNamespace) return;
      const [selector = {}] = selectorsOf(target);
      const named = rules.flatMap(({ index, to, when }) =>
        [...to, when].flatMap(portsIn).map((port) => ({ field: `spec.rules[${index}]`, port })),
      );
      const consequence = action === 'ALLOW' ? 'the rule allows nothing' : 'the rule matches nothing';
      const problems = boundProblems(found(read, { ref, namespace, selector }, named, consequence));
      if (problems.length > 0) emit(key, { problems });
    },
  );
  const ingress = graph.derive('ports of sidecars', sidecars.models, (key, model, read, emit: Emit<HasProblems>) => {
    const { ref, namespace, workloadSelector: selector = {} } = model;
    const named = model.ingress.map(({ port }, i) => ({ field: `spec.ingress[${i}].port.number`, port }));
    const problems = found(read, { ref, namespace, selector }, named, 'no connection comes to it there');
    if (problems.length > 0) emit(key, { problems });
  });
  return [peers, authorization, ingress];
}

function translationOf({ namespace, name, selector = {}, ports }: MeshService): Translation {
  return {
    service: `${namespace}/${name}`,
    selector,
    ports: ports.map(({ number, targetPort = number }) => ({ number, target: targetPort })),
  };
}

function portsIn(clause: Clause): readonly number[] {
  return clause.flatMap(({ attribute, values }) => (attribute.kind === 'port' ? values.map(Number) : []));
}
