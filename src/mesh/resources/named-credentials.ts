import type { ObjectRef } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { compareAge } from '../../model/age.ts';
import { clientResources, namesCredential, servedResources, serverResources } from '../../model/credential.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import type { ClientTls, DestinationRuleModel } from '../../model/traffic-policy.ts';
import { mostNamed, mostNamedForOthers } from '../../model/named-limits.ts';
import { tlsOfRule } from '../../settle/withheld-files.ts';
import type { Rules } from '../objects/rules.ts';

/** What objects of one namespace name: the oldest object first, and no more than is allowed. */
export interface NamedCredentials extends HasProblems {
  /** The namespace of the objects. */
  readonly by: string;
  /** The namespace of those who need what is named; `*`: any. */
  readonly to: string;
  readonly resources: readonly string[];
  /** Names that clients with a provider of secrets do not get from it. */
  readonly unprovided: readonly string[];
}

/** Someone who names credentials. */
interface Naming {
  readonly ref: ObjectRef;
  readonly field: string;
  readonly resources: readonly string[];
  readonly unprovided: readonly string[];
}

/** What the Gateways of each namespace name. */
export function declareNamedByGateways(graph: Graph, gateways: Collection<GatewayModel>): Collection<NamedCredentials> {
  const naming = graph.index(
    'gateways with credentials',
    gateways,
    (_, gateway) => (resourcesOfGateway(gateway).length === 0 ? [] : [gateway.namespace]),
    (a, b) => compareAge(a.value, b.value),
  );
  return graph.derive('credentials of gateways', naming, (by, members, _, emit: Emit<NamedCredentials>) => {
    const objects = members.map(({ value }): Naming => {
      const unprovided = resourcesOfGateway(value, true);
      return { ref: value.ref, field: 'spec.servers', resources: resourcesOfGateway(value), unprovided };
    });
    emit(by, limited(by, '*', objects, mostNamed));
  });
}

/** What the DestinationRules of each namespace name, by whom it is for. */
export function declareNamedByRules(
  graph: Graph,
  { single }: Rules,
): { readonly named: Collection<NamedCredentials>; readonly to: Index<NamedCredentials> } {
  const naming = graph.index(
    'rules with credentials',
    single,
    (_, { namespace, exportTo, ...rule }) => {
      if (resourcesOfRule(rule).length === 0) return [];
      const own = exportTo.includes('*') ? [namespace] : [];
      return [...exportTo, ...own].map((to) => `${to} ${namespace}`);
    },
    (a, b) => compareAge(a.value, b.value),
  );
  const named = graph.derive('credentials of rules', naming, (key, members, _, emit: Emit<NamedCredentials>) => {
    const [to = '', by = ''] = key.split(' ');
    const objects = members.map(({ value }): Naming => {
      const unprovided = resourcesOfRule(value, true);
      return { ref: value.origins[0]!, field: 'spec', resources: resourcesOfRule(value), unprovided };
    });
    emit(key, limited(by, to, objects, to === by ? mostNamed : mostNamedForOthers));
  });
  return { named, to: graph.index('credentials of rules by reader', named, (_, { to }) => [to]) };
}

/** What DestinationRules name for clients in a namespace. */
export function namedByRules(read: Reader, to: Index<NamedCredentials>, namespace: string): NamedCredentials[] {
  const own = read.group(to, namespace);
  return [...own, ...read.group(to, '*').filter(({ value }) => value.by !== namespace)].map(({ value }) => value);
}

function limited(by: string, to: string, objects: readonly Naming[], most: number): NamedCredentials {
  const resources = new Set<string>();
  const problems = objects.flatMap(({ ref, field, resources: own }) => {
    let isCut = false;
    for (const resource of own)
      if (resources.size < most) resources.add(resource);
      else isCut ||= !resources.has(resource);
    if (!isCut) return [];
    const isForOthers = to !== by && field !== 'spec.servers';
    const whose = isForOthers ? ' for clients in other namespaces' : '';
    const orElse = isForOthers ? ', or limit exportTo' : '';
    const message = `names credentials beyond the ${most} that objects in namespace ${by} may name${whose}; those are not read. Name fewer${orElse}.`;
    return [{ object: ref, field, reason: 'Ineffective' as const, message }];
  });
  const unprovided = new Set(objects.flatMap((object) => object.unprovided));
  return {
    by,
    to,
    resources: [...resources],
    unprovided: [...unprovided].filter((resource) => resources.has(resource)),
    problems,
  };
}

/** @param hasProvider of secrets: those that it has are not read. */
export function resourcesOfGateway({ servers }: Pick<GatewayModel, 'servers'>, hasProvider = false): readonly string[] {
  return servers.flatMap(({ serves }) => {
    if (serves.kind !== 'https' && serves.kind !== 'tls') return [];
    return servedResources(serverResources(serves.tls), hasProvider);
  });
}

/** Everything that clients with this rule ask for. */
function resourcesOfRule(
  rule: Pick<DestinationRuleModel, 'policy' | 'portPolicies' | 'subsets'>,
  hasProvider = false,
): readonly string[] {
  return credentialsOfRule(rule).flatMap((tls) => servedResources(clientResources(tls), hasProvider));
}

/** The rule's TLS settings that name a credential. */
export function credentialsOfRule(
  rule: Pick<DestinationRuleModel, 'policy' | 'portPolicies' | 'subsets'>,
): readonly ClientTls[] {
  return tlsOfRule(rule).filter(namesCredential);
}
