import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';
import type { RetrySetting } from './mesh-config.ts';

/** A VirtualService as parsed: hosts and gateways resolved, delegates replaced by their routes. */
export interface VirtualServiceModel extends Aged {
  /** `source/namespace/name`. */
  readonly key: string;
  readonly ref: ObjectRef;
  /** Resolved, in the order written. */
  readonly hosts: readonly string[];
  /** `mesh` or `namespace/name`. */
  readonly gateways: readonly string[];
  readonly exportTo: readonly string[];
  readonly http: readonly HttpRoute[];
  readonly tcp: readonly L4Route[];
  readonly tls: readonly TlsRoute[];
}

export type StringMatch =
  | { readonly kind: 'exact' | 'prefix' | 'regex'; readonly value: string }
  /** An empty match object: the header or parameter is there. */
  | { readonly kind: 'present' };

export interface HttpRoute {
  readonly name: string;
  /** Path of the route within its object, for problems and explanations: `spec.http[2]`. */
  readonly field: string;
  /** Empty: everything. Any of them. */
  readonly matches: readonly HttpMatch[];
  readonly action: HttpAction;
  readonly headers: HeaderOperations;
  readonly fault?: Fault;
  readonly cors?: Cors;
}

/** All conditions must hold. */
export interface HttpMatch {
  readonly name: string;
  readonly statPrefix: string;
  readonly uri?: StringMatch;
  readonly ignoreUriCase: boolean;
  readonly scheme?: StringMatch;
  readonly method?: StringMatch;
  readonly authority?: StringMatch;
  /** Sorted by name. */
  readonly headers: readonly { readonly name: string; readonly match: StringMatch; readonly invert: boolean }[];
  /** Sorted by name. */
  readonly queryParams: readonly { readonly name: string; readonly match: StringMatch }[];
  /** Port of the listener; 0: any. */
  readonly port: number;
  readonly sourceLabels: Labels;
  readonly sourceNamespace: string;
  /** Empty: those of the VirtualService. */
  readonly gateways: readonly string[];
}

export type HttpAction =
  | ForwardAction
  | {
      readonly kind: 'redirect';
      readonly authority: string;
      readonly uri?: string;
      readonly prefixRewrite?: string;
      readonly scheme: string;
      readonly port?: number | 'FROM_PROTOCOL_DEFAULT' | 'FROM_REQUEST_PORT';
      readonly code: number;
    }
  | { readonly kind: 'directResponse'; readonly status: number; readonly body?: string | Uint8Array };

export interface ForwardAction {
  readonly kind: 'forward';
  readonly destinations: readonly HttpDestination[];
  readonly rewrite?: {
    readonly uri?: string;
    readonly authority: string;
    readonly regex?: { readonly match: string; readonly rewrite: string };
  };
  /** Milliseconds; absent: no timeout. */
  readonly timeout?: number;
  readonly retries?: RetrySetting;
  readonly mirrors: readonly { readonly destination: Destination; readonly percentage?: number }[];
}

export interface HttpDestination extends Destination {
  readonly weight: number;
  readonly headers: HeaderOperations;
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

/** Pairs are sorted by name. */
export interface HeaderOperations {
  readonly requestSet: readonly HeaderValue[];
  readonly requestAdd: readonly HeaderValue[];
  readonly requestRemove: readonly string[];
  readonly responseSet: readonly HeaderValue[];
  readonly responseAdd: readonly HeaderValue[];
  readonly responseRemove: readonly string[];
}

export interface HeaderValue {
  readonly name: string;
  readonly value: string;
}

export interface Fault {
  readonly delay?: { readonly fixedDelay: number; readonly percentage?: number };
  readonly abort?: { readonly httpStatus?: number; readonly grpcStatus?: number; readonly percentage?: number };
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

/** A `tcp` route. */
export interface L4Route {
  readonly field: string;
  readonly matches: readonly L4Match[];
  readonly destinations: readonly (Destination & { readonly weight: number })[];
}

export interface L4Match {
  readonly destinationSubnets: readonly string[];
  readonly port: number;
  readonly sourceLabels: Labels;
  readonly sourceNamespace: string;
  readonly gateways: readonly string[];
}

/** A `tls` route: matched by server name. */
export interface TlsRoute {
  readonly field: string;
  readonly matches: readonly (L4Match & { readonly sniHosts: readonly string[] })[];
  readonly destinations: readonly (Destination & { readonly weight: number })[];
}
