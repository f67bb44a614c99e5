import type { ObjectRef } from '../../api/object.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { GatewayModel, ServerKind } from '../../model/gateway.ts';
import { type Labels, mayOverlap, printSelector, selects } from '../../model/labels.ts';
import { type PolicyTarget, selectorsOf } from '../../model/policy-target.ts';
import { labelKeys } from '../objects/label-keys.ts';

/** What the Gateways for some workloads have them serve. */
export interface RouterServers {
  /** Undefined if the workloads with one of these selectors may be others than routers, as far as Gateways tell. */
  find(read: Reader, target: PolicyTarget): FoundRouters | undefined;
}

export interface FoundRouters {
  /** A server of theirs that takes connections, not requests. */
  readonly opaque?: OpaqueServer;
}

interface OpaqueServer {
  readonly gateway: ObjectRef;
  readonly port: number;
}

interface Selected extends FoundRouters {
  readonly selector: Labels;
}

/** Of more selectors that share a label, it is not known what they select. */
const mostCompared = 50;

/** Where all selectors with such a server are: a router may have the labels of any of them, too. */
const ANY = '';

/** @param gateways by object key. */
export function declareRouterServers(graph: Graph, gateways: Collection<GatewayModel>): RouterServers {
  const selectors = graph.derive(
    'servers of selectors',
    graph.index('servers of gateways by selector', gateways, (_, { selector }) => [printSelector(selector)]),
    (key, members, _, emit: Emit<Selected>) => {
      const { selector } = members[0].value;
      for (const { value } of members) {
        const server = value.servers.find(({ serves }) => isOpaque(serves));
        if (server === undefined) continue;
        return emit(key, { selector, opaque: { gateway: value.ref, port: server.port.number } });
      }
      emit(key, { selector });
    },
  );
  const byLabel = graph.derive(
    'selectors of routers by label',
    graph.index('selectors of routers', selectors, (_, { selector, opaque }) => [
      ...(opaque === undefined ? [] : [ANY]),
      ...labelKeys(ANY, selector),
    ]),
    (key, members, _, emit: Emit<readonly Selected[]>) =>
      emit(
        key,
        members.slice(0, mostCompared + 1).map(({ value }) => value),
      ),
  );
  const routersWith = (read: Reader, labels: Labels): FoundRouters | undefined => {
    const groups = [ANY, ...labelKeys(ANY, labels)].map((key) => read.get(byLabel, key) ?? []);
    if (groups.some(({ length }) => length > mostCompared)) return undefined;
    const related = groups.flat().filter(({ selector }) => mayOverlap(selector, labels));
    const areRouters = related.some(
      ({ selector }) => Object.keys(selector).length > 0 && (selects(selector, labels) || selects(labels, selector)),
    );
    return areRouters ? (related.find(({ opaque }) => opaque !== undefined) ?? {}) : undefined;
  };
  return {
    find(read, target) {
      if (target.kind === 'namespace') return undefined;
      const found = selectorsOf(target).map((labels) => routersWith(read, labels));
      return found.includes(undefined)
        ? undefined
        : (found.find((routers) => routers?.opaque !== undefined) ?? found[0]);
    },
  };
}

function isOpaque({ kind }: ServerKind): boolean {
  return kind !== 'http' && kind !== 'https';
}
