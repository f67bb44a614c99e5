import { nameKey, parseNameKey } from '../api/keys.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';
import type { RetrySetting } from './mesh-config.ts';
import type { L4Route, TlsRoute } from './l4-routes.ts';
import { MESH, type Parent, isMesh, parseParentKey } from './route-binding.ts';
import type {
  Cors,
  Destination,
  DirectResponse,
  Fault,
  HeaderOperations,
  MirrorShare,
  RequestMatch,
  Rewrite,
  StringMatch,
} from './route.ts';

/** The gateway that stands for all sidecars. */
export const meshGateway = 'mesh';

/** @param gateway as in {@link VirtualServiceModel.gateways}. */
export function parentNamed(gateway: string): Parent {
  if (gateway === meshGateway) return MESH;
  return { group: 'networking.istio.io', kind: 'Gateway', ...parseNameKey(gateway) };
}

/** The reverse of {@link parentNamed}. */
export function nameOfParent(parent: Parent): string {
  return isMesh(parent) ? meshGateway : nameKey(parent.namespace, parent.name);
}

/** The same for the key of a parent. */
export function nameOfKey(key: string): string {
  return nameOfParent(parseParentKey(key));
}

/** A VirtualService as parsed: every host and gateway resolved, every value checked. */
export interface VirtualServiceModel extends Aged {
  /** `source/namespace/name`. */
  readonly key: string;
  readonly ref: ObjectRef;
  /** Resolved, distinct, in written order. Empty: it is only a delegate for others, never served by itself. */
  readonly hosts: readonly string[];
  /** `mesh` or `namespace/name`, as written; may contain duplicates. */
  readonly gateways: readonly string[];
  /** `*` or namespaces; `.` is already replaced. Sorted. */
  readonly exportTo: readonly string[];
  readonly http: readonly HttpRoute[];
  readonly tcp: readonly L4Route[];
  readonly tls: readonly TlsRoute[];
}

export interface HttpRoute {
  readonly name: string;
  /** The object that contains the route: a delegate's route keeps its own. */
  readonly object: ObjectRef;
  /** Path of the route within that object: `spec.http[2]`. */
  readonly field: string;
  /** For a delegate's route: path of the delegating route in the root. */
  readonly delegatedBy?: string;
  /** Any of them must match. Empty: everything. */
  readonly matches: readonly HttpMatch[];
  readonly action: HttpAction;
  readonly headers?: HeaderOperations;
  readonly fault?: Fault;
  readonly cors?: Cors;
}

/** All conditions must hold. The fields added here decide which clients get the route at all. */
export interface HttpMatch extends RequestMatch {
  readonly uri?: StringMatch;
  /** Port of the listener; 0: any. */
  readonly port: number;
  readonly sourceLabels: Labels;
  readonly sourceNamespace: string;
  /** Empty: the VirtualService's. */
  readonly gateways: readonly string[];
}

export type HttpAction = ForwardAction | RedirectAction | DirectResponse | DelegateAction;

export interface RedirectAction {
  readonly kind: 'redirect';
  readonly authority: string;
  readonly uri: string;
  readonly prefixRewrite?: string;
  readonly scheme: string;
  readonly port?: number | 'FROM_PROTOCOL_DEFAULT' | 'FROM_REQUEST_PORT';
  readonly code: 301 | 302 | 303 | 307 | 308;
}

/** Replaced by the routes of another VirtualService; these inherit what they do not set themselves. */
export interface DelegateAction extends ForwardOptions {
  readonly kind: 'delegate';
  readonly namespace: string;
  readonly name: string;
  readonly directResponse?: DirectResponse;
}

export interface ForwardAction extends ForwardOptions {
  readonly kind: 'forward';
  /** At least one; if there are several, at least one has a weight. */
  readonly destinations: readonly HttpDestination[];
}

export interface ForwardOptions {
  readonly rewrite?: Rewrite;
  /** Milliseconds; absent: no timeout. */
  readonly timeout?: number;
  readonly retries?: RetrySetting;
  /** Empty if a percentage of 0 switches them off; absent if none is given. */
  readonly mirrors?: readonly Mirror[];
}

export interface Mirror {
  readonly destination: Destination;
  readonly percentage?: MirrorShare;
}

export interface HttpDestination extends Destination {
  readonly weight: number;
  readonly headers?: HeaderOperations;
}
