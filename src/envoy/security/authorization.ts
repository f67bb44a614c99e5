import type { ObjectRef } from '../../api/object.ts';
import type { Traits } from '../../model/traits.ts';
import type { AuthorizationStep, NamedRule } from '../../model/authorization.ts';
import type { Filter, HttpFilter, RBAC } from '../gen/types.gen.ts';
import { constantAny } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import { httpExtAuthz, networkExtAuthz } from './ext-authz.ts';
import { rbacPolicy, type RbacTraits } from './rbac-matchers.ts';

/** The filters that enforce policies. They stand in all listeners of a workload; each is encoded once. */
export interface SecurityFilters {
  readonly http: {
    /** These ask a service, before authentication. */
    readonly external: readonly HttpFilter[];
    readonly authentication: readonly HttpFilter[];
    readonly authorization: readonly HttpFilter[];
  };
  readonly network: readonly Filter[];
  /** Where the protocol is detected, what is not recognized as HTTP is refused: it could be a request all the same. */
  readonly httpOnly: boolean;
  /** Clusters that they name. */
  readonly clusters: readonly string[];
  /** How much they add to each filter chain: characters as JSON, which is more than the bytes. */
  readonly size: number;
  /** The policies. */
  readonly origins: readonly ObjectRef[];
}

export const noSecurity: SecurityFilters = {
  http: { external: [], authentication: [], authorization: [] },
  network: [],
  httpOnly: false,
  clusters: [],
  size: 0,
  origins: [],
};

/** Of all chains of one listener, as JSON. */
const mostFilters = 16 * 1024 * 1024;

/** Whether a listener with so many chains can have these filters. */
export function isTooLarge({ size }: SecurityFilters, chains: number): boolean {
  return size * chains > mostFilters;
}

export const refuseAll: AuthorizationStep = { action: 'ALLOW', policies: [], enforced: [], shadowPrefix: '' };

/** Refuses everything; for listeners that cannot have the filters that they should. */
export function closed(traits: Pick<Traits, 'agent'>): SecurityFilters {
  const steps = [refuseAll];
  return {
    ...noSecurity,
    http: { ...noSecurity.http, authorization: authorizationFilters(steps, traits) },
    network: networkAuthorizationFilters(steps, traits),
  };
}

const rbacFilter = { http: 'envoy.filters.http.rbac', network: 'envoy.filters.network.rbac' };

/** The HTTP filters of these steps. They stand in every connection manager of a workload, and are encoded once. */
export function authorizationFilters(steps: readonly AuthorizationStep[], traits: RbacTraits): readonly HttpFilter[] {
  return steps.flatMap((step): HttpFilter[] => [
    { name: rbacFilter.http, typedConfig: constantAny(types.rbac, rbac(step, traits)) },
    ...(step.external === undefined ? [] : [httpExtAuthz(step.external, enabledBy(rbacFilter.http, step.external))]),
  ]);
}

/** The same for TCP. */
export function networkAuthorizationFilters(
  steps: readonly AuthorizationStep[],
  traits: Pick<Traits, 'agent'>,
): readonly Filter[] {
  const statPrefix = 'tcp.';
  return steps.flatMap((step): Filter[] => [
    {
      name: rbacFilter.network,
      typedConfig: constantAny(types.networkRbac, { ...rbac(step, traits), statPrefix }),
    },
    ...(step.external === undefined
      ? []
      : [networkExtAuthz(step.external, enabledBy(rbacFilter.network, step.external), statPrefix)]),
  ]);
}

/** The service is asked if a shadow rule has matched. */
function enabledBy(filter: string, { ruleNames }: NonNullable<AuthorizationStep['external']>) {
  return {
    filter,
    path: [{ key: 'istio_ext_authz_shadow_effective_policy_id' }],
    value: { stringMatch: { prefix: ruleNames } },
  };
}

function rbac({ action, enforced, shadow, shadowPrefix }: AuthorizationStep, traits: RbacTraits) {
  const rules = (named: readonly NamedRule[]): RBAC => ({
    action,
    policies: Object.fromEntries(named.map((rule) => [rule.name, rbacPolicy(rule, traits)])),
  });
  return {
    ...(enforced === undefined ? {} : { rules: rules(enforced) }),
    ...(shadow === undefined ? {} : { shadowRules: rules(shadow) }),
    shadowRulesStatPrefix: shadowPrefix,
  };
}
