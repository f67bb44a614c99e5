import { isIP } from 'node:net';
import type { ObjectRef } from '../api/object.ts';
import type { AuthorizationStep, NamedRule } from '../model/authorization.ts';
import type { InboundTarget } from '../model/inbound.ts';
import type { ListenerSettings } from '../model/mesh-config.ts';
import { type MtlsMode, type PeerAuthentications, type PeerModes, sourceOfMode } from '../model/peer-authentication.ts';
import type { Source } from '../model/provenance.ts';
import { type JwtIssuer, mustSeeRequests } from '../model/request-authentication.ts';
import { protocolClass } from '../model/service.ts';
import { type AuthorizationSteps, badCustomAction } from '../settle/authorization.ts';
import { type Facts, ruleMatches } from './conditions.ts';
import { keptHeaders } from './headers.ts';
import { normalizedPath } from './paths.ts';
import type { AccessRequest, Connection, Header, HttpRequest } from './request.ts';
import { authenticate } from './tokens.ts';
import { type Unknown, isUnknown } from './truth.ts';

/** What decides about requests in a connection: the values from which filters are made. */
export interface FilterAccess {
  readonly pathNormalization: ListenerSettings['pathNormalization'];
  readonly http: AuthorizationSteps;
  readonly tcp: AuthorizationSteps;
  readonly issuers: readonly JwtIssuer[];
}

/** What decides about requests to a workload: the values from which its listeners are made. */
export interface WorkloadAccess extends FilterAccess {
  /** It has a certificate. */
  readonly agent: boolean;
  /** It is a gRPC server without an Envoy, for which trust domains and `x-forwarded-for` mean nothing. */
  readonly isLibrary: boolean;
  readonly peers: PeerModes;
  /** The policies from which the modes follow. */
  readonly peerPolicies: PeerAuthentications;
  readonly targets: readonly InboundTarget[];
  /** Connections to other ports are let through, too. */
  readonly isRedirected: boolean;
  /** Whose certificates are accepted. */
  readonly trustDomains: readonly string[];
}

export interface Judgement {
  readonly verdict: Verdict;
  /** What else happens, in this order. */
  readonly events: readonly AccessEvent[];
}

export type Verdict =
  /** The rule that allows it, unless there is no ALLOW policy. */
  | { readonly kind: 'allowed'; readonly by?: Source }
  /** The HTTP status; or the connection is closed. */
  | { readonly kind: 'denied'; readonly answer: 401 | 403 | 'closed'; readonly why: Denial }
  /** It depends on something that was not said. */
  | { readonly kind: 'unknown'; readonly dependsOn: string };

export type Denial =
  | { readonly kind: 'rule'; readonly by: Source }
  /** The rule is for a provider that cannot be asked. */
  | { readonly kind: 'provider'; readonly by: Source }
  /** These policies allow something, but not this. None: there are too many for Envoy. */
  | { readonly kind: 'notAllowed'; readonly policies: readonly ObjectRef[] }
  | { readonly kind: 'token'; readonly by: Source; readonly reason: string }
  /** The mode of mutual TLS, with what sets it. */
  | { readonly kind: 'plaintext' | 'mutualTls'; readonly by?: Source }
  | { readonly kind: 'trustDomain' | 'port' }
  /** No server of a gateway takes the server name. */
  | { readonly kind: 'serverName' }
  /** The server of a gateway requires a client certificate of the mesh. */
  | { readonly kind: 'meshCertificate'; readonly by: Source };

export type AccessEvent =
  /** The verdict holds if the provider allows the request. */
  | { readonly kind: 'asks'; readonly provider: string; readonly by: Source }
  | { readonly kind: 'audit'; readonly by: Source }
  /** What policies would do if they were not dry runs. */
  | { readonly kind: 'dryRun'; readonly answer: 'allows' | 'denies'; readonly by?: Source };

/** What the proxy of a workload answers to a request, and why. @param now in seconds. */
export function judge(access: WorkloadAccess, request: AccessRequest, now: number): Judgement {
  const closed = connectionDenial(access, request);
  if (closed !== undefined) return { verdict: denied('closed', closed), events: [] };
  if (!isHttp(access, request)) {
    const unseen = unseenBy(access, request);
    if (unseen !== undefined) return { verdict: denied('closed', unseen), events: [] };
    return judgeFilters(access, request, undefined, now);
  }
  const http = request.http!;
  const forwarded = access.isLibrary ? undefined : forwardedFor(keptHeaders(http.headers));
  const remoteIp = forwarded ?? request.sourceIp;
  return judgeFilters(access, request, { ...http, remoteIp, addsAddress: false }, now);
}

/** A request, with what depends on where the proxy stands. */
export interface FilteredRequest extends HttpRequest {
  readonly remoteIp: string | Unknown;
  /** See {@link HttpFacts}. */
  readonly addsAddress: boolean;
}

/** What filters answer in a connection that was accepted. @param http undefined: no HTTP is spoken. */
export function judgeFilters(
  access: FilterAccess,
  connection: Connection,
  http: FilteredRequest | undefined,
  now: number,
): Judgement {
  const events: AccessEvent[] = [];
  const verdict =
    http === undefined ? judgeTcp(access, connection, events) : judgeHttp(access, connection, http, now, events);
  return { verdict, events };
}

/** The mode of mutual TLS in force for a port. */
export function modeOf({ peers, agent }: Pick<WorkloadAccess, 'peers' | 'agent'>, port: number): MtlsMode {
  const mode = peers.ports[port] ?? peers.mode;
  // Without a certificate, there is none.
  return agent || mode === 'STRICT' ? mode : 'DISABLE';
}

function connectionDenial(access: WorkloadAccess, { peer, port }: AccessRequest): Denial | undefined {
  const isServed = access.isRedirected || access.targets.some((target) => target.port === port);
  const mode = modeOf(access, port);
  if (!isServed || (mode === 'STRICT' && !access.agent)) return { kind: 'port' };
  const source = sourceOfMode(access.peerPolicies, port);
  const by = source && { by: source };
  if (peer === undefined) return mode === 'STRICT' ? { kind: 'plaintext', ...by } : undefined;
  if (mode === 'DISABLE') return { kind: 'mutualTls', ...by };
  const isTrusted = access.isLibrary || access.trustDomains.some((domain) => peer.startsWith(`spiffe://${domain}/`));
  return isTrusted ? undefined : { kind: 'trustDomain' };
}

function isHttp(access: WorkloadAccess, { port, http }: AccessRequest): boolean {
  return http !== undefined && ['http', 'sniffed'].includes(classOf(access, port));
}

function classOf({ targets }: WorkloadAccess, port: number) {
  return protocolClass(targets.find((target) => target.port === port)?.protocol ?? 'Unsupported');
}

/** What is not recognized as HTTP could be a request all the same, and no rule for tokens would see it. */
function unseenBy(access: WorkloadAccess, { port }: AccessRequest): Denial | undefined {
  const by = access.issuers.find(({ rule }) => mustSeeRequests(rule));
  if (by === undefined || classOf(access, port) !== 'sniffed') return undefined;
  const reason = 'the protocol of the port is detected, and the rule must see every request: only HTTP is let through';
  return { kind: 'token', by: by.source, reason };
}

function judgeTcp({ tcp }: FilterAccess, connection: Connection, events: AccessEvent[]): Verdict {
  const facts: Facts = { ...connection, http: undefined, remoteIp: connection.sourceIp };
  return (
    afterSteps(tcp.external, facts, 'closed', events) ??
    afterSteps(tcp.local, facts, 'closed', events) ?? { kind: 'allowed' }
  );
}

function judgeHttp(
  access: FilterAccess,
  connection: Connection,
  { remoteIp, ...http }: FilteredRequest,
  now: number,
  events: AccessEvent[],
): Verdict {
  const sent = { ...http, headers: keptHeaders(http.headers) };
  const path = normalizedPath(sent.path, access.pathNormalization);
  const before: Facts = { ...connection, remoteIp, http: { ...sent, path, claims: undefined } };
  const early = afterSteps(access.http.external, before, 403, events);
  if (early !== undefined) return early;
  const { refusal, ...after } = authenticate(access.issuers, { ...sent, path }, now);
  if (refusal !== undefined) {
    const { status, by, reason } = refusal;
    return denied(status, { kind: 'token', by: by.source, reason });
  }
  const facts: Facts = { ...before, http: { ...sent, ...after } };
  return afterSteps(access.http.local, facts, 403, events) ?? { kind: 'allowed' };
}

/**
 * The last address, which the peer has added; or one before it.
 *
 * @param headers as they are kept.
 */
export function forwardedFor(headers: readonly Header[], fromLast = 1): string | undefined {
  const values = headers.find(([name]) => name === 'x-forwarded-for')?.[1] ?? '';
  const address = values.split(',').at(-fromLast)?.trim() ?? '';
  return isIP(address) === 0 ? undefined : address;
}

/** Undefined if all lets the request through, and no rule was needed for that. */
function afterSteps(
  steps: readonly AuthorizationStep[],
  facts: Facts,
  answer: 403 | 'closed',
  events: AccessEvent[],
): Verdict | undefined {
  let allowed: Verdict | undefined;
  for (const step of steps) {
    const { enforced } = step;
    const shadow = step.shadow && firstMatch(step.shadow, facts);
    if (step.external !== undefined) {
      if (shadow === undefined) continue;
      if (!('source' in shadow)) return { kind: 'unknown', dependsOn: shadow.unknown };
      events.push({ kind: 'asks', provider: step.external.service.authorizer.name, by: shadow.source });
      continue;
    }
    if (step.shadow !== undefined && step.action !== 'LOG' && !isUnknownMatch(shadow)) {
      const allows = (step.action === 'ALLOW') === (shadow !== undefined);
      const by = shadow && { by: shadow.source };
      events.push({ kind: 'dryRun', answer: allows ? 'allows' : 'denies', ...by });
    }
    if (enforced === undefined) continue;
    const match = firstMatch(enforced, facts);
    if (step.action === 'LOG') {
      if (match !== undefined && 'source' in match) events.push({ kind: 'audit', by: match.source });
      continue;
    }
    if (isUnknownMatch(match)) return { kind: 'unknown', dependsOn: match.unknown };
    if (step.action === 'ALLOW') {
      if (match === undefined) return denied(answer, { kind: 'notAllowed', policies: step.policies });
      allowed = { kind: 'allowed', by: match.source };
    } else if (match !== undefined) {
      const isForProvider = match.name.endsWith(badCustomAction);
      return denied(answer, { kind: isForProvider ? 'provider' : 'rule', by: match.source });
    }
  }
  return allowed;
}

/** The rule that Envoy names: the first one that matches, by name. Undefined if none does. */
function firstMatch(rules: readonly NamedRule[], facts: Facts): NamedRule | Unknown | undefined {
  let unknown: Unknown | undefined;
  for (const rule of [...rules].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const truth = ruleMatches(rule, facts);
    if (truth === true) return rule;
    if (isUnknown(truth)) unknown = truth;
  }
  return unknown;
}

function isUnknownMatch(match: NamedRule | Unknown | undefined): match is Unknown {
  return match !== undefined && 'unknown' in match;
}

function denied(answer: 401 | 403 | 'closed', why: Denial): Verdict {
  return { kind: 'denied', answer, why };
}
