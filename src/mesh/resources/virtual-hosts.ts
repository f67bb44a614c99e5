import type { LeafPart } from '../../ads/store/resource.ts';
import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import type { Encoder } from '../../envoy/encode/encoder.ts';
import { samePart } from '../../envoy/encode/resource.ts';
import { buildVirtualHost } from '../../envoy/route/virtual-host.ts';
import { type Source, wholeObjects } from '../../model/provenance.ts';
import { MESH } from '../../model/route-binding.ts';
import type { MeshService } from '../../model/service.ts';
import { isServedNow } from '../clients/destinations.ts';
import { clientOf } from '../clients/lookups.ts';
import { type HostPlace, type HostRoutes, type RoutesOfView, ownClients } from '../clients/routes-of-view.ts';
import type { Views } from '../clients/views.ts';
import { type Inputs, optionsOf } from '../inputs.ts';
import type { ServiceEndpoints } from '../objects/endpoints.ts';
import type { RouteBindings } from '../objects/route-bindings.ts';
import { type Rules, ruleOf } from '../objects/rules.ts';
import type { Services } from '../objects/services.ts';
import type { Sidecars } from '../objects/sidecars.ts';
import { type Settings, settingOf } from '../settings.ts';
import type { Slot } from '../../model/patch.ts';
import type { Patches } from '../clients/patch-sets.ts';
import { type HasFailed, type SlotPatching, failedOf, patchingAt } from './patching.ts';
import { reachedOf } from './encoded-routes.ts';
import { type RoutePieces, declareRoutePieces } from './route-pieces.ts';
import { type Content, defaultContent, routedContent } from './virtual-host-content.ts';

/** A virtual host in a table of a list, with its place there. */
export interface VirtualHostEntry extends HasFailed {
  readonly place: HostPlace;
  readonly part: LeafPart;
}

export interface RouteDeps {
  readonly inputs: Inputs;
  readonly settings: Settings;
  readonly services: Services;
  readonly rules: Rules;
  readonly bindings: RouteBindings;
  readonly sidecars: Sidecars;
  readonly views: Views;
  readonly routesOfView: RoutesOfView;
  readonly endpoints: ServiceEndpoints;
  readonly patches: Patches | undefined;
  readonly encoder: Encoder;
}

/** Virtual hosts, once for each table that contains them: of services, and of hosts that only routes name. */
export function declareVirtualHosts(
  graph: Graph,
  deps: RouteDeps,
): {
  readonly entries: readonly Collection<VirtualHostEntry>[];
  /** What patches can fail for. */
  readonly patched: readonly Collection<HasFailed>[];
} {
  const { ofServices, ofHosts } = deps.routesOfView;
  const usesOf = ({ uses }: HostRoutes) => uses;
  const pieces = declareRoutePieces(graph, 'routePieces', deps, [ofServices, ofHosts], usesOf, (use, read) => ({
    view: use.view,
    scope: {
      client: clientOf(use.local ? ownClients(use.view) : use.view, optionsOf(read, deps.inputs).domainSuffix),
      settings: settingOf(read, deps.settings.routes),
      parent: MESH,
      listenerPort: use.listenerPort,
    },
    ...(use.patched && { patched: use.patched }),
  }));
  const build = (name: string, source: Collection<HostRoutes>) =>
    graph.derive(
      name,
      source,
      (key, routes, read, emit: Emit<VirtualHostEntry>) => {
        const patching = routes.place.view.patches && patchingOf(routes, read, deps);
        const part = virtualHostOf(routes, read, deps, pieces, patching);
        if (part !== undefined) emit(key, { place: routes.place, part, ...(patching && failedOf(patching)) });
      },
      (a, b) => samePart(a.part, b.part) && a.failed === b.failed,
    );
  const entries = [build('virtualHosts', ofServices), build('virtualHosts.routeHosts', ofHosts)];
  return { entries, patched: [...entries, pieces.all] };
}

/** Undefined if no routes apply to the clients, and no service takes the requests. */
function virtualHostOf(
  routes: HostRoutes,
  read: Reader,
  deps: RouteDeps,
  pieces: RoutePieces,
  patching: SlotPatching | undefined,
): LeafPart | undefined {
  const { place, port, uses, service: key } = routes;
  const { host, domains, declares } = place;
  const service = key === '' ? undefined : read.get(deps.services.services, key);
  const content =
    routedContent(uses.flatMap((use) => reachedOf(pieces.of(read, use)))) ??
    (declares && service !== undefined ? contentOf(service, routes, read, deps) : undefined);
  if (content === undefined) return undefined;
  const { own, encoded } = content;
  const virtualHost = buildVirtualHost({ host, port, domains, ...(own && { routes: own }) });
  // A host of routes has its names from these.
  const from = () => (service === undefined ? [] : namersOf(service));
  return deps.encoder.virtualHost(virtualHost, encoded, from, patching);
}

function patchingOf({ place, port }: HostRoutes, read: Reader, deps: RouteDeps): SlotPatching | undefined {
  const { view, host, table } = place;
  const slot: Slot = { type: 'virtualHost', direction: 'outbound', host, port, table };
  return patchingAt(read, deps.patches, view.patches?.routes, slot);
}

/** The service itself takes the requests. */
function contentOf(
  service: MeshService,
  { place, port, rule: id }: HostRoutes,
  read: Reader,
  deps: RouteDeps,
): Content {
  const rule = ruleOf(read, deps.rules, id, service);
  const served = isServedNow(service, port, read, deps);
  const settings = settingOf(read, deps.settings.routes);
  return defaultContent({ service, port, rule, served, settings }, place.view.traits);
}

/** The objects that give a service its names. */
function namersOf(service: MeshService): readonly Source[] {
  return wholeObjects([service, ...service.aliases].flatMap(({ origins }) => origins));
}
