import type { Emit, Graph, Index } from '../../cache/graph.ts';
import { type Labels, printSelector } from '../../model/labels.ts';
import { routeTargets } from './route-targets.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import type { Rules } from '../objects/rules.ts';
import { type Services, namespacesOf } from '../objects/services.ts';

/**
 * A client label selector that some route or rule mentions. Proxies that match the same selectors share a scope,
 * whatever other labels they have.
 */
export interface Mention {
  readonly selector: Labels;
  /** Client namespace that it can apply to; `*`: any. */
  readonly client: string;
  /** Namespace of the services that it is about; `*`: any. */
  readonly target: string;
}

export interface Selectors {
  readonly byClient: Index<Mention>;
  readonly byTarget: Index<Mention>;
}

export function declareSelectors(graph: Graph, services: Services, rules: Rules, bindings: RouteBindings): Selectors {
  const ruleMentions = graph.derive('rule mentions', rules.rules, (key, rule, read, emit: Emit<Mention>) => {
    const selector = rule.workloadSelector;
    if (selector === undefined) return;
    for (const target of namespacesOf(read, services, [rule.host]))
      emit(`${key}|${target}`, { selector, client: rule.namespace, target });
  });
  const routeMentions = graph.derive('route mentions', bindings.all, (key, binding, read, emit: Emit<Mention>) => {
    const { selectors } = binding.needs;
    if (selectors.length === 0) return;
    const targets = routeTargets(binding, read, services, bindings);
    const clients = binding.exportTo.includes('*') ? ['*'] : binding.exportTo;
    for (const selector of selectors)
      for (const target of targets)
        for (const client of clients)
          emit(`${key}|${printSelector(selector)}|${target}|${client}`, { selector, client, target });
  });
  const distinct = graph.derive(
    'selectors',
    graph.index('mentions', [ruleMentions, routeMentions], (_, m) => [
      `${m.client}|${m.target}|${printSelector(m.selector)}`,
    ]),
    (key, members, _, emit: Emit<Mention>) => emit(key, members[0].value),
  );
  return {
    byClient: graph.index('selectors by client', distinct, (_, mention) => [mention.client]),
    byTarget: graph.index('selectors by target', distinct, (_, mention) => [mention.target]),
  };
}
