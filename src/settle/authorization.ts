import {
  type AuthorizationPolicyModel,
  type AuthorizationRule,
  type AuthorizationStep,
  type Clause,
  type Condition,
  type NamedRule,
  type ResolvedAuthorizer,
  isOfHttp,
  isOperation,
} from '../model/authorization.ts';
import type { Source } from '../model/provenance.ts';
import { trustedPrincipals, trustedDomains } from './trust-domains.ts';

export interface AuthorizationInput {
  /** Policies of the root namespace first, oldest first. */
  readonly policies: readonly AuthorizationPolicyModel[];
  /** What the filters are for: requests, or connections without a protocol that is understood. */
  readonly layer: 'http' | 'tcp';
  /** The mesh's own trust domain, then its aliases. */
  readonly trustDomains: readonly [string, ...string[]];
  /** Issuers whose tokens are accepted. */
  readonly issuers: readonly string[];
  /** The service for the name of an extension provider; undefined if it cannot be asked. */
  readonly authorizerOf: (provider: string) => ResolvedAuthorizer | undefined;
}

/** How the names of rules end whose provider cannot be asked. Source: Istio. */
export const badCustomAction = '-deny-due-to-bad-CUSTOM-action';

/** The filters that enforce the policies of a workload. */
export interface AuthorizationSteps {
  /** They come before authentication. */
  readonly external: readonly AuthorizationStep[];
  readonly local: readonly AuthorizationStep[];
}

/** Without a policy, there are none. */
export function settleAuthorization(input: AuthorizationInput): AuthorizationSteps {
  return {
    external: externalSteps(input),
    local: (['AUDIT', 'DENY', 'ALLOW'] as const).flatMap((action) => {
      const policies = input.policies.filter((policy) => policy.action === action);
      return policies.length === 0 ? [] : [localStep(action, policies, input)];
    }),
  };
}

/** The steps that a gRPC server without an Envoy knows: no audits, and nothing that is only tried. */
export function stepsOfGrpcServer({ external, local }: AuthorizationSteps): readonly AuthorizationStep[] {
  return [...external, ...local].flatMap(({ action, policies, enforced }) =>
    action === 'LOG' || enforced === undefined ? [] : [{ action, policies, enforced, shadowPrefix: '' }],
  );
}

const shadowPrefixes = { ALLOW: 'istio_dry_run_allow_', DENY: 'istio_dry_run_deny_', AUDIT: '' } as const;

function localStep(
  action: 'ALLOW' | 'DENY' | 'AUDIT',
  policies: readonly AuthorizationPolicyModel[],
  input: AuthorizationInput,
): AuthorizationStep {
  const [enforced, shadow] = [policies.filter((p) => !p.dryRun), policies.filter((p) => p.dryRun)];
  const rulesOf = (some: readonly AuthorizationPolicyModel[]) => some.flatMap((policy) => namedRules(policy, input));
  return {
    action: action === 'AUDIT' ? 'LOG' : action,
    policies: enforced.map(({ ref }) => ref),
    ...(enforced.length === 0 ? {} : { enforced: rulesOf(enforced) }),
    ...(shadow.length === 0 ? {} : { shadow: rulesOf(shadow) }),
    // Without shadow rules it has no effect; this is what Istio sends.
    shadowPrefix: shadowPrefixes[shadow.length === 0 ? 'ALLOW' : action],
  };
}

/** By provider. Their dry runs are left out: Envoy has no way to ask a service without heeding the answer. */
function externalSteps(input: AuthorizationInput): readonly AuthorizationStep[] {
  const custom = input.policies.filter(({ action, dryRun }) => action === 'CUSTOM' && !dryRun);
  const providers = [...new Set(custom.map(({ provider }) => provider))].sort();
  return providers.map((provider): AuthorizationStep => {
    const ruleNames = `istio-ext-authz-${provider}`;
    const ofProvider = custom.filter((policy) => policy.provider === provider);
    const policies = ofProvider.map(({ ref }) => ref);
    const rules = ofProvider
      .flatMap((policy) => namedRules(policy, input))
      .map((rule) => ({ ...rule, name: `${ruleNames}-${rule.name}` }));
    const service = providers.length === 1 ? input.authorizerOf(provider) : undefined;
    // A service that can only be asked about requests cannot allow connections.
    if (service === undefined || (service.authorizer.protocol === 'http' && input.layer === 'tcp'))
      return {
        action: 'DENY',
        policies,
        enforced: rules.map((rule) => ({ ...rule, name: `${rule.name}${badCustomAction}` })),
        shadowPrefix: '',
      };
    return {
      action: 'DENY',
      policies,
      shadow: rules,
      shadowPrefix: 'istio_ext_authz_',
      external: { service, ruleNames },
    };
  });
}

function namedRules(policy: AuthorizationPolicyModel, input: AuthorizationInput): readonly NamedRule[] {
  const nameOf = (index: number): string => `ns[${policy.namespace}]-policy[${policy.name}]-rule[${index}]`;
  const sourceOf = (field: string): Source => ({ object: policy.ref, field });
  const isWide = policy.action === 'DENY' || policy.action === 'CUSTOM';
  if (policy.rules.length === 0)
    return [{ name: nameOf(0), source: sourceOf('spec'), isWide, permissions: [], principals: [] }];
  return policy.rules.flatMap((rule) => {
    const settled = settleRule(rule, policy, input);
    return settled === undefined
      ? []
      : [{ name: nameOf(rule.index), source: sourceOf(`spec.rules[${rule.index}]`), isWide, ...settled }];
  });
}

/** Undefined if the rule cannot match here: under ALLOW, a rule that is understood in part allows nothing. */
function settleRule(
  { from, to, when, broken }: AuthorizationRule,
  { action }: AuthorizationPolicyModel,
  { layer, trustDomains, issuers }: AuthorizationInput,
): Pick<NamedRule, 'permissions' | 'principals'> | undefined {
  const usable = (clause: Clause): Clause => (layer === 'http' ? clause : clause.filter((c) => !isOfHttp(c.attribute)));
  const clauses = [...from, ...to, when];
  if (action === 'ALLOW' && (broken || clauses.some((clause) => usable(clause).length < clause.length)))
    return undefined;
  const settle = (clause: Clause): Clause =>
    usable(clause).map((condition) => settleCondition(condition, trustDomains, issuers));
  const anywhere = settle(when);
  const withWhen = (some: readonly Clause[], mine: Clause): readonly Clause[] =>
    (some.length === 0 ? [[]] : some).map((clause) => [...settle(clause), ...mine]);
  return {
    permissions: withWhen(
      to,
      anywhere.filter(({ attribute }) => isOperation(attribute)),
    ),
    principals: withWhen(
      from,
      anywhere.filter(({ attribute }) => !isOperation(attribute)),
    ),
  };
}

function settleCondition(
  condition: Condition,
  domains: readonly [string, ...string[]],
  issuers: readonly string[],
): Condition {
  const { attribute, values, notValues } = condition;
  switch (attribute.kind) {
    case 'principal':
      return {
        attribute,
        values: trustedPrincipals(values, domains),
        notValues: trustedPrincipals(notValues, domains),
      };
    case 'trustDomain':
      return { attribute, values: trustedDomains(values, domains), notValues: trustedDomains(notValues, domains) };
    case 'requestPrincipal':
      return { ...condition, attribute: { ...attribute, issuers } };
    default:
      return condition;
  }
}
