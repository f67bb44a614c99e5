import type { Reader } from '../../cache/graph.ts';
import type { AuthorizationPolicyModel, AuthorizationRule, Clause } from '../../model/authorization.ts';
import type { MtlsMode } from '../../model/peer-authentication.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import type { PeerModesOf } from '../objects/peer-modes.ts';
import { type Policies, comparedPolicies } from '../objects/policies.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { Remark } from './problems.ts';

export interface IdentityRemarkDeps {
  readonly policies: Policies;
  readonly peerModes: PeerModesOf;
  readonly settings: Settings;
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
export function remarksOnIdentities(
  { action, namespace, target, rules }: AuthorizationPolicyModel,
  read: Reader,
  { policies, peerModes, settings }: IdentityRemarkDeps,
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
  if (comparedPolicies(read, policies.peers, [rootNamespace, namespace], labels) === undefined) return [];
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
