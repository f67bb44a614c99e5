import type { Client } from '../model/client.ts';
import { isWildcard } from '../model/host.ts';
import { contains } from '../model/remembered.ts';
import { MESH, inOrderOfPrecedence } from '../model/route-binding.ts';
import type { RouteScope } from './route-scope.ts';
import { nameOfParent, type HttpMatch, type HttpRoute, type VirtualServiceModel } from '../model/virtual-service.ts';

/** A VirtualService and the host by which it was found. */
export interface Candidate {
  readonly matched: string;
  readonly model: VirtualServiceModel;
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
): VirtualServiceModel | undefined {
  if (candidates.length === 0) return undefined;
  const visible = inOrderOfPrecedence(candidates, scope.client.namespace, ({ model }) => model);
  const sidecar = { ...scope, parent: MESH };
  const best = candidates.find(({ model }) => visible.some((entry) => entry.model === model))?.matched;
  if (best === undefined) return undefined;
  const named = visible.filter(({ matched }) => matched === best);
  const contenders = isWildcard(best) ? named.slice(0, 1) : named;
  return contenders.find(({ model }) => model.http.some((route) => canHold(route, sidecar)))?.model;
}

/** Whether any request in the scope can take the route. */
export function canHold(route: HttpRoute, scope: RouteScope): boolean {
  if (route.action.kind === 'delegate') return false;
  return route.matches.length === 0 || route.matches.some((match) => matchCanHold(match, scope));
}

/** Whether clients that differ only in their namespace get different routes from it. */
export function dependsOnSourceNamespace({ http }: VirtualServiceModel): boolean {
  return http.some(({ matches }) => matches.some(({ sourceNamespace }) => sourceNamespace !== ''));
}

/** Checks the conditions of an HTTP match that are known before any request: port, gateway and source. */
export function matchCanHold(match: HttpMatch, scope: RouteScope): boolean {
  if (match.port !== 0 && match.port !== scope.listenerPort) return false;
  // A match that names gateways says nothing else about its source.
  if (match.gateways.length > 0) return contains(match.gateways, nameOfParent(scope.parent));
  return sourceMatches(match, scope.client);
}

function sourceMatches({ sourceLabels, sourceNamespace }: HttpMatch, client: Client): boolean {
  if (sourceNamespace !== '' && sourceNamespace !== client.namespace) return false;
  return isEmpty(sourceLabels) || client.matches(sourceLabels);
}

function isEmpty(labels: object): boolean {
  for (const _ in labels) return false;
  return true;
}
