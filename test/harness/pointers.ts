import type { Place } from '../../src/api/place.ts';
import type { HasProblems, Problem } from '../../src/api/problem.ts';
import { type ObjectRef, parseObjectKey } from '../../src/api/object.ts';

import type { Emit, Graph, Input, Reader } from '../../src/cache/graph.ts';
import type { FrontEnds } from '../../src/mesh.ts';
import type { PatchFrontEnd } from '../../src/mesh/objects/patch-sources.ts';
import type { RouteFrontEnd } from '../../src/mesh/objects/route-bindings.ts';
import { type DestinationName, targetIn } from '../../src/model/client.ts';
import type { PatchSource } from '../../src/model/patch.ts';
import type { Parent, RouteBinding } from '../../src/model/route-binding.ts';
import { type RouteAction, type RouteRule, precedence } from '../../src/model/route.ts';

/** An object of a kind that Fairlead does not have: it leads all requests for a host to one place. */
export interface Pointer {
  readonly host: string;
  readonly parents: readonly Parent[];
  /** Host of a service. Neither this nor a delegate: requests are answered with 404. */
  readonly to?: string;
  /** Name of the Pointer of the same namespace that says where to. */
  readonly delegate?: string;
  /** Fields of the cluster of `to`, for clients of its namespace. */
  readonly patch?: object;
}

export const KIND = 'Pointer';

/** Parents of this name reject Pointers. */
export const CLOSED = 'closed';

export interface Pointers {
  /** Keys are `source/namespace/name`. */
  readonly input: Input<Pointer>;
  readonly routes: RouteFrontEnd;
  readonly patches: PatchFrontEnd;
}

/** Where what is said about a parent stands. */
export const placeOf = ({ group, kind, namespace, name, section, port }: Parent): Place => ({
  in: 'parents',
  ref: {
    ...{ group, kind, namespace, name },
    ...(section !== undefined && { sectionName: section }),
    ...(port !== undefined && { port }),
  },
});

/** @param seen is told of each graph that gets Pointers. */
export function pointerFrontEnds(seen: (pointers: Pointers) => void): FrontEnds {
  const byGraph = new Map<Graph, Pointers>();
  const of = (graph: Graph): Pointers => {
    const found = byGraph.get(graph) ?? declarePointers(graph);
    if (!byGraph.has(graph)) seen(found);
    byGraph.set(graph, found);
    return found;
  };
  return { routes: (graph) => [of(graph).routes], patches: (graph) => [of(graph).patches] };
}

/** All that it takes to add the kind. */
function declarePointers(graph: Graph): Pointers {
  const input = graph.input<Pointer>('objects.Pointer');
  return { input, routes: routesOf(graph, input), patches: patchesOf(graph, input) };
}

function routesOf(graph: Graph, input: Input<Pointer>): RouteFrontEnd {
  const bindings = graph.derive('routes of Pointers', input, (key, pointer, read, emit: Emit<RouteBinding>) => {
    const { host, parents } = pointer;
    const to = destinationOf(read, input, key);
    const targets = to === undefined ? [] : [{ host: to.host, takesRequests: true }];
    emit(key, {
      ...identityOf(key),
      ...{ parents, hosts: [host], exportTo: ['*'], hasRequests: true, hasConnections: false, features: [] },
      needs: { clients: [], selectors: [], routerSelectors: [], targets },
    });
  });
  const problems = graph.derive('problems of Pointers', input, (key, { parents }, _, emit: Emit<HasProblems>) => {
    const rejecting = parents.filter(({ name }) => name === CLOSED);
    const found = rejecting.map((parent): Problem => {
      const place = placeOf(parent);
      return { object: refOf(key), field: 'spec.parents', reason: 'Conflicted', message: 'Allow it.', place };
    });
    if (found.length > 0) emit(key, { problems: found });
  });
  return {
    kind: KIND,
    bindings,
    problems: [problems],
    rules: {
      isExclusive: false,
      chosen: (_, found) => found,
      canHold: () => true,
      dependsOnNamespace: () => false,
      connections: () => undefined,
      unverifiedClaims: () => [],
      countPieces: () => 1,
      destinations(read, key) {
        const to = destinationOf(read, input, key);
        return to === undefined ? [] : [to];
      },
      settle(read, key, _, { targets }) {
        if (read.get(input, key) === undefined) return undefined;
        const to = destinationOf(read, input, key);
        const target = to && targetIn(targets, to);
        const action: RouteAction =
          target?.kind === 'cluster'
            ? {
                kind: 'forward',
                backends: [{ target: { kind: 'cluster', cluster: target.cluster } }],
                mirrors: [],
                retriesStay: false,
              }
            : { kind: 'directResponse', status: 404 };
        const rule: RouteRule = {
          ...{ name: '', owner: refOf(key), sources: [{ object: refOf(key), field: 'spec.to' }], matches: [] },
          ...{ precedence: precedence.everyRequest, operation: to?.host ?? '', action },
        };
        return { rules: [rule], isComplete: true, problems: [] };
      },
    },
  };
}

function patchesOf(graph: Graph, input: Input<Pointer>): PatchFrontEnd {
  const sources = graph.derive('patches of Pointers', input, (key, { to, patch }, _, emit: Emit<PatchSource>) => {
    if (to === undefined || patch === undefined) return;
    const where = { type: 'cluster', direction: 'outbound', host: to } as const;
    emit(key, { ...identityOf(key), priority: 0, patches: [{ ...where, field: 'spec.patch', payload: patch }] });
  });
  return {
    kind: KIND,
    sources,
    problems: [],
    apply: (_, message, __, patches) => ({
      ...message,
      ...Object.assign({}, ...patches.map(({ payload }) => payload)),
    }),
  };
}

/** Undefined: it leads nowhere. */
function destinationOf(read: Reader, input: Input<Pointer>, key: string): DestinationName | undefined {
  const { to, delegate } = read.get(input, key) ?? {};
  const { source, namespace } = parseObjectKey(key);
  const host = to ?? (delegate && read.get(input, `${source}/${namespace}/${delegate}`)?.to);
  return host === undefined || host === '' ? undefined : { host, subset: '', port: 80 };
}

function identityOf(key: string) {
  const ref = refOf(key);
  const { namespace, name } = ref;
  return { key: `${KIND}/${key}`, ref, namespace, name, createdAt: '2030-01-01T00:00:00Z' };
}

function refOf(key: string): ObjectRef {
  const { source, namespace, name } = parseObjectKey(key);
  return { source, group: 'test', kind: KIND, namespace, name };
}
