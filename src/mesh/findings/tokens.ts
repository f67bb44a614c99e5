import type { ObjectRef } from '../../api/object.ts';
import type { HasProblems, Problem } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { AuthorizationPolicyModel, Condition } from '../../model/authorization.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import { mayOverlap } from '../../model/labels.ts';
import { type PolicyObject, selectorsOf } from '../../model/policy-target.ts';
import { mustSeeRequests } from '../../model/request-authentication.ts';
import { labelKeys } from '../objects/label-keys.ts';
import type { Policies } from '../objects/policies.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import type { Services } from '../objects/services.ts';
import type { Settings } from '../settings.ts';
import { allOf } from '../whole.ts';
import { type GatewayOfRoutes, declareGatewaysOfRoutes } from './gateways-of-routes.ts';
import { declareOverlaps } from './policy-overlaps.ts';
import { type PortOfService, declarePortsByLabel } from './ports-by-label.ts';
import type { RouterServers } from './router-servers.ts';

/** At most this many are reported for each object. */
const mostRemarks = 20;

/** If there are more different selectors of gateways, any may be meant. */
const mostCompared = 100;

/**
 * What owners of policies are told about tokens that nobody verifies, about tokens that are verified, but that nobody
 * asks for, and about ports that are closed to what is not HTTP.
 *
 * @param gateways by object key.
 */
export function declareTokenFindings(
  graph: Graph,
  { authorization, requests }: Policies,
  settings: Settings,
  services: Services,
  bindings: RouteBindings,
  gateways: Collection<GatewayModel>,
  routers: RouterServers,
): readonly Collection<HasProblems>[] {
  // What a request may do without a token is written there.
  const routing = declareGatewaysOfRoutes(graph, 'claims', { bindings, gateways });
  const verifying = declareOverlaps(graph, 'verifying policies', requests, settings, ({ rules }) => rules.length > 0);
  const asking = declareOverlaps(
    graph,
    'policies about tokens',
    authorization,
    settings,
    (policy) => !policy.dryRun && (policy.action === 'CUSTOM' || conditionsOnTokens(policy).length > 0),
  );
  const detected = declarePortsByLabel(graph, services, 'sniffed');
  return [
    graph.derive('unverified tokens', authorization.models, (key, policy, read, emit: Emit<HasProblems>) => {
      const conditions = policy.action === 'CUSTOM' ? [] : conditionsOnTokens(policy);
      if (conditions.length === 0 || verifying.mayOverlap(read, policy)) return;
      const problems = conditions.slice(0, mostRemarks).map(({ index, condition }): Problem => {
        const consequence = condition.values.length > 0 ? 'the rule matches no request' : 'the condition always holds';
        return remark(
          policy.ref,
          `spec.rules[${index}]`,
          `compares the content of tokens, but no RequestAuthentication selects the same workloads, so no token is verified and ${consequence}. Add a RequestAuthentication for them.`,
        );
      });
      emit(key, { problems });
    }),
    graph.derive('optional tokens', requests.models, (key, policy, read, emit: Emit<HasProblems>) => {
      const { rules, ref } = policy;
      if (rules.length === 0 || rules.some(({ required }) => required) || asking.mayOverlap(read, policy)) return;
      if (routesByClaims(allOf(read, routing), policy)) return;
      const message =
        'lets requests without a token through: only invalid tokens are refused. Add an AuthorizationPolicy for the same workloads that allows requestPrincipals, or set presence: REQUIRED.';
      emit(key, { problems: [remark(ref, 'spec.jwtRules', message)] });
    }),
    graph.derive('tokens on detected ports', requests.models, (key, policy, read, emit: Emit<HasProblems>) => {
      const rule = policy.rules.find(mustSeeRequests);
      if (routers.find(read, policy.target) !== undefined) return;
      const found = rule && detectedPortOf(policy, read, detected);
      if (rule === undefined || found === undefined) return;
      const message = `must see every request, but the protocol of port ${found.port} of Service ${found.service} is detected: its connections that are not recognized as HTTP are closed, because a client could disguise a request as one of them. Set appProtocol, or name the port http-NAME or tcp-NAME.`;
      emit(key, { problems: [{ object: policy.ref, field: rule.field, reason: 'TooBroad', message }] });
    }),
  ];
}

/** A port of a Service that may have the same workloads. */
function detectedPortOf(
  { namespace, target }: PolicyObject,
  read: Reader,
  detected: Collection<readonly PortOfService[]>,
): PortOfService | undefined {
  if (target.kind === 'gateways') return undefined;
  const [labels = {}] = selectorsOf(target);
  const keys = Object.keys(labels).length === 0 ? [`${namespace}|`] : labelKeys(namespace, labels);
  return keys.flatMap((name) => read.get(detected, name) ?? []).find(({ selector }) => mayOverlap(labels, selector));
}

/** Whether a router may be selected by one of the gateways and by the policy. */
function routesByClaims(gateways: readonly GatewayOfRoutes[], { target }: PolicyObject): boolean {
  if (gateways.length > mostCompared) return true;
  return selectorsOf(target).some((labels) => gateways.some(({ selector }) => mayOverlap(labels, selector)));
}

function remark(object: ObjectRef, field: string, message: string): Problem {
  return { object, field, reason: 'Ineffective', message };
}

/** The first of each rule. */
function conditionsOnTokens({ rules }: AuthorizationPolicyModel) {
  return rules.flatMap(({ index, from, to, when, broken }) => {
    if (broken) return [];
    const condition = [...from, ...to, when].flat().find(isOnToken);
    return condition === undefined ? [] : [{ index, condition }];
  });
}

function isOnToken({ attribute: { kind } }: Condition): boolean {
  return kind === 'requestPrincipal' || kind === 'claim';
}
