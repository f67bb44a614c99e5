import type { Collection, Emit, Graph, Reader } from '../../cache/graph.ts';
import { contentHash } from '../../model/hash.ts';
import { type EgressListener, type SidecarModel, everything, importsFrom } from '../../model/sidecar.ts';
import { type Traits, listenerTraitsKey, traitsKey, viewTraits } from '../../model/traits.ts';
import type { NamespaceClients, Namespaces } from './namespaces.ts';
import type { Patches } from './patch-sets.ts';
import { type ViewPatches, patchesKey } from './scope-patches.ts';
import type { Proxies, Scope } from './proxies.ts';
import type { EgressRef, Sidecars } from '../objects/sidecars.ts';
import { allOf } from '../whole.ts';

/**
 * The services of one namespace as some clients see them: the unit that scopes share. Most clients of a namespace are
 * in its public audience; a view of clients that see it differently names their namespace.
 */
export interface View {
  readonly key: string;
  /** Namespace of the services. */
  readonly namespace: string;
  /** The traits that {@link viewTraits} keeps. */
  readonly traits: Traits;
  /** Namespace of the clients; empty for the public audience. */
  readonly client: string;
  /** Of the selectors that matter for this namespace, those that these clients match. */
  readonly matched: readonly string[];
  /** Absent: everything visible. Otherwise, only what this egress listener of the Sidecar imports. */
  readonly egress?: EgressRef;
  /** All clients that are patched alike share it. Absent: nothing patches its clusters or routes. */
  readonly patches?: ViewPatches;
}

export interface ScopeViews {
  readonly scope: Scope;
  /** One per egress listener; the last is the catch-all, if there is one. */
  readonly outlets: readonly { readonly listener: EgressListener; readonly views: readonly View[] }[];
  /**
   * Key of the view of the scope's own namespace, if it is the public view: these clients see the same services, and
   * also know them by their short names.
   */
  readonly local: string;
  /**
   * A short text for the shape of its listeners and what they do with unknown traffic: scopes of a view with the same
   * text share listeners.
   */
  readonly policy: string;
}

export interface ScopeDeps {
  readonly proxies: Proxies;
  readonly sidecars: Sidecars;
  readonly namespaces: Namespaces;
  readonly patches: Patches | undefined;
}

/** What each scope consists of; by scope key. */
export function declareScopes(graph: Graph, deps: ScopeDeps): Collection<ScopeViews> {
  // Proxies come and go; what they have in common stays.
  const scopes = graph.derive('scopes of proxies', deps.proxies.byScope, (key, [first], _, emit: Emit<Scope>) => {
    if ('scope' in first.value) emit(key, first.value.scope);
  });
  return graph.derive('scopes', scopes, (key, scope, read, emit: Emit<ScopeViews>) => {
    emit(key, scopeViews(scope, read, deps));
  });
}

/** The lists that a scope consists of: the contents of its views, and their listeners under its policy. */
export function listsOf({ outlets, policy }: ScopeViews): readonly string[] {
  const views = outlets.flatMap((outlet) => outlet.views);
  return [...new Set(views.flatMap((view) => [view.key, listenerList(view.key, policy)]))];
}

/** List of the view's listeners that are the same for all its scopes with one policy. */
export const listenerList = (view: string, policy: string): string => `${view}!${policy}`;

function scopeViews(scope: Scope, read: Reader, { sidecars, namespaces, patches }: ScopeDeps): ScopeViews {
  const sidecar = scope.sidecar === '' ? undefined : read.get(sidecars.models, scope.sidecar);
  const listeners = sidecar?.egress ?? everything;
  const all = allOf(read, namespaces.all);
  const traits = viewTraits(scope.traits);
  const keyOfTraits = traitsKey(traits);
  const outlets = listeners.map((listener, i) => ({
    listener,
    views: all.flatMap((info) => {
      const reach = reachOf(listener, scope.namespace, info.namespace);
      if (reach === 'nothing') return [];
      const whole =
        reach === 'everything' &&
        listener.port === undefined &&
        listeners.length === 1 &&
        [...info.routedFrom, ...info.routedTo.map((other) => (other === '*' ? anyNamespace : other))].every(
          (other) => reachOf(listener, scope.namespace, other) === 'everything',
        ) &&
        (!info.contested || reachOf(listener, scope.namespace, anyNamespace) === 'everything');
      const egress = whole || sidecar === undefined ? undefined : { sidecar: sidecar.key, listener: i };
      const own = scope.patches === undefined ? undefined : patches?.ofView(read, scope, info.namespace);
      return [viewOf(scope, info, { traits, key: keyOfTraits }, egress, own)];
    }),
  }));
  const own = outlets.flatMap((outlet) => outlet.views).find((view) => view.namespace === scope.namespace);
  const local = own?.client === '' && scope.traits.proxyType === 'sidecar' ? own.key : '';
  return { scope, outlets, local, policy: policyKey(scope, sidecar?.outboundTrafficPolicy) };
}

/** Without a policy of its own, the mesh's policy applies to traffic. An egress proxy is looked up by the client. */
function policyKey(scope: Scope, policy: SidecarModel['outboundTrafficPolicy']): string {
  const { listeners: patches } = scope.patches ?? {};
  const ofTraits = listenerTraitsKey(scope.traits);
  const ofProxy = patches === undefined ? ofTraits : `${ofTraits},patches=${patches}`;
  if (policy === undefined) return ofProxy;
  const { mode, egressProxy } = policy;
  const ofTraffic = egressProxy === undefined ? mode : contentHash(JSON.stringify([policy, scope.key])).slice(0, 12);
  return [ofTraffic, ofProxy].join();
}

/** A namespace that no Sidecar can name; only `*` matches it. */
const anyNamespace = '';

/** How much of a namespace an egress listener can import. */
function reachOf(listener: EgressListener, client: string, namespace: string): 'nothing' | 'something' | 'everything' {
  const parts = importsFrom(listener.hosts, client, namespace);
  if (!parts.some(({ included }) => included.hosts.size > 0)) return 'nothing';
  const whole = parts.some(({ included }) => included.hosts.has('*'));
  return whole && parts.every(({ excluded }) => excluded.hosts.size === 0) ? 'everything' : 'something';
}

function viewOf(
  scope: Scope,
  info: NamespaceClients,
  { traits, key: keyOfTraits }: { readonly traits: Traits; readonly key: string },
  egress: View['egress'],
  patches: ViewPatches | undefined,
): View {
  const matched = scope.matched.filter((selector) => info.selectors.includes(selector));
  // Clients of gRPC ask for a table by the name of its service, so there is only one for each view.
  const isLocal = scope.traits.family === 'grpc' && info.namespace === scope.namespace;
  const own = egress !== undefined || matched.length > 0 || isLocal || info.audiences.includes(scope.namespace);
  const client = own ? scope.namespace : '';
  // The key is part of many others: keep it short; a hash of everything that defines the view makes it unique.
  const facts = [
    keyOfTraits,
    client,
    matched.join('&'),
    egress === undefined ? '' : `${egress.sidecar}#${egress.listener}`,
    ...(patches === undefined ? [] : [patchesKey(patches)]),
  ].join('|');
  const key = `${info.namespace}@${contentHash(facts).slice(0, 12)}`;
  const ofScope = { ...(egress ? { egress } : {}), ...(patches ? { patches } : {}) };
  return { key, namespace: info.namespace, traits, client, matched, ...ofScope };
}
