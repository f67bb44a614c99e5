import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';
import type { RetrySetting } from './mesh-config.ts';
import type { Cors, DirectResponse, Fault, HeaderOperations, MirrorShare, RequestMatch, Rewrite } from './route.ts';

/** The gateway that stands for all sidecars. */
export const meshGateway = 'mesh';

/** A VirtualService as parsed: every host and gateway resolved, every value checked. */
export interface VirtualServiceModel extends Aged {
  /** `source/namespace/name`. */
  readonly key: string;
  readonly ref: ObjectRef;
  /** Resolved, distinct, in the order written. Empty: only the delegate of others, never served by itself. */
  readonly hosts: readonly string[];
  /** `mesh` or `namespace/name`, as written: one may stand there twice. */
  readonly gateways: readonly string[];
  /** `*` or namespaces; `.` is already replaced. Sorted. */
  readonly exportTo: readonly string[];
  readonly http: readonly HttpRoute[];
  readonly tcp: readonly L4Route[];
  readonly tls: readonly TlsRoute[];
}

export interface HttpRoute {
  readonly name: string;
  /** The object that the route stands in: a delegate's route keeps its own. */
  readonly object: ObjectRef;
  /** Path of the route within that object: `spec.http[2]`. */
  readonly field: string;
  /** Of a delegate's route: path of the route that delegates, within the root. */
  readonly delegatedBy?: string;
  /** Empty: everything. Any of them. */
  readonly matches: readonly HttpMatch[];
  readonly action: HttpAction;
  readonly headers?: HeaderOperations;
  readonly fault?: Fault;
  readonly cors?: Cors;
}

/** All conditions must hold. Those of its own decide for whom there is a route at all. */
export interface HttpMatch extends RequestMatch {
  /** Port of the listener; 0: any. */
  readonly port: number;
  readonly sourceLabels: Labels;
  readonly sourceNamespace: string;
  /** Empty: those of the VirtualService. */
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

/** Replaced by the routes of another VirtualService; those inherit what they do not set themselves. */
export interface DelegateAction extends ForwardOptions {
  readonly kind: 'delegate';
  readonly namespace: string;
  readonly name: string;
  readonly directResponse?: DirectResponse;
}

export interface ForwardAction extends ForwardOptions {
  readonly kind: 'forward';
  /** At least one; of several at least one has a weight. */
  readonly destinations: readonly HttpDestination[];
}

export interface ForwardOptions {
  readonly rewrite?: Rewrite;
  /** Milliseconds; absent: no timeout. */
  readonly timeout?: number;
  readonly retries?: RetrySetting;
  /** Empty when a percentage of 0 switches them off; absent when none is written. */
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

export interface Destination {
  /** Resolved. */
  readonly host: string;
  readonly subset: string;
  /** Absent: the port of the listener, or the only port of the service. */
  readonly port?: number;
  /** `spec.http[0].route[1].destination` */
  readonly field: string;
}

export type L4Destination = Destination & { readonly weight: number };

/** A `tcp` route. */
export interface L4Route {
  readonly field: string;
  /** Empty: every connection. */
  readonly matches: readonly L4Match[];
  readonly destinations: readonly L4Destination[];
}

export interface L4Match {
  /** Addresses or ranges. */
  readonly destinationSubnets: readonly string[];
  /** 0: any. */
  readonly port: number;
  readonly sourceLabels: Labels;
  readonly sourceNamespace: string;
  /** Empty: those of the VirtualService. */
  readonly gateways: readonly string[];
}

/** A `tls` route: matched by server name. */
export interface TlsRoute {
  readonly field: string;
  readonly matches: readonly TlsMatch[];
  readonly destinations: readonly L4Destination[];
}

export interface TlsMatch extends L4Match {
  readonly sniHosts: readonly string[];
}
