import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';
import type { RetrySetting } from './mesh-config.ts';

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

/** A regex is one that RE2 compiles. */
export type StringMatch =
  | { readonly kind: 'exact' | 'prefix' | 'regex'; readonly value: string }
  /** An empty match object, or the regex `*`: the header or parameter is there. */
  | { readonly kind: 'present' };

export interface HttpRoute {
  readonly name: string;
  /** The object that the route stands in: a delegate's route keeps its own. */
  readonly object: ObjectRef;
  /** Path of the route within that object: `spec.http[2]`. */
  readonly field: string;
  /** Empty: everything. Any of them. */
  readonly matches: readonly HttpMatch[];
  readonly action: HttpAction;
  readonly headers?: HeaderOperations;
  readonly fault?: Fault;
  readonly cors?: Cors;
}

/** All conditions must hold. */
export interface HttpMatch {
  readonly name: string;
  readonly statPrefix: string;
  /** Never `present`, which always holds. */
  readonly uri?: StringMatch;
  readonly ignoreUriCase: boolean;
  readonly scheme?: StringMatch;
  readonly method?: StringMatch;
  readonly authority?: StringMatch;
  /** Sorted by name. `withoutHeaders` are the inverted ones. */
  readonly headers: readonly HeaderMatch[];
  /** Sorted by path. Written as headers named `@request.auth.claims...`. */
  readonly claims: readonly ClaimMatch[];
  /** Sorted by name. */
  readonly queryParams: readonly { readonly name: string; readonly match: StringMatch }[];
  /** Port of the listener; 0: any. */
  readonly port: number;
  readonly sourceLabels: Labels;
  readonly sourceNamespace: string;
  /** Empty: those of the VirtualService. */
  readonly gateways: readonly string[];
}

export interface HeaderMatch {
  readonly name: string;
  readonly match: StringMatch;
  readonly invert: boolean;
}

/** A claim of the token that authenticated the request. */
export interface ClaimMatch {
  readonly path: readonly string[];
  readonly match: StringMatch;
  readonly invert: boolean;
}

export type HttpAction = ForwardAction | RedirectAction | DirectResponseAction | DelegateAction;

export interface RedirectAction {
  readonly kind: 'redirect';
  readonly authority: string;
  readonly uri: string;
  readonly prefixRewrite?: string;
  readonly scheme: string;
  readonly port?: number | 'FROM_PROTOCOL_DEFAULT' | 'FROM_REQUEST_PORT';
  readonly code: 301 | 302 | 303 | 307 | 308;
}

export interface DirectResponseAction {
  readonly kind: 'directResponse';
  readonly status: number;
  readonly body?: string | Uint8Array;
}

/** Replaced by the routes of another VirtualService; those inherit what they do not set themselves. */
export interface DelegateAction extends ForwardOptions {
  readonly kind: 'delegate';
  readonly namespace: string;
  readonly name: string;
  readonly directResponse?: DirectResponseAction;
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

export interface Rewrite {
  readonly uri?: string;
  readonly authority: string;
  readonly regex?: { readonly match: string; readonly rewrite: string };
}

export interface Mirror {
  readonly destination: Destination;
  /** Absent: all requests. Written as a fraction, or in the deprecated field as a whole number. */
  readonly percentage?: { readonly value: number; readonly whole: boolean };
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

/** Pairs are sorted by name; lists of names keep their order. Pseudo headers and `host` are never among them. */
export interface HeaderOperations {
  readonly requestSet: readonly HeaderValue[];
  readonly requestAdd: readonly HeaderValue[];
  readonly requestRemove: readonly string[];
  readonly responseSet: readonly HeaderValue[];
  readonly responseAdd: readonly HeaderValue[];
  readonly responseRemove: readonly string[];
  /** From `host` or `:authority` among the request headers. Empty: not changed. */
  readonly authority: string;
}

export interface HeaderValue {
  readonly name: string;
  readonly value: string;
}

export interface Fault {
  readonly delay?: {
    /** Milliseconds. */
    readonly fixedDelay: number;
    readonly percentage?: number;
    /** Deprecated `percent`, a whole number; used without `percentage`. Nothing set: no request is delayed. */
    readonly percent: number;
  };
  readonly abort?: {
    readonly status: { readonly kind: 'http' | 'grpc'; readonly code: number };
    /** Absent: no request, as in Istio. */
    readonly percentage?: number;
  };
}

export interface Cors {
  readonly allowOrigins: readonly StringMatch[];
  readonly allowMethods: readonly string[];
  readonly allowHeaders: readonly string[];
  readonly exposeHeaders: readonly string[];
  /** Milliseconds. */
  readonly maxAge?: number;
  readonly allowCredentials?: boolean;
  readonly unmatchedPreflights: 'UNSPECIFIED' | 'FORWARD' | 'IGNORE';
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
