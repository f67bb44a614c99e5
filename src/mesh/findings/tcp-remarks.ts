import { printRef } from '../../api/object.ts';
import type { Collection, Reader } from '../../cache/graph.ts';
import {
  type AuthorizationPolicyModel,
  type AuthorizationRule,
  type Clause,
  isOfHttp,
} from '../../model/authorization.ts';
import { selects } from '../../model/labels.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { selectorKey } from '../objects/label-keys.ts';
import { type Policies, comparedPolicies } from '../objects/policies.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { PortOfService } from './ports-by-label.ts';
import type { Remark } from './problems.ts';
import type { FoundRouters } from './router-servers.ts';

/** A DENY rule that compares only properties of HTTP requests refuses every connection that is not HTTP. */
export function remarksOnConnections(
  { action, rules }: AuthorizationPolicyModel,
  routers: FoundRouters | undefined,
): Remark[] {
  if (action !== 'DENY' && action !== 'CUSTOM') return [];
  const found = rules.filter((rule) => !rule.broken && isOpenToTcp(rule));
  if (routers !== undefined && routers.opaque === undefined) return [];
  const effect = action === 'DENY' ? 'it denies every connection' : 'every connection is checked';
  const message = `compares only what HTTP requests have; on TCP ports, ${effect}. Add to.operation.ports with the HTTP ports of the workload.`;
  return found.map(({ index }) => ({ field: `spec.rules[${index}]`, reason: 'TooBroad', message }));
}

/** An ALLOW policy of which nothing is left on a TCP port closes the port, unless another one opens it. */
export function remarksOnTcp(
  { action, namespace, target, rules }: AuthorizationPolicyModel,
  read: Reader,
  withTcp: Collection<readonly PortOfService[]>,
  routers: FoundRouters | undefined,
  { policies, settings }: { readonly policies: Policies; readonly settings: Settings },
): Remark[] {
  const { rootNamespace } = settingOf(read, settings.visibility);
  if (action !== 'ALLOW' || rules.length === 0 || namespace === rootNamespace || !rules.every(isOnlyForHttp)) return [];
  if (target.kind === 'gateways') return [];
  const [selector = {}] = selectorsOf(target);
  if (routers !== undefined) {
    const { opaque } = routers;
    return opaque === undefined || isOpen({ selector }) ? [] : [closed({ ...opaque, owner: printRef(opaque.gateway) })];
  }
  const found = (read.get(withTcp, selectorKey(namespace, selector) ?? `${namespace}|`) ?? []).find(
    (tcp) => selects(selector, tcp.selector) && !isOpen(tcp),
  );
  if (found === undefined) return [];
  return [closed({ port: found.port, owner: `Service ${found.service}` })];

  function isOpen({ selector: labels }: Pick<PortOfService, 'selector'>): boolean {
    const others = comparedPolicies(read, policies.authorization, [rootNamespace, namespace], labels);
    return others?.some(opensTcp) !== false;
  }
}

function closed({ port, owner }: { readonly port: number; readonly owner: string }): Remark {
  const message = `compare only what HTTP requests have, so nothing is allowed on the TCP port ${port} of ${owner}: its connections are closed. Add a rule for that port without hosts, methods, paths, headers or tokens.`;
  return { field: 'spec.rules', reason: 'Ineffective', message };
}

function opensTcp({ action, dryRun, rules }: AuthorizationPolicyModel): boolean {
  return action === 'ALLOW' && !dryRun && !rules.every(isOnlyForHttp);
}

function isOnlyForHttp({ from, to, when, broken }: AuthorizationRule): boolean {
  return broken || [...from, ...to, when].some((clause) => clause.some(({ attribute }) => isOfHttp(attribute)));
}

/** Whether an alternative matches all connections on TCP ports, because only what HTTP requests have would tell. */
function isOpenToTcp({ from, to, when }: AuthorizationRule): boolean {
  if (isOfPorts(when)) return false;
  const anyPort = (to.length === 0 ? [[]] : to).filter((clause) => !isOfPorts(clause));
  return anyPort.some(isOnlyOfHttp) || (anyPort.length > 0 && [...from, when].some(isOnlyOfHttp));
}

/** Whether nothing is left of it on TCP ports. */
function isOnlyOfHttp(clause: Clause): boolean {
  return clause.length > 0 && clause.every(({ attribute }) => isOfHttp(attribute));
}

function isOfPorts(clause: Clause): boolean {
  return clause.some(({ attribute }) => attribute.kind === 'port');
}
