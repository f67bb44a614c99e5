import type { Problem } from '../../api/problem.ts';
import { quote } from '../../api/quote.ts';
import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import {
  type AuthorizationPolicyModel,
  type AuthorizationRule,
  type Clause,
  isOfHttp,
} from '../../model/authorization.ts';
import { type Labels, selects } from '../../model/labels.ts';
import type { MtlsMode } from '../../model/peer-authentication.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { type MeshService, protocolClass } from '../../model/service.ts';
import { whyUnmatched } from '../../reconcilers/security/unmatched-paths.ts';
import { labelKeys, selectorKey } from '../objects/label-keys.ts';
import type { PeerModesOf } from '../objects/peer-modes.ts';
import { type Policies, policiesFor } from '../objects/policies.ts';
import type { Services } from '../objects/services.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { HasProblems } from './problems.ts';

export interface AuthorizationFindingDeps {
  readonly policies: Policies;
  readonly peerModes: PeerModesOf;
  readonly services: Services;
  readonly settings: Settings;
}

type Remark = Pick<Problem, 'field' | 'reason' | 'message'>;

/** At most this many are reported for each object. */
const mostRemarks = 20;

/** What is valid in AuthorizationPolicies, and dangerous together with other objects. A dry run harms nobody. */
export function declareAuthorizationFindings(graph: Graph, deps: AuthorizationFindingDeps): Collection<HasProblems> {
  const withTcp = declareServicesWithTcp(graph, deps.services);
  return graph.derive(
    'authorizationFindings',
    deps.policies.authorization.models,
    (key, policy, read, emit: Emit<HasProblems>) => {
      if (policy.dryRun) return;
      const remarks = [
        ...remarksOnMesh(policy, settingOf(read, deps.settings.visibility).rootNamespace),
        ...remarksOnPaths(policy, read, deps),
        ...remarksOnIdentities(policy, read, deps),
        ...remarksOnTcp(policy, read, withTcp, deps),
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

const identities = new Set(['principal', 'serviceAccount', 'trustDomain', 'namespace']);

/** Whether a rule can match only callers with a certificate, or only callers that are not certain ones. */
function identityIn({ from, when }: AuthorizationRule): 'required' | 'excluded' | undefined {
  const ofClause = (clause: Clause) => {
    const own = clause.filter(({ attribute }) => identities.has(attribute.kind));
    if (own.some(({ values }) => values.length > 0)) return 'required';
    return own.length > 0 ? 'excluded' : undefined;
  };
  const found = (from.length === 0 ? [[]] : from).map((clause) => ofClause([...clause, ...when]));
  return found.find((one) => one === 'excluded') ?? found.find((one) => one === 'required');
}

/** Where plaintext is accepted, its callers have no identity. */
function remarksOnIdentities(
  { action, namespace, target, rules }: AuthorizationPolicyModel,
  read: Reader,
  { peerModes, settings }: AuthorizationFindingDeps,
): Remark[] {
  // What a gateway accepts is up to its servers.
  if (target.kind === 'gateways' || (action !== 'ALLOW' && action !== 'DENY')) return [];
  const found = rules.flatMap((rule) => {
    const identity = rule.broken ? undefined : identityIn(rule);
    return identity === undefined ? [] : [{ field: `spec.rules[${rule.index}]`, identity }];
  });
  if (found.length === 0) return [];
  const { rootNamespace } = settingOf(read, settings.visibility);
  const [labels = {}] = selectorsOf(target);
  const { mode, ports } =
    namespace === rootNamespace
      ? { mode: peerModes.namespace(read, namespace), ports: {} }
      : peerModes.workload(read, namespace, labels);
  // Which ports are meant is not known.
  if (Object.values(ports).some((own) => own !== mode)) return [];
  return found.flatMap(({ field, identity }) => {
    const message = consequenceOf(action, identity, mode);
    return message === undefined ? [] : [{ field, ...message }];
  });
}

function consequenceOf(
  action: 'ALLOW' | 'DENY',
  identity: 'required' | 'excluded',
  mode: MtlsMode,
): Pick<Remark, 'reason' | 'message'> | undefined {
  if (mode === 'STRICT') return undefined;
  if (mode === 'DISABLE') {
    const effect = identity === 'required' ? 'matches no request' : 'also matches the callers that it excludes';
    return {
      reason: 'Ineffective',
      message: `compares identities, but the PeerAuthentication in force here has mode DISABLE, so callers have none, and the rule ${effect}. Use mode STRICT, or compare something else.`,
    };
  }
  if (action === 'DENY' && identity === 'required')
    return {
      reason: 'Ineffective',
      message:
        'denies by identity, but mutual TLS is PERMISSIVE here: the same callers have no identity in plaintext, and are not denied. Use a PeerAuthentication with mode STRICT.',
    };
  if (action === 'ALLOW' && identity === 'excluded')
    return {
      reason: 'TooBroad',
      message:
        'allows all but some identities, but mutual TLS is PERMISSIVE here: callers in plaintext have no identity, and are all allowed. Use a PeerAuthentication with mode STRICT, or name who is allowed.',
    };
  return undefined;
}

/** A port of a Service that takes connections that nobody understands as HTTP. */
interface TcpPort {
  readonly service: string;
  readonly port: number;
  readonly selector: Labels;
}

/** Of the services that share a label, this many are looked at. */
const mostServices = 20;

/** By `namespace|` and by `namespace|label=value` of the selector. */
function declareServicesWithTcp(graph: Graph, { services }: Services): Collection<readonly TcpPort[]> {
  const byLabel: Index<MeshService> = graph.index('services with TCP ports', services, (_, service) => {
    const { namespace, selector = {} } = service;
    if (Object.keys(selector).length === 0 || tcpPortOf(service) === undefined) return [];
    return [`${namespace}|`, ...labelKeys(namespace, selector)];
  });
  return graph.derive('TCP ports by label', byLabel, (key, members, _, emit: Emit<readonly TcpPort[]>) =>
    emit(
      key,
      members.slice(0, mostServices).map(({ value }) => {
        const { name, namespace, selector = {} } = value;
        return { service: `${namespace}/${name}`, port: tcpPortOf(value)?.number ?? 0, selector };
      }),
    ),
  );
}

function tcpPortOf({ ports }: MeshService) {
  return ports.find(({ protocol }) => protocolClass(protocol) === 'tcp');
}

/** An ALLOW policy of which nothing is left on a TCP port closes the port, unless another one opens it. */
function remarksOnTcp(
  { action, namespace, target, rules }: AuthorizationPolicyModel,
  read: Reader,
  withTcp: Collection<readonly TcpPort[]>,
  { policies, settings }: AuthorizationFindingDeps,
): Remark[] {
  const { rootNamespace } = settingOf(read, settings.visibility);
  if (action !== 'ALLOW' || rules.length === 0 || namespace === rootNamespace || !rules.every(isOnlyForHttp)) return [];
  if (target.kind === 'gateways') return [];
  const [selector = {}] = selectorsOf(target);
  const found = (read.get(withTcp, selectorKey(namespace, selector) ?? `${namespace}|`) ?? []).find(
    (tcp) => selects(selector, tcp.selector) && !isOpen(tcp),
  );
  if (found === undefined) return [];
  const message = `compare only what HTTP requests have, so nothing is allowed on the TCP port ${found.port} of Service ${found.service}: its connections are closed. Add a rule for that port without hosts, methods, paths, headers or tokens.`;
  return [{ field: 'spec.rules', reason: 'Ineffective', message }];

  function isOpen({ selector: labels }: TcpPort): boolean {
    return [rootNamespace, namespace]
      .flatMap((where) => policiesFor(read, policies.authorization, where, labels))
      .some((other) => other.action === 'ALLOW' && !other.dryRun && other.rules.some((rule) => !isOnlyForHttp(rule)));
  }
}

function isOnlyForHttp({ from, to, when, broken }: AuthorizationRule): boolean {
  return broken || [...from, ...to, when].some((clause) => clause.some(({ attribute }) => isOfHttp(attribute)));
}
