import { sourceOfKey } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { type Labels, printSelector } from '../../model/labels.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { type ProxyConfigModel, type ProxyConfigsOfPod, proxyConfigsFor } from '../../model/proxy-config.ts';
import {
  type ReconciledProxyConfig,
  reconcileProxyConfig,
  shadowedProxyConfigs,
} from '../../reconcilers/proxy-config/proxy-config.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import { type InForce, declareReconciled } from './in-force.ts';
import { indexBySelector, policiesFor } from './policies.ts';

/** Nothing that proxies get over xDS follows from ProxyConfigs: they are for Pods that are created. */
export interface ProxyConfigs {
  readonly parsed: Collection<ReconciledProxyConfig & InForce>;
  readonly conflicts: Collection<HasProblems>;
  /** The ProxyConfigs for a Pod with these labels. */
  readonly of: (read: Reader, pod: { readonly namespace: string; readonly labels: Labels }) => ProxyConfigsOfPod;
}

export function declareProxyConfigs(graph: Graph, inputs: Inputs): ProxyConfigs {
  const parsed = declareReconciled<ReconciledProxyConfig>(
    graph,
    'proxyConfigs',
    'ProxyConfig',
    inputs,
    (key, object) => reconcileProxyConfig(object, sourceOfKey(key)),
    { models: [] },
  );
  const models = graph.derive('proxyConfigs.models', parsed, (key, value, _, emit: Emit<ProxyConfigModel>) => {
    for (const model of value.models) emit(key, model);
  });
  const bySelector = indexBySelector(graph, 'proxyConfigs', [models]);
  const sameSelector = graph.index(
    'proxyConfigs by whole selector',
    models,
    (_, { namespace, target }) => selectorsOf(target).map((labels) => `${namespace}|${printSelector(labels)}`),
    (a, b) => compareAge(a.value, b.value),
  );
  const conflicts = graph.derive(
    'conflicts of proxyConfigs',
    sameSelector,
    (key, members, _, emit: Emit<HasProblems>) => {
      const problems = shadowedProxyConfigs(members.map(({ value }) => value));
      if (problems.length > 0) emit(key, { problems });
    },
  );
  return {
    parsed,
    conflicts,
    of(read, pod) {
      const { rootNamespace } = optionsOf(read, inputs);
      const candidates = [
        ...policiesFor(read, { bySelector }, pod.namespace, pod.labels),
        ...(pod.namespace === rootNamespace ? [] : policiesFor(read, { bySelector }, rootNamespace, {})),
      ];
      return proxyConfigsFor(candidates, pod, rootNamespace);
    },
  };
}
