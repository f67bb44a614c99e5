import { type Protocol, protocolClass } from '../../model/service.ts';
import type { MtlsMode } from '../../model/peer-authentication.ts';
import { PLAINTEXT_HTTP, RAW_BUFFER, TLS } from './listener.ts';

/** One filter chain of an inbound port. */
export interface InboundMatch {
  readonly serves: 'http' | 'tcp';
  /** Always set: Envoy reads an absent one as "nothing detected yet", not as "any". */
  readonly transport: typeof RAW_BUFFER | typeof TLS;
  readonly alpn: readonly string[];
  /** The chain terminates TLS. */
  readonly terminates: boolean;
}

/** What a proxy of the mesh offers besides its own protocols if it has detected HTTP, or something else. */
const MESH_HTTP = ['istio-http/1.0', 'istio-http/1.1', 'istio-h2'];
const MESH_TCP = ['istio-peer-exchange', 'istio'];
/** What a proxy of the mesh may offer. */
export const MESH = ['istio', 'istio-peer-exchange', 'istio-http/1.0', 'istio-http/1.1', 'istio-h2'];

type Serves = InboundMatch['serves'];

const mutualTls = (serves: Serves, alpn: readonly string[] = []): InboundMatch => ({
  serves,
  transport: TLS,
  alpn,
  terminates: true,
});
const plaintext = (serves: Serves, alpn: readonly string[] = []): InboundMatch => ({
  serves,
  transport: RAW_BUFFER,
  alpn,
  terminates: false,
});
/** The workload's own TLS, passed through. */
const otherTls: InboundMatch = { serves: 'tcp', transport: TLS, alpn: [], terminates: false };

const chains: Readonly<Record<'http' | 'tcp' | 'sniffed', Readonly<Record<MtlsMode, readonly InboundMatch[]>>>> = {
  http: {
    PERMISSIVE: [mutualTls('http', MESH), plaintext('http')],
    STRICT: [mutualTls('http')],
    DISABLE: [plaintext('http')],
  },
  tcp: {
    PERMISSIVE: [mutualTls('tcp', MESH), otherTls, plaintext('tcp')],
    STRICT: [mutualTls('tcp')],
    DISABLE: [plaintext('tcp')],
  },
  sniffed: {
    PERMISSIVE: [
      mutualTls('http', MESH_HTTP),
      plaintext('http', PLAINTEXT_HTTP),
      mutualTls('tcp', MESH_TCP),
      plaintext('tcp'),
      otherTls,
    ],
    STRICT: [mutualTls('http', MESH_HTTP), mutualTls('tcp')],
    DISABLE: [plaintext('http', PLAINTEXT_HTTP), plaintext('tcp')],
  },
};

/** @param hasCertificate without one, a proxy cannot terminate mutual TLS: under STRICT, it accepts nothing. */
export function inboundMatches(protocol: Protocol, mode: MtlsMode, hasCertificate: boolean): readonly InboundMatch[] {
  const kind = protocolClass(protocol);
  const possible = chains[kind === 'udp' ? 'tcp' : kind];
  if (hasCertificate) return possible[mode];
  return mode === 'STRICT' ? [] : possible.DISABLE;
}

/** What a Sidecar's ingress terminates itself. */
export function ingressTlsMatch(protocol: Protocol): InboundMatch {
  return mutualTls(protocol === 'HTTPS' ? 'http' : 'tcp');
}
