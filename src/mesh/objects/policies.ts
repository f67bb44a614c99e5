import type { AuthorizationPolicy } from '../../api/gen/authorization-policy.gen.ts';
import type { PeerAuthentication } from '../../api/gen/peer-authentication.gen.ts';
import type { RequestAuthentication } from '../../api/gen/request-authentication.gen.ts';
import type { CustomKindName } from '../../api/kinds.ts';
import { type KubernetesObject, sourceOfKey } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import type { AuthorizationPolicyModel } from '../../model/authorization.ts';
import { type Labels, selects } from '../../model/labels.ts';
import type { PeerAuthenticationModel } from '../../model/peer-authentication.ts';
import { type PolicyObject, selectorsOf } from '../../model/policy-target.ts';
import type { RequestAuthenticationModel } from '../../model/request-authentication.ts';
import { reconcileAuthorizationPolicy } from '../../reconcilers/security/authorization-policy.ts';
import { reconcilePeerAuthentication } from '../../reconcilers/security/peer-authentication.ts';
import { reconcileRequestAuthentication } from '../../reconcilers/security/request-authentication.ts';
import type { Inputs } from '../inputs.ts';
import { type InForce, declareReconciled } from './in-force.ts';
import { labelKeys, selectorKey } from './label-keys.ts';

/** The policies of one kind. */
export interface PolicyKind<Model extends PolicyObject> {
  readonly parsed: Collection<HasProblems & InForce & { readonly model: Model }>;
  /** By object key. */
  readonly models: Collection<Model>;
  /** By namespace and the first label that they select by; see {@link policiesFor}. Oldest first. */
  readonly bySelector: Index<Model>;
}

/** The kinds of `security.istio.io`. */
export interface Policies {
  readonly peers: PolicyKind<PeerAuthenticationModel>;
  readonly requests: PolicyKind<RequestAuthenticationModel>;
  readonly authorization: PolicyKind<AuthorizationPolicyModel>;
}

export function declarePolicies(graph: Graph, inputs: Inputs): Policies {
  return {
    peers: declareKind(graph, 'peerAuthentications', 'PeerAuthentication', inputs, (object, source) =>
      reconcilePeerAuthentication(object as PeerAuthentication, source),
    ),
    requests: declareKind(graph, 'requestAuthentications', 'RequestAuthentication', inputs, (object, source) =>
      reconcileRequestAuthentication(object as RequestAuthentication, source),
    ),
    authorization: declareKind(graph, 'authorizationPolicies', 'AuthorizationPolicy', inputs, (object, source) =>
      reconcileAuthorizationPolicy(object as AuthorizationPolicy, source),
    ),
  };
}

function declareKind<Model extends PolicyObject>(
  graph: Graph,
  name: string,
  kind: CustomKindName,
  inputs: Inputs,
  reconcile: (object: KubernetesObject, source: string) => HasProblems & { readonly model: Model },
): PolicyKind<Model> {
  const reconciled = (key: string, object: KubernetesObject) => reconcile(object, sourceOfKey(key));
  const parsed = declareReconciled(graph, name, kind, inputs, reconciled, undefined);
  const models = graph.derive(`${name}.models`, parsed, (key, { model }, _, emit: Emit<Model>) => emit(key, model));
  return { parsed, models, bySelector: indexBySelector(graph, name, [models]) };
}

export function indexBySelector<Model extends PolicyObject>(
  graph: Graph,
  name: string,
  models: readonly Collection<Model>[],
): Index<Model> {
  return graph.index(
    `${name} by selector`,
    models,
    (_, { namespace, target }) =>
      selectorsOf(target).map((selector) => selectorKey(namespace, selector) ?? ofNamespace(namespace)),
    (a, b) => compareAge(a.value, b.value),
  );
}

/** Group of the policies for all workloads of a namespace. */
const ofNamespace = (namespace: string): string => `${namespace}|`;

/** Of more policies that share a label with a selector, remarks about it do not say what they mean together. */
const mostCompared = 100;

/**
 * The policies in these namespaces that select a workload with these labels, in any order; undefined if too many would
 * have to be compared. For remarks, which each policy may get.
 */
export function comparedPolicies<Model extends PolicyObject>(
  read: Reader,
  { bySelector }: Pick<PolicyKind<Model>, 'bySelector'>,
  namespaces: readonly string[],
  labels: Labels,
): readonly Model[] | undefined {
  const groups = namespaces.flatMap((namespace) =>
    [ofNamespace(namespace), ...labelKeys(namespace, labels)].map((group) => read.group(bySelector, group)),
  );
  if (groups.reduce((count, { length }) => count + length, 0) > mostCompared) return undefined;
  const models = groups.flatMap((group) => group.map(({ value }) => value));
  return models.filter(({ target }) => selectorsOf(target).some((selector) => selects(selector, labels)));
}

/**
 * The oldest policy in the namespace that selects everything that a selector does, if it is among those that share a
 * label with it and are looked at.
 */
export function oldestFor<Model extends PolicyObject>(
  read: Reader,
  { bySelector }: Pick<PolicyKind<Model>, 'bySelector'>,
  namespace: string,
  selector: Labels,
  isMeant: (model: Model) => boolean,
): Model | undefined {
  return [ofNamespace(namespace), ...labelKeys(namespace, selector)]
    .flatMap((group) => read.group(bySelector, group).slice(0, mostCompared))
    .map(({ value }) => value)
    .filter((model) => isMeant(model) && selectorsOf(model.target).some((labels) => selects(labels, selector)))
    .sort(compareAge)[0];
}

/** The policies in a namespace that select a workload with these labels, oldest first. */
export function policiesFor<Model extends PolicyObject>(
  read: Reader,
  { bySelector }: Pick<PolicyKind<Model>, 'bySelector'>,
  namespace: string,
  labels: Labels,
): readonly Model[] {
  const found = new Map<string, Model>();
  for (const group of [ofNamespace(namespace), ...labelKeys(namespace, labels)])
    for (const { value } of read.group(bySelector, group))
      if (selectorsOf(value.target).some((selector) => selects(selector, labels))) found.set(value.key, value);
  return [...found.values()].sort((a, b) => compareAge(a, b) || (a.key < b.key ? -1 : 1));
}
