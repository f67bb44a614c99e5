import type { Collection, Emit, Graph, Index, Reader } from '../../cache/graph.ts';
import { type AuthorizationPolicyModel, type AuthorizationRule, isOfHttp } from '../../model/authorization.ts';
import { type Labels, selects } from '../../model/labels.ts';
import { selectorsOf } from '../../model/policy-target.ts';
import { type MeshService, protocolClass } from '../../model/service.ts';
import { labelKeys, selectorKey } from '../objects/label-keys.ts';
import { type Policies, comparedPolicies } from '../objects/policies.ts';
import type { Services } from '../objects/services.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { Remark } from './problems.ts';

/** A port of a Service that takes connections that nobody understands as HTTP. */
interface TcpPort {
  readonly service: string;
  readonly port: number;
  readonly selector: Labels;
}

/** Of the services that share a label, this many are looked at. */
const mostServices = 20;

/** By `namespace|` and by `namespace|label=value` of the selector. */
export function declareServicesWithTcp(graph: Graph, { services }: Services): Collection<readonly TcpPort[]> {
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
export function remarksOnTcp(
  { action, namespace, target, rules }: AuthorizationPolicyModel,
  read: Reader,
  withTcp: Collection<readonly TcpPort[]>,
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

  function isOpen({ selector: labels }: TcpPort): boolean {
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
