import type { ObjectRef } from '../api/object.ts';
import type { Problem } from '../api/problem.ts';
import type { RetrySetting } from './mesh-config.ts';
import type { Source } from './provenance.ts';
import type { HashKey } from './traffic-policy.ts';

/**
 * What happens to some requests, from any kind of object, for the clients of one view. Nothing is left to look up:
 * hosts have become clusters, and whatever cannot apply to these clients is gone.
 */
export interface RouteRule {
  /** Empty: none. */
  readonly name: string;
  /** The object reported to tools: for a delegate's rule, the root. Undefined if no object asked for the rule. */
  readonly owner: ObjectRef | undefined;
  /** Where it is written, and the objects that shaped it: the delegating object, DestinationRules with a hash. */
  readonly sources: readonly Source[];
  /** Any of them must match; empty: every request. */
  readonly matches: readonly RequestMatch[];
  /** Within a virtual host, lower ones come first; equal ones keep their order. */
  readonly precedence: number;
  readonly action: RouteAction;
  readonly headers?: HeaderOperations;
  readonly fault?: Fault;
  readonly cors?: Cors;
  /** What traces call its requests, before the path: `reviews.default.svc.cluster.local:80`. */
  readonly operation: string;
}

/**
 * The precedence of rules that stay in written order, and of rules for every request, which come after the rules of
 * other objects that share the host.
 */
export const precedence = { asWritten: 0, everyRequest: 1 } as const;

/** Rules of one object, for the clients of one view. */
export interface SettledRoutes {
  /** In order. Empty if none can apply to these clients. */
  readonly rules: readonly RouteRule[];
  /** One of them matches every request: later rules of the same object are never reached. */
  readonly isComplete: boolean;
  /** References that do not resolve. */
  readonly problems: readonly Problem[];
}

/** All conditions must hold. */
export interface RequestMatch {
  readonly name: string;
  readonly statPrefix: string;
  /** Never `present`, which always matches. */
  readonly uri?: PathMatch;
  readonly ignoreUriCase: boolean;
  readonly scheme?: StringMatch;
  readonly method?: StringMatch;
  readonly authority?: StringMatch;
  /** Sorted by name. Those from `withoutHeaders` are inverted. */
  readonly headers: readonly HeaderMatch[];
  /** Sorted by path. Written as headers named `@request.auth.claims...`. */
  readonly claims: readonly ClaimMatch[];
  /** Sorted by name. */
  readonly queryParams: readonly { readonly name: string; readonly match: StringMatch }[];
}

/** A regex is one that RE2 accepts. */
export type StringMatch =
  | { readonly kind: 'exact' | 'prefix' | 'regex'; readonly value: string }
  /** An empty match object, or the regex `*`: the header or parameter is present. */
  | { readonly kind: 'present' };

export type PathMatch =
  | StringMatch
  /** Whole segments: `/a` is for `/a` and `/a/b`, not for `/ab`. Not empty, without `?`, `#` and a slash at its end. */
  | { readonly kind: 'pathPrefix'; readonly value: string };

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

export type RouteAction = ForwardToBackends | Redirect | DirectResponse;

export interface ForwardToBackends {
  readonly kind: 'forward';
  /** One without a weight, or one or more with weights. */
  readonly backends: readonly Backend[];
  readonly mirrors: readonly BackendMirror[];
  readonly rewrite?: Rewrite;
  /** Milliseconds; absent: no timeout. */
  readonly timeout?: number;
  /** Absent: Istio's default. */
  readonly retries?: RetrySetting;
  /** Retries may go to the endpoint that failed: a consistent hash leads there again. */
  readonly retriesStay: boolean;
  /** What requests to invalid backends get; absent: 503. */
  readonly invalidStatus?: 500;
}

export interface Backend {
  readonly target: BackendTarget;
  /** Absent: all requests. */
  readonly weight?: number;
  /** What determines which endpoint of the cluster a request goes to. */
  readonly hash?: HashKey;
  readonly headers?: HeaderOperations;
}

export type BackendTarget =
  | { readonly kind: 'cluster'; readonly cluster: string }
  /** There is no such cluster: its requests fail. */
  | { readonly kind: 'invalid'; readonly reason: MissingPart };

/** Which part of a destination does not exist, or does not exist for the client. */
export type MissingPart = 'host' | 'port' | 'subset' | 'endpoints';

export interface BackendMirror {
  readonly target: BackendTarget;
  readonly percentage?: MirrorShare;
}

/** If absent: all requests. Written as a fraction, or in the deprecated field as a whole number. */
export interface MirrorShare {
  readonly value: number;
  readonly whole: boolean;
}

export interface Redirect {
  readonly kind: 'redirect';
  /** Empty: the request's. */
  readonly authority: string;
  readonly uri: string;
  readonly prefixRewrite?: string;
  /** Empty: the request's. */
  readonly scheme: string;
  /** Absent: the default for the scheme. */
  readonly port?: number;
  readonly code: 301 | 302 | 303 | 307 | 308;
}

export interface DirectResponse {
  readonly kind: 'directResponse';
  readonly status: number;
  readonly body?: string | Uint8Array;
}

export interface Rewrite {
  readonly uri?: string;
  readonly authority: string;
  readonly regex?: { readonly match: string; readonly rewrite: string };
}

/** Pairs are sorted by name; lists of names keep their order. Never contains pseudo headers or `host`. */
export interface HeaderOperations {
  readonly requestSet: readonly HeaderValue[];
  readonly requestAdd: readonly HeaderValue[];
  readonly requestRemove: readonly string[];
  readonly responseSet: readonly HeaderValue[];
  readonly responseAdd: readonly HeaderValue[];
  readonly responseRemove: readonly string[];
  /** From `host` or `:authority` in the request headers. Empty: unchanged. */
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
    /** Deprecated `percent`, a whole number; used without `percentage`. If neither is set, no request is delayed. */
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

/** Where an object says that its routes lead. */
export interface Destination {
  /** Resolved to a full name. */
  readonly host: string;
  readonly subset: string;
  /** Absent: the port of the listener, or the only port of the service. */
  readonly port?: number;
  /** `spec.http[0].route[1].destination` */
  readonly field: string;
}
