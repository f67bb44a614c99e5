import { printRef } from '../../api/object.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import {
  type AuthorizationPolicyModel,
  type AuthorizationRule,
  type Clause,
  type Condition,
  matchesText,
  textMatch,
} from '../../model/authorization.ts';
import type { GatewayModel } from '../../model/gateway.ts';
import { mayOverlap } from '../../model/labels.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { type Policies, comparedPolicies } from '../objects/policies.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type Settings, settingOf } from '../settings.ts';
import { allOf } from '../whole.ts';
import { declareGatewaysOfRoutes } from './gateways-of-routes.ts';

/** If there are more different selectors of gateways, nothing is said. */
const mostCompared = 100;

/**
 * Policies that refuse the CORS preflights of routes on the same routers. A preflight has no token, and Envoy compares
 * it with policies before it answers it as the route says.
 *
 * @param of gateways: by object key.
 */
export function declarePreflightRemarks(
  graph: Graph,
  of: {
    readonly policies: Policies;
    readonly bindings: RouteBindings;
    readonly gateways: Collection<GatewayModel>;
    readonly settings: Settings;
  },
): Collection<HasProblems> {
  const { policies, settings } = of;
  const withCors = declareGatewaysOfRoutes(graph, 'cors', of);
  return graph.derive(
    'refused preflights',
    policies.authorization.models,
    (key, policy, read, emit: Emit<HasProblems>) => {
      const { ref, namespace, target, dryRun, action } = policy;
      const rule = dryRun || target.kind === 'namespace' ? undefined : refusingRule(policy);
      if (rule === undefined) return;
      const routers = allOf(read, withCors);
      if (routers.length > mostCompared) return;
      const selectors = selectorsOf(target);
      const found = routers.find(({ selector }) => selectors.some((labels) => areAlike(labels, selector)));
      if (found === undefined) return;
      if (action === 'ALLOW') {
        const { rootNamespace } = settingOf(read, settings.visibility);
        const others = selectors.map((labels) =>
          comparedPolicies(read, policies.authorization, [rootNamespace, namespace], labels),
        );
        if (others.some((same) => same === undefined || same.some((other) => !other.dryRun && letsPass(other)))) return;
      }
      const remedy =
        action === 'ALLOW'
          ? 'Add a rule that allows the method OPTIONS'
          : 'Add notMethods: ["OPTIONS"] to its operations';
      const message = `refuses CORS preflights with 403: they have no token, and policies come before the corsPolicy of ${printRef(found.routes)}. ${remedy}.`;
      emit(key, { problems: [{ object: ref, field: `spec.rules[${rule.index}]`, reason: 'TooBroad', message }] });
    },
  );
}

/** Whether one of the selectors has labels of the other, and none that differ. */
function areAlike(labels: Readonly<Record<string, string>>, selector: Readonly<Record<string, string>>): boolean {
  return mayOverlap(labels, selector) && Object.keys(labels).some((name) => Object.hasOwn(selector, name));
}

/** The first rule by which the policy, taken alone, refuses preflights for lack of a token. */
function refusingRule({ action, rules }: AuthorizationPolicyModel): AuthorizationRule | undefined {
  if (action === 'DENY') return rules.find(deniesPreflights);
  if (action !== 'ALLOW' || rules.some(allowsPreflights)) return undefined;
  return rules.find((rule) => !rule.broken && needsToken(rule));
}

function letsPass({ action, rules }: AuthorizationPolicyModel): boolean {
  return action === 'ALLOW' && rules.some(allowsPreflights);
}

/** As far as tokens and methods tell. */
function allowsPreflights(rule: AuthorizationRule): boolean {
  return !rule.broken && !needsToken(rule) && (rule.to.length === 0 || rule.to.some(takesOptions));
}

/** What else an operation compares may exclude the routes. */
function deniesPreflights({ from, to, when, broken }: AuthorizationRule): boolean {
  const isOfMissing = (clause: Clause) => clause.length > 0 && clause.every(holdsWithoutToken);
  const holds = from.length > 0 ? from.some(isOfMissing) && when.every(holdsWithoutToken) : isOfMissing(when);
  const takes = (clause: Clause) =>
    takesOptions(clause) && clause.every(({ attribute }) => attribute.kind === 'method');
  return !broken && holds && (to.length === 0 || to.some(takes));
}

function needsToken({ from, when }: AuthorizationRule): boolean {
  return when.some(isOfToken) || (from.length > 0 && from.every((clause) => clause.some(isOfToken)));
}

const isOfToken = ({ attribute: { kind }, values }: Condition): boolean => isOnToken(kind) && values.length > 0;

const holdsWithoutToken = ({ attribute: { kind }, values }: Condition): boolean =>
  isOnToken(kind) && values.length === 0;

const isOnToken = (kind: Condition['attribute']['kind']): boolean => kind === 'requestPrincipal' || kind === 'claim';

function takesOptions(clause: Clause): boolean {
  return clause.every(({ attribute, values, notValues }) => {
    const among = (texts: readonly string[]) => texts.some((text) => matchesText(textMatch(text), 'OPTIONS'));
    return attribute.kind !== 'method' || ((values.length === 0 || among(values)) && !among(notValues));
  });
}
