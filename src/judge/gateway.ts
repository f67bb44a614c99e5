import { isIP } from 'node:net';
import type { GatewayChain, SettledGatewayListener } from '../model/gateway.ts';
import type { GatewayTopology } from '../model/mesh-config.ts';
import type { JwtIssuer } from '../model/request-authentication.ts';
import { keptHeaders } from './headers.ts';
import { type Denial, type FilterAccess, type Judgement, forwardedFor, judgeFilters } from './judge.ts';
import type { Connection, HttpRequest } from './request.ts';
import type { Unknown } from './truth.ts';

/** What decides about requests to a router: the values from which its listeners are made. */
export interface GatewayAccess {
  /** The open listeners. */
  readonly listeners: readonly ListenerAccess[];
  readonly issuers: readonly JwtIssuer[];
  /** Target ports of the Services in front of the router, by their ports, oldest first. 0: none. */
  readonly servicePorts: readonly Readonly<Record<number, number>>[];
  /** The mesh's own, and its aliases. */
  readonly trustDomains: readonly string[];
  readonly topology: GatewayTopology;
}

export interface ListenerAccess extends SettledGatewayListener {
  readonly filters: FilterAccess;
}

/** What arrives at a router, over TLS if the server terminates or forwards that. */
export interface GatewayRequest {
  /** SPIFFE ID in the client's certificate; undefined: not said. */
  readonly peer: string | undefined;
  readonly port: number;
  readonly sourceIp: string | Unknown;
  readonly destinationIp: string | Unknown;
  readonly http: HttpRequest;
}

/** What a router answers to a request, and why. @param now in seconds. */
export function judgeAtGateway(access: GatewayAccess, request: GatewayRequest, now: number): Judgement {
  const listener = access.listeners.find(({ port }) => port === request.port);
  if (listener === undefined) return closed({ kind: 'port' });
  const chain = chainOf(listener, request);
  if (chain === undefined) return closed({ kind: 'serverName' });
  if ('unknown' in chain) return unknown(chain);
  const handshake = shakeHands(chain, access, request);
  if ('denial' in handshake) return closed(handshake.denial);
  if ('unknown' in handshake) return unknown(handshake);
  const { peer } = handshake;
  const { http, port, destinationIp } = request;
  const { proxyProtocol } = access.topology;
  const connection = {
    peer,
    port,
    destinationIp,
    sourceIp: proxyProtocol ? behindProxy : request.sourceIp,
    sni: isTls(chain) ? serverNameOf(http.host) : '',
  };
  const remoteIp = proxyProtocol ? behindProxy : remoteIpOf(access, request);
  const isHttp = chain.serves.kind === 'http';
  return judgeFilters(listener.filters, connection, isHttp ? { ...http, remoteIp, addsAddress: true } : undefined, now);
}

const behindProxy: Unknown = { unknown: 'addresses in the header of the PROXY protocol, which cannot be specified' };

/** The chain that takes the connection, or undefined if none does. */
export function chainOf(
  { chains }: SettledGatewayListener,
  { http }: Pick<GatewayRequest, 'http'>,
): GatewayChain | Unknown | undefined {
  const [first, ...others] = chains;
  if (others.length === 0 && first !== undefined && takesAny(first)) return first;
  const name = serverNameOf(http.host);
  if (typeof name !== 'string') return name;
  // Envoy looks for the name itself, then for ever shorter wildcards.
  const suffixes = name === '' ? [] : [...name.matchAll(/\./g)].map(({ index }) => `*${name.slice(index)}`);
  for (const each of [name, ...suffixes]) {
    const found = chains.find(
      (chain) => !takesAny(chain) && chain.serverNames.some((one) => one.toLowerCase() === each),
    );
    if (found !== undefined) return found;
  }
  return chains.find(takesAny);
}

function takesAny({ serverNames }: GatewayChain): boolean {
  return serverNames.length === 0 || serverNames.includes('*');
}

/** The router terminates TLS, or looks into it. */
export function isTls({ tls, serverNames }: GatewayChain): boolean {
  return tls !== undefined || serverNames.length > 0;
}

/** As clients send it: the host that they call, unless it is an address. */
function serverNameOf(host: string | Unknown): string | Unknown {
  if (typeof host !== 'string') return { unknown: 'the server name in the TLS handshake, for which --host stands' };
  const name = host.replace(/:\d*$/, '').toLowerCase();
  return isIP(name) !== 0 || name.startsWith('[') ? '' : name;
}

/** Who the filters take the client for; unless the handshake fails, or may fail. */
function shakeHands(
  chain: GatewayChain,
  { trustDomains }: GatewayAccess,
  { peer }: GatewayRequest,
): { readonly peer: Connection['peer'] } | { readonly denial: Denial } | Unknown {
  const { tls } = chain;
  if (tls === undefined || tls.mode === 'SIMPLE') return { peer: undefined };
  if (peer === undefined) {
    if (tls.mode === 'OPTIONAL_MUTUAL') return { peer: undefined };
    // Its own authority signs whatever identities, or none.
    if (tls.mode === 'MUTUAL')
      return { peer: { unknown: "the identity in the client's certificate, which --from specifies" } };
    return { denial: { kind: 'meshCertificate', by: { object: chain.origins[0]!, field: 'spec.servers' } } };
  }
  if (tls.subjectAltNames.length > 0 && !tls.subjectAltNames.includes(peer))
    return { unknown: "the names in the client's certificate, of which one must be in subjectAltNames" };
  if (tls.certificates.kind === 'mesh' && !trustDomains.some((domain) => peer.startsWith(`spiffe://${domain}/`)))
    return { unknown: "whether the mesh's root certificates accept a certificate of the client's trust domain" };
  return { peer };
}

/** Source: Envoy's `use_remote_address: true` with `xff_num_trusted_hops`. */
function remoteIpOf(
  { topology: { numTrustedProxies } }: GatewayAccess,
  { sourceIp, http }: GatewayRequest,
): string | Unknown {
  return (numTrustedProxies > 0 ? forwardedFor(keptHeaders(http.headers), numTrustedProxies) : undefined) ?? sourceIp;
}

function closed(why: Denial): Judgement {
  return { verdict: { kind: 'denied', answer: 'closed', why }, events: [] };
}

function unknown(what: Unknown): Judgement {
  return { verdict: { kind: 'unknown', dependsOn: what.unknown }, events: [] };
}
