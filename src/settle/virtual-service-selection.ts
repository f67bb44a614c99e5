import { type Client, matchesSelector } from '../model/client.ts';
import { isWildcard } from '../model/host.ts';
import { printSelector } from '../model/labels.ts';
import { contains } from '../model/remembered.ts';
import { MESH, inOrderOfPrecedence } from '../model/route-binding.ts';
import type { RouteScope } from './route-scope.ts';
import { nameOfParent, type HttpMatch, type VirtualServiceModel } from '../model/virtual-service.ts';

/** What is known of a match before any request. */
type Condition = Pick<HttpMatch, 'port' | 'gateways' | 'sourceLabels' | 'sourceNamespace'>;

/** For whom, and where, a VirtualService has http routes. Stays equal while only what these match and do changes. */
export interface VirtualServiceConditions {
  readonly key: string;
  readonly namespace: string;
  readonly exportTo: readonly string[];
  /** Distinct. One of them must hold. */
  readonly conditions: readonly Condition[];
}

const ALWAYS: Condition = { port: 0, gateways: [], sourceLabels: {}, sourceNamespace: '' };

export function conditionsOf({ key, namespace, exportTo, http }: VirtualServiceModel): VirtualServiceConditions {
  // The routes of a delegate are in the place of one that delegates, unless there is none.
  const all = http
    .filter(({ action }) => action.kind !== 'delegate')
    .flatMap(({ matches }): readonly Condition[] => (matches.length === 0 ? [ALWAYS] : matches))
    .map(({ port, gateways, sourceLabels, sourceNamespace }) => ({ port, gateways, sourceLabels, sourceNamespace }));
  const textOf = ({ port, gateways, sourceLabels, sourceNamespace }: Condition): string =>
    JSON.stringify([port, gateways, printSelector(sourceLabels), sourceNamespace]);
  const distinct = [...new Map(all.map((each) => [textOf(each), each])).values()];
  return { key, namespace, exportTo, conditions: distinct };
}

/** A VirtualService and the host by which it was found. */
export interface Candidate {
  readonly matched: string;
  readonly model: VirtualServiceConditions;
}

/**
 * The VirtualService whose http routes apply to a host on a sidecar's listener. Candidates are all that name the host
 * or a wildcard over it, most specific host first, then oldest first. Among those that name it exactly, the first one
 * with routes for this client wins. If none names it exactly, only the first one with the most specific wildcard can
 * win.
 */
export function virtualServiceFor(
  candidates: readonly Candidate[],
  scope: Omit<RouteScope, 'parent'>,
): VirtualServiceConditions | undefined {
  if (candidates.length === 0) return undefined;
  const visible = inOrderOfPrecedence(candidates, scope.client.namespace, ({ model }) => model);
  const sidecar = { ...scope, parent: MESH };
  const best = candidates.find(({ model }) => visible.some((entry) => entry.model === model))?.matched;
  if (best === undefined) return undefined;
  const named = visible.filter(({ matched }) => matched === best);
  const contenders = isWildcard(best) ? named.slice(0, 1) : named;
  return contenders.find(({ model }) => canHold(model, sidecar))?.model;
}

/** Whether any request in the scope can take one of the routes. */
export function canHold({ conditions }: VirtualServiceConditions, scope: RouteScope): boolean {
  return conditions.some((condition) => matchCanHold(condition, scope));
}

/** Whether clients that differ only in their namespace get different routes from it. */
export function dependsOnSourceNamespace({ conditions }: VirtualServiceConditions): boolean {
  return conditions.some(({ sourceNamespace }) => sourceNamespace !== '');
}

/** Checks the conditions of an HTTP match that are known before any request: port, gateway and source. */
export function matchCanHold(match: Condition, scope: RouteScope): boolean {
  if (match.port !== 0 && match.port !== scope.listenerPort) return false;
  // A match that names gateways says nothing else about its source.
  if (match.gateways.length > 0) return contains(match.gateways, nameOfParent(scope.parent));
  return sourceMatches(match, scope.client);
}

function sourceMatches({ sourceLabels, sourceNamespace }: Condition, client: Client): boolean {
  if (sourceNamespace !== '' && sourceNamespace !== client.namespace) return false;
  return matchesSelector(client, sourceLabels);
}
