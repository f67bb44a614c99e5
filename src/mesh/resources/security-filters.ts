import { withoutGeneration } from '../../api/object.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import {
  type SecurityFilters,
  authorizationFilters,
  networkAuthorizationFilters,
} from '../../envoy/security/authorization.ts';
import { withoutClaimHeaders } from '../../envoy/security/claim-headers.ts';
import { jwtAuthentication } from '../../envoy/security/jwt.ts';
import type { AuthorizationPolicyModel, ResolvedAuthorizer } from '../../model/authorization.ts';
import { compareText } from '../../model/age.ts';
import { keySetKey } from '../../model/key-set.ts';
import { type JwtIssuer, type JwtRule, mustSeeRequests } from '../../model/request-authentication.ts';
import { settleAuthorization, stepsOfGrpcServer } from '../../settle/authorization.ts';
import { mostChecked, tokenChecks } from '../../settle/token-checks.ts';
import type { Inputs } from '../inputs.ts';
import type { PolicySet } from '../clients/workload-policies.ts';
import type { Policies } from '../objects/policies.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Settings, settingOf } from '../settings.ts';
import { providerService } from './provider-service.ts';

export interface SettleDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly policies: Policies;
  readonly services: Services;
  readonly sidecars: Sidecars;
}

export interface SecurityFilterDeps extends SettleDeps {
  readonly policySets: Collection<PolicySet>;
}

/** By key of the {@link PolicySet}. */
export function declareSecurityFilters(graph: Graph, deps: SecurityFilterDeps): Collection<SecurityFilters> {
  return graph.derive('securityFilters', deps.policySets, (key, set, read, emit: Emit<SecurityFilters>) => {
    const { http, tcp, issuers, clusters, origins } = settleSecurity(set, read, deps);
    const checks = tokenChecks(issuers);
    const isTooMuch = checks.reduce((sum, check) => sum + check.issuers.length, 0) > mostChecked;
    const filters = {
      http: {
        external: authorizationFilters(http.external, set),
        authentication:
          issuers.length === 0 || isTooMuch
            ? []
            : [...withoutClaimHeaders(issuers, set), jwtAuthentication(issuers, checks, set.isRouter)],
        authorization: authorizationFilters(http.local, set),
      },
      network: networkAuthorizationFilters([...tcp.external, ...tcp.local], set),
      httpOnly: issuers.some(({ rule }) => mustSeeRequests(rule)),
      clusters,
      origins: origins.map(withoutGeneration),
    };
    // A chain has one or the other.
    const sizes = [filters.http, filters.network].map((some) => JSON.stringify(some).length);
    emit(key, { ...filters, size: isTooMuch ? Infinity : Math.max(...sizes) });
  });
}

/** What the policies of a set mean for the workloads that share it. */
export function settleSecurity(set: PolicySet, read: Reader, deps: SettleDeps) {
  const policies = set.authorization.flatMap((policy) => read.get(deps.policies.authorization.models, policy) ?? []);
  const clusters = new Set<string>();
  const authorizerOf = (provider: string): ResolvedAuthorizer | undefined => {
    const found = findAuthorizer(provider, set, read, deps);
    if (found !== undefined) clusters.add(found.cluster);
    return found;
  };
  const issuers = issuersOf(set, read, deps);
  const { http, tcp } = settle(policies, issuers, authorizerOf, read, deps);
  const requests = set.requests.flatMap((policy) => read.get(deps.policies.requests.models, policy) ?? []);
  return {
    http,
    tcp,
    issuers,
    clusters: [...clusters].sort(),
    origins: [...policies, ...requests].map(({ ref }) => ref),
  };
}

/** What gRPC servers enforce themselves: see {@link stepsOfGrpcServer}. They ask no service. */
export function stepsForGrpc(set: PolicySet, read: Reader, deps: SettleDeps) {
  const policies = set.authorization.flatMap((policy) => read.get(deps.policies.authorization.models, policy) ?? []);
  const { http } = settle(policies, [], () => undefined, read, deps);
  return { steps: stepsOfGrpcServer(http), origins: policies.map(({ ref }) => withoutGeneration(ref)) };
}

function settle(
  policies: readonly AuthorizationPolicyModel[],
  accepted: readonly JwtIssuer[],
  authorizerOf: (provider: string) => ResolvedAuthorizer | undefined,
  read: Reader,
  { settings }: SettleDeps,
) {
  const { trustDomain, trustDomainAliases } = settingOf(read, settings.security);
  const issuers = [...new Set(accepted.map(({ rule }) => rule.issuer))].filter((issuer) => issuer !== '');
  const input = { policies, trustDomains: [trustDomain, ...trustDomainAliases] as const, issuers, authorizerOf };
  return {
    http: settleAuthorization({ ...input, layer: 'http' }),
    tcp: settleAuthorization({ ...input, layer: 'tcp' }),
  };
}

function findAuthorizer(
  provider: string,
  set: PolicySet,
  read: Reader,
  deps: SettleDeps,
): ResolvedAuthorizer | undefined {
  const authorizer = settingOf(read, deps.settings.security).authorizers.find(({ name }) => name === provider);
  const found = authorizer && providerService(authorizer, set, read, deps);
  return found && { authorizer, ...found };
}

/** Sorted by issuer; the rules of one are in the order of the policies. */
function issuersOf({ requests }: PolicySet, read: Reader, { inputs, policies }: SettleDeps): JwtIssuer[] {
  const jwksOf = ({ keys }: JwtRule): string | undefined => {
    switch (keys.kind) {
      case 'inline':
        return keys.jwks;
      case 'fetched':
        return read.get(inputs.keySets, keySetKey(keys.source))?.jwks;
      case 'none':
        return undefined;
    }
  };
  return requests
    .flatMap((policy) => read.get(policies.requests.models, policy) ?? [])
    .flatMap(({ ref, rules }) =>
      rules.map((rule) => ({ rule, jwks: jwksOf(rule), source: { object: ref, field: rule.field } })),
    )
    .sort((a, b) => compareText(a.rule.issuer, b.rule.issuer));
}
