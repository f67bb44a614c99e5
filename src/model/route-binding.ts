import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import { contains, remembered } from './remembered.ts';
import type { Labels } from './labels.ts';

/** What a route is attached to: its requests, or connections, are those that arrive there. */
export interface Parent {
  /** API group; empty: the core group. */
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Only the servers of this name. Absent: all. */
  readonly section?: string;
  /** Only the servers on this port. Absent: all. */
  readonly port?: number;
}

/** All sidecars. */
export const MESH: Parent = { group: 'fairlead.dev', kind: 'Mesh', namespace: '', name: 'mesh' };

export function isMesh({ group, kind }: Parent): boolean {
  return group === MESH.group && kind === MESH.kind;
}

/** Equal for parents that are one object: `group/kind/namespace/name`. */
export function parentKey({ group, kind, namespace, name }: Parent): string {
  return `${group}/${kind}/${namespace}/${name}`;
}

/** The reverse of {@link parentKey}. */
export function parseParentKey(key: string): Parent {
  const [group = '', kind = '', namespace = '', name = ''] = key.split('/');
  return { group, kind, namespace, name };
}

export const MESH_KEY = parentKey(MESH);

/** The objects other than the mesh that a route is attached to, each once, by key. */
export const gatewaysOf = remembered(
  ({ parents }: Pick<RouteBinding, 'parents'>): ReadonlyMap<string, readonly Parent[]> =>
    Map.groupBy(
      parents.filter((parent) => !isMesh(parent)),
      parentKey,
    ),
);

/** Whether one of these parents, which are one object, takes in a server of it. */
export function takeIn(
  parents: readonly Parent[],
  { name, port: { number } }: { readonly name: string; readonly port: { readonly number: number } },
): boolean {
  return parents.some(
    ({ section, port }) => (section === undefined || section === name) && (port === undefined || port === number),
  );
}

/** Where a route leads, as far as clients may see it differently. */
export interface RouteTarget {
  /** Resolved to a full name. */
  readonly host: string;
  /** Absent: the port of the listener, or the only port of the service. */
  readonly port?: number;
  /** Rules for requests forward there; mirrors, and rules for connections, do not count. */
  readonly takesRequests: boolean;
}

/** What rules do that policies for the same clients or routers concern. */
export type RouteFeature =
  /** They compare claims of tokens. */
  | 'claims'
  /** They answer CORS preflights. */
  | 'cors';

/**
 * What an object with routes says about whom they concern, and all that selection sees of it, whatever its kind: hosts,
 * where it is attached, who sees it, and what its rules need of clients and services. The rules themselves are read by
 * those who spell them, by key. Age breaks ties. It stays equal while only what the rules do changes.
 */
export interface RouteBinding extends Aged {
  /** `kind/source/namespace/name` */
  readonly key: string;
  /** Without its generation. */
  readonly ref: ObjectRef;
  /** Distinct. */
  readonly parents: readonly Parent[];
  /** Resolved, distinct, in written order. At least one. */
  readonly hosts: readonly string[];
  /** `*` or namespaces whose clients see it. Sorted. */
  readonly exportTo: readonly string[];
  /** Whether it has rules for HTTP requests. */
  readonly hasRequests: boolean;
  /** Whether it has rules for connections. */
  readonly hasConnections: boolean;
  /** Distinct, sorted. */
  readonly features: readonly RouteFeature[];
  readonly needs: RouteNeeds;
}

/** What the rules of a route tell apart, and where they lead. Each is distinct, and sorted. */
export interface RouteNeeds {
  /** Namespaces of clients. */
  readonly clients: readonly string[];
  /** Labels of clients. */
  readonly selectors: readonly Labels[];
  /** Selectors of rules for requests that also apply to routers. */
  readonly routerSelectors: readonly Labels[];
  /** Targets of mirrors are among them. */
  readonly targets: readonly RouteTarget[];
}

export function isInMesh({ parents }: Pick<RouteBinding, 'parents'>): boolean {
  return parents.some(isMesh);
}

/**
 * Precedence of the routes of a gateway for routers in a namespace: private ones, those exported to it by name, public
 * ones.
 */
export function gatewayPrecedence(
  { exportTo, namespace: own }: Pick<RouteBinding, 'exportTo' | 'namespace'>,
  namespace: string,
): number {
  if (contains(exportTo, '*')) return 2;
  return own === namespace ? 0 : 1;
}

/** Whether clients in a namespace see it. */
export function isSeenFrom({ exportTo }: Pick<RouteBinding, 'exportTo'>, namespace: string): boolean {
  return contains(exportTo, '*') || contains(exportTo, namespace);
}

/**
 * The routes of the mesh that sidecars in the namespace see, in order of precedence: private ones, then those exported to
 * the namespace by name, then public ones; otherwise in the given order (oldest first).
 */
export function inOrderOfPrecedence<Entry>(
  entries: readonly Entry[],
  namespace: string,
  routesOf: (entry: Entry) => { readonly namespace: string; readonly exportTo: readonly string[] },
): Entry[] {
  const ranks: [Entry[], Entry[], Entry[]] = [[], [], []];
  for (const entry of entries) {
    const routes = routesOf(entry);
    if (contains(routes.exportTo, '*')) ranks[2].push(entry);
    else if (isSeenFrom(routes, namespace)) ranks[routes.namespace === namespace ? 0 : 1].push(entry);
  }
  return ranks.flat();
}
