import type { Collection, Emit, Graph } from '../../cache/graph.ts';
import { HOST, NAME_TABLE } from '../../model/named-host.ts';
import { type Inputs } from '../inputs.ts';
import { namesList } from '../lists.ts';
import type { Proxies } from './proxies.ts';
import type { ScopeViews } from './scopes.ts';
import type { Views } from './views.ts';

/** Whole, or host by host. */
export type NameForm = 'table' | 'hosts';

const forms: Readonly<Record<string, NameForm>> = { [NAME_TABLE]: 'table', [HOST]: 'hosts' };

/** A scope in which someone asks for names in this form. */
export interface NamingScope {
  readonly scope: string;
  readonly form: NameForm;
  /** Keys. */
  readonly views: readonly string[];
}

export interface NameDemand {
  readonly scopes: Collection<NamingScope>;
  /** In which forms names are needed; by view. Absent: in none. */
  readonly views: Collection<readonly NameForm[]>;
  /** Lists of hosts and their children, of scopes and of views. */
  readonly lists: readonly Collection<readonly string[]>[];
}

export interface NameDemandDeps {
  readonly inputs: Inputs;
  readonly proxies: Proxies;
  readonly scopes: Collection<ScopeViews>;
  readonly views: Views;
}

/** Who asks for names. Where nobody does, none are computed. */
export function declareNameDemand(graph: Graph, deps: NameDemandDeps): NameDemand {
  const askers = graph.derive(
    'name askers',
    deps.inputs.asked,
    (stream, { typeUrls }, read, emit: Emit<Omit<NamingScope, 'views'>>) => {
      const proxy = read.get(deps.proxies.resolved, stream);
      if (proxy === undefined || 'error' in proxy) return;
      for (const typeUrl of typeUrls) {
        const form = forms[typeUrl];
        if (form !== undefined) emit(`${form} ${stream}`, { scope: proxy.scope.key, form });
      }
    },
  );
  const scopes = graph.derive(
    'naming scopes',
    graph.index('name askers by scope', askers, (_, { scope, form }) => [`${form} ${scope}`]),
    (key, [first], read, emit: Emit<NamingScope>) => {
      const views = read.get(deps.scopes, first.value.scope)?.outlets.flatMap((outlet) => outlet.views);
      if (views !== undefined) emit(key, { ...first.value, views: [...new Set(views.map((view) => view.key))] });
    },
  );
  const views = graph.derive(
    'naming views',
    graph.index('naming scopes by view', scopes, (_, { views: keys }) => keys),
    (key, members, _, emit: Emit<readonly NameForm[]>) =>
      emit(key, [...new Set(members.map(({ value }) => value.form))].sort()),
  );
  const listsOfScopes = graph.derive(
    'lists of names of scopes',
    scopes,
    (_, naming, __, emit: Emit<readonly string[]>) => {
      if (naming.form === 'hosts') emit(namesList(naming.scope), naming.views.map(namesList));
    },
  );
  const listsOfViews = graph.derive(
    'lists of names of views',
    views,
    (view, asked, read, emit: Emit<readonly string[]>) => {
      if (asked.includes('hosts')) emit(namesList(view), (read.get(deps.views.viewLists, view) ?? []).map(namesList));
    },
  );
  return { scopes, views, lists: [listsOfScopes, listsOfViews] };
}
