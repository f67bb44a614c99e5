import type { Collection, Emit, Graph, Reader } from '../cache/graph.ts';
import { contentHash } from '../model/hash.ts';
import { type EgressListener, type SidecarModel, everything } from '../model/sidecar.ts';
import { type Traits, listenerTraitsKey, traitsKey, viewTraits } from '../model/traits.ts';
import type { NamespaceClients, Namespaces } from './namespaces.ts';
import type { Proxies, Scope } from './proxies.ts';
import type { EgressRef, Sidecars } from './sidecars.ts';
import { allOf } from './whole.ts';

/**
 * How the services of one namespace look to some clients: the unit that scopes share. Most clients of a namespace are of
 * its public audience; those that see it differently name themselves.
 */
export interface View {
  readonly key: string;
  /** Of the services. */
  readonly namespace: string;
  /** Those that {@link viewTraits} leaves. */
  readonly traits: Traits;
  /** Namespace of the clients; empty for the public audience. */
  readonly client: string;
  /** Selectors that these clients match, of those that matter for this namespace. */
  readonly matched: readonly string[];
  /** Absent: all that is visible. Else only what this egress listener of the Sidecar imports. */
  readonly egress?: EgressRef;
}

export interface ScopeViews {
  readonly scope: Scope;
  /** One for each egress listener; the last is the catch-all, if there is one. */
  readonly outlets: readonly { readonly listener: EgressListener; readonly views: readonly View[] }[];
  /**
   * Key of the view of the scope's own namespace where it is the public one: these clients see the same, and know the
   * services by their short names beside.
   */
  readonly local: string;
  /**
   * How its listeners are, and what they do with unknown traffic, as a short text: listeners are shared by the scopes of a
   * view that agree in it.
   */
  readonly policy: string;
}

export interface ScopeDeps {
  readonly proxies: Proxies;
  readonly sidecars: Sidecars;
  readonly namespaces: Namespaces;
}

/** What each scope is made of; by scope key. */
export function declareScopes(graph: Graph, deps: ScopeDeps): Collection<ScopeViews> {
  return graph.derive('scopes', deps.proxies.byScope, (key, [first], read, emit: Emit<ScopeViews>) => {
    if ('scope' in first.value) emit(key, scopeViews(first.value.scope, read, deps));
  });
}

/** The lists that a scope is made of: what its views hold, and their listeners under its policy. */
export function listsOf({ outlets, policy }: ScopeViews): readonly string[] {
  const views = outlets.flatMap((outlet) => outlet.views);
  return [...new Set(views.flatMap((view) => [view.key, listenerList(view.key, policy)]))];
}

/** List of the listeners of a view that are the same for all its scopes of one policy. */
export const listenerList = (view: string, policy: string): string => `${view}!${policy}`;

function scopeViews(scope: Scope, read: Reader, { sidecars, namespaces }: ScopeDeps): ScopeViews {
  const sidecar = scope.sidecar === '' ? undefined : read.get(sidecars.models, scope.sidecar);
  const listeners = sidecar?.egress ?? everything;
  const all = allOf(read, namespaces.all);
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
      return [viewOf(scope, info, whole || sidecar === undefined ? undefined : { sidecar: sidecar.key, listener: i })];
    }),
  }));
  const own = outlets.flatMap((outlet) => outlet.views).find((view) => view.namespace === scope.namespace);
  const local = own?.client === '' && scope.traits.proxyType === 'sidecar' ? own.key : '';
  return { scope, outlets, local, policy: policyKey(scope, sidecar?.outboundTrafficPolicy) };
}

/** Traffic: the mesh's own policy if nothing is said. An egress proxy is looked up by the client. */
function policyKey(scope: Scope, policy: SidecarModel['outboundTrafficPolicy']): string {
  const ofProxy = listenerTraitsKey(scope.traits);
  if (policy === undefined) return ofProxy;
  const { mode, egressProxy } = policy;
  const ofTraffic = egressProxy === undefined ? mode : contentHash(JSON.stringify([policy, scope.key])).slice(0, 12);
  return [ofTraffic, ofProxy].join();
}

/** A namespace that no Sidecar can name: only `*` matches it. */
const anyNamespace = '';

/** How much of a namespace an egress listener can import. */
function reachOf(listener: EgressListener, client: string, namespace: string): 'nothing' | 'something' | 'everything' {
  const covering = listener.hosts.filter((entry) => {
    const target = entry.namespace === '.' ? client : entry.namespace;
    return target === '*' || target === namespace;
  });
  if (!covering.some((entry) => !entry.excluded)) return 'nothing';
  const whole = covering.some((entry) => entry.host === '*' && !entry.excluded);
  return whole && covering.every((entry) => !entry.excluded) ? 'everything' : 'something';
}

function viewOf(scope: Scope, info: NamespaceClients, egress: View['egress']): View {
  const matched = scope.matched.filter((selector) => info.selectors.includes(selector));
  const own = egress !== undefined || matched.length > 0 || info.audiences.includes(scope.namespace);
  const client = own ? scope.namespace : '';
  // The key is part of many others: short, and told apart by a hash of all that makes the view.
  const traits = viewTraits(scope.traits);
  const facts = [
    traitsKey(traits),
    client,
    matched.join('&'),
    egress === undefined ? '' : `${egress.sidecar}#${egress.listener}`,
  ].join('|');
  const key = `${info.namespace}@${contentHash(facts).slice(0, 12)}`;
  return { key, namespace: info.namespace, traits, client, matched, ...(egress ? { egress } : {}) };
}
