import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import type { AuthorizationPolicyModel } from '../../model/authorization.ts';
import { contentHash } from '../../model/hash.ts';
import type { PeerModes } from '../../model/peer-authentication.ts';
import { type PolicyObject, selectorsOf } from '../../model/policy-target.ts';
import type { PeerModesOf } from '../objects/peer-modes.ts';
import { type Policies, policiesFor } from '../objects/policies.ts';
import { type Settings, settingOf } from '../settings.ts';
import { type PolicySelector, type WorkloadClass, type WorkloadClasses, anyNamespace } from './workload-classes.ts';

/** What the policies that select a workload mean for it. */
export interface WorkloadPolicies {
  /** What it accepts; for sidecars only. */
  readonly peers: PeerModes;
  /** Key of its {@link PolicySet}; empty: no policy. */
  readonly set: string;
}

/** The policies that decide about requests; workloads with equal ones share the filters. */
export interface PolicySet {
  readonly key: string;
  /** Istio's agent runs beside the proxies. */
  readonly agent: boolean;
  readonly isRouter: boolean;
  /** For which services are visible to its proxies. */
  readonly namespace: string;
  readonly sidecar: string;
  /** Keys of AuthorizationPolicies: the root namespace's first, oldest first. */
  readonly authorization: readonly string[];
  /** Keys of RequestAuthentications: the root namespace's last, oldest first. */
  readonly requests: readonly string[];
}

export interface WorkloadPolicyDeps {
  readonly policies: Policies;
  readonly peerModes: PeerModesOf;
  readonly settings: Settings;
}

export interface PoliciesOfWorkloads {
  /** By key of the workload class. */
  readonly ofClass: Collection<WorkloadPolicies>;
  /** By their own key. */
  readonly sets: Collection<PolicySet>;
}

export function declareWorkloadPolicies(
  graph: Graph,
  { classes }: Pick<WorkloadClasses, 'classes'>,
  deps: WorkloadPolicyDeps,
): PoliciesOfWorkloads {
  const found = graph.derive('policies of workloads', classes, (key, one, read, emit: Emit<FoundPolicies>) =>
    emit(key, { peers: deps.peerModes.ofServer(read, one.namespace, one.labels), set: setOf(one, read, deps) }),
  );
  const bySet: Index<FoundPolicies> = graph.index('workloads by policies', found, (_, { set }) =>
    set === undefined ? [] : [set.key],
  );
  return {
    ofClass: graph.derive('workloadPolicies', found, (key, { peers, set }, _, emit: Emit<WorkloadPolicies>) =>
      emit(key, { peers, set: set?.key ?? '' }),
    ),
    sets: graph.derive('policySets', bySet, (key, [first], _, emit: Emit<PolicySet>) => {
      if (first.value.set !== undefined) emit(key, first.value.set);
    }),
  };
}

/** The labels by which policies select, for {@link WorkloadClass}. */
export function policySelectors(
  graph: Graph,
  { policies, peerModes, settings }: Pick<WorkloadPolicyDeps, 'policies' | 'peerModes' | 'settings'>,
): Collection<PolicySelector> {
  const kinds = [policies.peers, policies.requests, policies.authorization];
  const byKind = graph.index<PolicyObject>(
    'policies',
    [...kinds.map(({ models }) => models), ...peerModes.former],
    (_, { ref, key }) => [`${ref.kind}/${key}`],
  );
  return graph.derive('policySelectors', byKind, (key, versions, read, emit: Emit<PolicySelector>) => {
    const { rootNamespace } = settingOf(read, settings.visibility);
    const distinct = new Set(versions.map(({ value }) => value));
    for (const [version, value] of [...distinct].entries()) {
      const namespace = value.namespace === rootNamespace ? anyNamespace : value.namespace;
      selectorsOf(value.target).forEach((labels, i) => emit(`${key}/${version}/${i}`, { namespace, labels }));
    }
  });
}

interface FoundPolicies {
  readonly peers: PeerModes;
  readonly set: PolicySet | undefined;
}

function setOf(one: WorkloadClass, read: Reader, { policies, settings }: WorkloadPolicyDeps): PolicySet | undefined {
  const { rootNamespace } = settingOf(read, settings.visibility);
  const { namespace, labels, traits, sidecar } = one;
  const isRouter = traits.proxyType === 'router';
  const applies = ({ target, namespace: own }: PolicyObject): boolean =>
    target.kind !== 'gateways' || (isRouter && own === namespace);
  const namespaces = [...new Set([rootNamespace, namespace])];
  const authorization = namespaces
    .flatMap((where) => policiesFor(read, policies.authorization, where, labels))
    .filter(applies);
  const requests = namespaces
    .toReversed()
    .flatMap((where) => policiesFor(read, policies.requests, where, labels))
    .filter(applies);
  if (authorization.length + requests.length === 0) return undefined;
  // Whether the service that they ask is visible depends on these.
  const asks = authorization.some(({ action }: AuthorizationPolicyModel) => action === 'CUSTOM');
  const content = {
    agent: traits.agent,
    isRouter,
    namespace: asks ? namespace : '',
    sidecar: asks ? sidecar : '',
    authorization: authorization.map(({ key }) => key),
    requests: requests.map(({ key }) => key),
  };
  return { key: contentHash(JSON.stringify(content)), ...content };
}
