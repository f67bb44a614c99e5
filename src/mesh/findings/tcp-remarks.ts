import type { Collection, Reader } from '../../cache/graph.ts';
import { type AuthorizationPolicyModel, type AuthorizationRule, isOfHttp } from '../../model/authorization.ts';
import { selects } from '../../model/labels.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { selectorKey } from '../objects/label-keys.ts';
import { type Policies, comparedPolicies } from '../objects/policies.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { PortOfService } from './ports-by-label.ts';
import type { Remark } from './problems.ts';

/** An ALLOW policy of which nothing is left on a TCP port closes the port, unless another one opens it. */
export function remarksOnTcp(
  { action, namespace, target, rules }: AuthorizationPolicyModel,
  read: Reader,
  withTcp: Collection<readonly PortOfService[]>,
  { policies, settings }: { readonly policies: Policies; readonly settings: Settings },
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

  function isOpen({ selector: labels }: PortOfService): boolean {
    const others = comparedPolicies(read, policies.authorization, [rootNamespace, namespace], labels);
    return others?.some(opensTcp) !== false;
  }
}

function opensTcp({ action, dryRun, rules }: AuthorizationPolicyModel): boolean {
  return action === 'ALLOW' && !dryRun && !rules.every(isOnlyForHttp);
}

function isOnlyForHttp({ from, to, when, broken }: AuthorizationRule): boolean {
  return broken || [...from, ...to, when].some((clause) => clause.some(({ attribute }) => isOfHttp(attribute)));
}
