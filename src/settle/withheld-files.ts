import { clientFiles } from '../model/named-files.ts';
import type { ClientTls, DestinationRuleModel, RuleAudience, TrafficPolicy } from '../model/traffic-policy.ts';
import { audiencesOf } from './rule-selection.ts';

/** The files that rules of a namespace may have its own clients read, and clients in other namespaces. */
export interface AllowedFiles {
  readonly own: readonly string[];
  readonly others: readonly string[];
}

/** The rule as its audiences see it: clients that may not read a file get no connection where it is needed. */
export function withholdFiles(rule: DestinationRuleModel, allowed: AllowedFiles): readonly DestinationRuleModel[] {
  const [own, others] = [withhold(rule, allowed.own), withhold(rule, allowed.others)];
  const audiences = Object.groupBy(audiencesOf(rule), (audience) => (audience === 'others' ? 'others' : 'own'));
  if (audiences.others === undefined || sameWithheld(own, others)) return [own];
  if (audiences.own === undefined) return [others];
  const isFor = (to: readonly RuleAudience[]): Pick<DestinationRuleModel, 'audiences'> => ({ audiences: to });
  return [
    { ...own, ...isFor(audiences.own) },
    { ...others, id: `${rule.id}#files`, ...isFor(audiences.others) },
  ];
}

/** The TLS settings of a rule. */
export function tlsOfRule({
  subsets,
  ...rule
}: Pick<DestinationRuleModel, 'policy' | 'portPolicies' | 'subsets'>): readonly ClientTls[] {
  return [rule, ...subsets].flatMap(({ policy, portPolicies }) =>
    [policy, ...Object.values(portPolicies)].flatMap(({ tls }) => tls ?? []),
  );
}

function withhold(rule: DestinationRuleModel, allowed: readonly string[]): DestinationRuleModel {
  const may = new Set(allowed);
  const one = (policy: TrafficPolicy): TrafficPolicy => {
    const { tls } = policy;
    if (tls === undefined || clientFiles(tls).every((files) => may.has(files))) return policy;
    return { ...policy, tls: { ...tls, isWithheld: true } };
  };
  const both = <T extends Pick<DestinationRuleModel, 'policy' | 'portPolicies'>>(part: T): T => ({
    ...part,
    policy: one(part.policy),
    portPolicies: Object.fromEntries(Object.entries(part.portPolicies).map(([port, policy]) => [port, one(policy)])),
  });
  return { ...both(rule), subsets: rule.subsets.map(both) };
}

function sameWithheld(a: DestinationRuleModel, b: DestinationRuleModel): boolean {
  const others = tlsOfRule(b);
  return tlsOfRule(a).every(({ isWithheld }, i) => isWithheld === others[i]?.isWithheld);
}
