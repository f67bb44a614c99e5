import { quote } from '../../api/quote.ts';
import type { HasProblems } from '../../api/problem.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { AuthorizationPolicyModel, AuthorizationRule } from '../../model/authorization.ts';
import { whyUnmatched } from '../../reconcilers/security/unmatched-paths.ts';
import type { PeerModesOf } from '../objects/peer-modes.ts';
import type { Policies } from '../objects/policies.ts';
import type { Services } from '../objects/services.ts';
import { type Settings, settingOf } from '../settings.ts';
import { remarksOnIdentities } from './identity-remarks.ts';
import type { Remark } from './problems.ts';
import { declarePortsByLabel } from './ports-by-label.ts';
import type { RouterServers } from './router-servers.ts';
import { remarksOnConnections, remarksOnTcp } from './tcp-remarks.ts';

export interface AuthorizationFindingDeps {
  readonly policies: Policies;
  readonly peerModes: PeerModesOf;
  readonly services: Services;
  readonly settings: Settings;
}

/** At most this many are reported for each object. */
const mostRemarks = 20;

/** What is valid in AuthorizationPolicies, and dangerous together with other objects. A dry run harms nobody. */
export function declareAuthorizationFindings(
  graph: Graph,
  deps: AuthorizationFindingDeps,
  routers: RouterServers,
): Collection<HasProblems> {
  const withTcp = declarePortsByLabel(graph, deps.services, 'tcp');
  return graph.derive(
    'authorizationFindings',
    deps.policies.authorization.models,
    (key, policy, read, emit: Emit<HasProblems>) => {
      if (policy.dryRun) return;
      const found = routers.find(read, policy.target);
      const remarks = [
        ...remarksOnMesh(policy, settingOf(read, deps.settings.visibility).rootNamespace),
        ...remarksOnPaths(policy, read, deps),
        // What a gateway accepts is up to its servers.
        ...(found === undefined ? remarksOnIdentities(policy, read, deps) : []),
        ...remarksOnConnections(policy, found),
        ...remarksOnTcp(policy, read, withTcp, found, deps),
      ];
      const problems = remarks.slice(0, mostRemarks).map((remark) => ({ object: policy.ref, ...remark }));
      if (problems.length > 0) emit(key, { problems });
    },
  );
}

function remarksOnMesh({ action, namespace, target, rules }: AuthorizationPolicyModel, root: string): Remark[] {
  if (namespace !== root || target.kind !== 'namespace') return [];
  if (action === 'ALLOW' && rules.length === 0)
    return [
      {
        field: 'spec',
        reason: 'TooBroad',
        message:
          'allows nothing in the whole mesh: every workload, including gateways, refuses what no other ALLOW policy allows. To restrict it to some workloads, move it to their namespace, or add a selector.',
      },
    ];
  if (action !== 'DENY') return [];
  return rules.filter(isEmpty).map(({ index }) => ({
    field: `spec.rules[${index}]`,
    reason: 'TooBroad',
    message:
      'is empty, and denies everything in the whole mesh; no other policy can allow it. To restrict it to some workloads, move the policy to their namespace, or add a selector.',
  }));
}

function isEmpty({ from, to, when, broken }: AuthorizationRule): boolean {
  return !broken && [...from, ...to, when].every((clause) => clause.length === 0);
}

function remarksOnPaths({ rules }: AuthorizationPolicyModel, read: Reader, deps: AuthorizationFindingDeps): Remark[] {
  const clauses = rules.flatMap(({ index, to, broken }) => (broken ? [] : to.map((clause) => ({ index, clause }))));
  const paths = clauses.flatMap(({ index, clause }) =>
    clause.flatMap(({ attribute, values, notValues }) =>
      attribute.kind === 'path' ? [{ index, values: [...values, ...notValues] }] : [],
    ),
  );
  if (paths.length === 0) return [];
  const { pathNormalization } = settingOf(read, deps.settings.listeners);
  return paths.flatMap(({ index, values }): Remark[] => {
    for (const path of values) {
      const why = whyUnmatched(path, pathNormalization);
      if (why === undefined) continue;
      const message = `has the path ${quote(path)}, which no request has: ${why}. Write the path as policies see it.`;
      return [{ field: `spec.rules[${index}]`, reason: 'Ineffective', message }];
    }
    return [];
  });
}
