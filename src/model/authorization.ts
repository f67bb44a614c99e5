import type { ObjectRef } from '../api/object.ts';
import type { PolicyObject } from './policy-target.ts';
import type { Source } from './provenance.ts';

/** An AuthorizationPolicy. */
export interface AuthorizationPolicyModel extends PolicyObject {
  readonly action: AuthorizationAction;
  /** Name of the extension provider that decides; empty unless the action is CUSTOM. */
  readonly provider: string;
  /** Annotation `istio.io/dry-run`: it is evaluated and logged, but not enforced. */
  readonly dryRun: boolean;
  readonly rules: readonly AuthorizationRule[];
}

export type AuthorizationAction = 'ALLOW' | 'DENY' | 'AUDIT' | 'CUSTOM';

/** It matches if one of `from`, one of `to`, and all of `when` do. */
export interface AuthorizationRule {
  /** Position in the object. Part of the name by which Envoy reports the rule. */
  readonly index: number;
  /** Empty: anybody. */
  readonly from: readonly Clause[];
  /** Empty: anything. */
  readonly to: readonly Clause[];
  readonly when: Clause;
  /** Something in it cannot be understood. Under ALLOW, the rule allows nothing; otherwise, it matches all the more. */
  readonly broken: boolean;
}

/** All conditions must hold. */
export type Clause = readonly Condition[];

/** The attribute has one of the values, if any are listed, and none of the others. */
export interface Condition {
  readonly attribute: Attribute;
  readonly values: readonly string[];
  readonly notValues: readonly string[];
}

/** What is requested: host, method, path, port, ... Known before the caller is. */
export type OperationAttribute =
  | { readonly kind: 'host' }
  | { readonly kind: 'method' }
  | { readonly kind: 'path' }
  /** The port on which the workload itself listens. */
  | { readonly kind: 'port' }
  | { readonly kind: 'destinationIp' }
  | { readonly kind: 'sni' }
  /** `experimental.envoy.filters.NAME[KEY]`: metadata that another filter has written. */
  | { readonly kind: 'filterMetadata'; readonly filter: string; readonly key: string };

/** Who requests it. */
export type SourceAttribute =
  | { readonly kind: 'principal' }
  /** `issuer/subject`. Settled: with the issuers whose tokens are accepted. */
  | { readonly kind: 'requestPrincipal'; readonly issuers?: readonly string[] }
  /** Values are `namespace/account`. */
  | { readonly kind: 'serviceAccount' }
  | { readonly kind: 'trustDomain' }
  | { readonly kind: 'namespace' }
  /** Address of the client, as X-Forwarded-For or the PROXY protocol tell it. */
  | { readonly kind: 'remoteIp' }
  /** Address of the direct peer. */
  | { readonly kind: 'sourceIp' }
  | { readonly kind: 'header'; readonly name: string }
  /** A claim of the token; a nested one has several names. */
  | { readonly kind: 'claim'; readonly path: readonly string[] };

export type Attribute = OperationAttribute | SourceAttribute;

const operationKinds = new Set<Attribute['kind']>([
  'host',
  'method',
  'path',
  'port',
  'destinationIp',
  'sni',
  'filterMetadata',
]);

export function isOperation(attribute: Attribute): attribute is OperationAttribute {
  return operationKinds.has(attribute.kind);
}

const httpKinds = new Set<Attribute['kind']>(['host', 'method', 'path', 'requestPrincipal', 'header', 'claim']);

/** Whether only HTTP requests have the attribute; TCP connections do not. */
export function isOfHttp(attribute: Attribute): boolean {
  if (attribute.kind === 'filterMetadata') return attribute.filter.startsWith('envoy.filters.http.');
  return httpKinds.has(attribute.kind);
}

/** How a value matches text: `*` anything but nothing, `*x` and `x*` by end or beginning, everything else exactly. */
export type TextMatch =
  { readonly kind: 'present' } | { readonly kind: 'suffix' | 'prefix' | 'exact'; readonly text: string };

export function textMatch(value: string): TextMatch {
  if (value === '*') return { kind: 'present' };
  if (value.startsWith('*')) return { kind: 'suffix', text: value.slice(1) };
  if (value.endsWith('*')) return { kind: 'prefix', text: value.slice(0, -1) };
  return { kind: 'exact', text: value };
}

export function matchesText(match: TextMatch, text: string): boolean {
  switch (match.kind) {
    case 'present':
      // Envoy is sent `.+`.
      return text !== '' && !text.includes('\n');
    case 'suffix':
      return text.endsWith(match.text);
    case 'prefix':
      return text.startsWith(match.text);
    case 'exact':
      return text === match.text;
  }
}

/** A service that decides about requests; an `extensionProvider` of the mesh config. */
export interface Authorizer {
  readonly name: string;
  readonly protocol: 'http' | 'grpc';
  /** `host`, or `namespace/host`. */
  readonly service: string;
  readonly port: number;
  /** Milliseconds. */
  readonly timeout: number;
  readonly failOpen: boolean;
  /** The route is chosen anew after the check, by the headers that it has set. */
  readonly clearRouteCache?: true;
  /** HTTP status if the service cannot be asked; undefined: 403. */
  readonly statusOnError: number | undefined;
  readonly pathPrefix: string;
  readonly includeRequestHeaders: readonly string[];
  /** Sorted by name. */
  readonly additionalHeaders: readonly { readonly name: string; readonly value: string }[];
  readonly headersToUpstreamOnAllow: readonly string[];
  readonly headersToDownstreamOnDeny: readonly string[];
  readonly headersToDownstreamOnAllow: readonly string[];
  readonly includeRequestBody:
    | {
        readonly maxRequestBytes: number;
        readonly allowPartialMessage: boolean;
        readonly packAsBytes: boolean;
      }
    | undefined;
}

/** An {@link Authorizer} that proxies can reach. */
export interface ResolvedAuthorizer {
  readonly authorizer: Authorizer;
  readonly host: string;
  readonly cluster: string;
}

/** One filter: a set of rules, and what happens to what they match. */
export interface AuthorizationStep {
  /** LOG never refuses anything. */
  readonly action: 'ALLOW' | 'DENY' | 'LOG';
  /** Its enforced policies, even if no rule of theirs is left. */
  readonly policies: readonly ObjectRef[];
  /** Absent: nothing is enforced. Empty: nothing matches, and ALLOW refuses everything. */
  readonly enforced?: readonly NamedRule[];
  /** Evaluated, but not enforced. */
  readonly shadow?: readonly NamedRule[];
  /** What the names of the shadow rules' results in dynamic metadata begin with. */
  readonly shadowPrefix: string;
  /** Asked about what the shadow rules match. */
  readonly external?: { readonly service: ResolvedAuthorizer; readonly ruleNames: string };
}

export interface NamedRule {
  /** Unique; Envoy names it in the details of a response. */
  readonly name: string;
  readonly source: Source;
  /** The rule refuses, so in doubt it matches: a claim of any type, for example. A rule that allows does not. */
  readonly isWide: boolean;
  /** One of these must match; an empty one matches anything. None: the rule never matches. */
  readonly permissions: readonly Clause[];
  readonly principals: readonly Clause[];
}
