import type { Address, Fields } from './config-fields.ts';

/** Services outside the Pod to which Envoy itself reports, by its bootstrap. Source: istio/api mesh/v1alpha1/proxy.proto. */
export interface Collectors {
  readonly tracing: Tracing | undefined;
  /** Of `statsdUdpAddress`. */
  readonly statsd: Address | undefined;
  readonly accessLogs: RemoteService | undefined;
  readonly metrics: RemoteService | undefined;
}

export type Tracing = RemoteService & { readonly kind: 'zipkin' | 'datadog' };

export interface RemoteService {
  readonly address: Address;
  /** Undefined: without TLS. */
  readonly tls: CollectorTls | undefined;
  readonly keepalive: Keepalive | undefined;
}

/** Names are those of secrets, as Envoy asks the agent for them. */
export interface CollectorTls {
  readonly certificate: string | undefined;
  /** Undefined: the certificate is not verified. */
  readonly roots: string | undefined;
  readonly sni: string;
  readonly subjectAltNames: readonly string[];
}

/** Seconds. */
interface Keepalive {
  readonly probes: number | undefined;
  readonly time: number | undefined;
  readonly interval: number | undefined;
}

/** Throws an `AgentConfigError`. */
export function readCollectors(config: Fields): Collectors {
  return {
    tracing: tracingOf(config.in('tracing')),
    statsd: config.address('statsdUdpAddress'),
    accessLogs: serviceOf(config.in('envoyAccessLogService')),
    metrics: serviceOf(config.in('envoyMetricsService')),
  };
}

/** Members of `tracing` that nobody here reads; the control plane reads the sampling of the mesh. */
export function unusedOfTracing(config: Fields): readonly string[] {
  return config
    .in('tracing')
    .names.filter((name) => !['zipkin', 'datadog', 'tlsSettings', 'sampling'].includes(name))
    .map((name) => `tracing.${name}`);
}

function tracingOf(tracing: Fields): Tracing | undefined {
  for (const kind of ['zipkin', 'datadog'] as const) {
    const address = tracing.in(kind).address('address');
    if (address !== undefined) return { kind, address, tls: tlsOf(tracing.in('tlsSettings')), keepalive: undefined };
  }
  return undefined;
}

function serviceOf(service: Fields): RemoteService | undefined {
  const address = service.address('address');
  if (address === undefined) return undefined;
  return { address, tls: tlsOf(service.in('tlsSettings')), keepalive: keepaliveOf(service.in('tcpKeepalive')) };
}

function tlsOf(tls: Fields): CollectorTls | undefined {
  const mode = tls.text('mode') || 'DISABLE';
  const ca = tls.text('caCertificates');
  const named = { sni: tls.text('sni'), subjectAltNames: tls.list('subjectAltNames') };
  const roots = tls.flag('insecureSkipVerify') ? undefined : `file-root:${ca || 'system'}`;
  switch (mode) {
    case 'DISABLE':
      return undefined;
    case 'ISTIO_MUTUAL':
      return { ...named, certificate: 'default', roots: 'ROOTCA' };
    case 'SIMPLE':
      return { ...named, certificate: undefined, roots };
    case 'MUTUAL': {
      const [chain, key] = [tls.text('clientCertificate'), tls.text('privateKey')];
      if (chain === '' || key === '') return tls.wrong('mode', 'MUTUAL needs clientCertificate and privateKey');
      return { ...named, certificate: `file-cert:${chain}~${key}`, roots };
    }
    default:
      return tls.wrong('mode', 'must be DISABLE, SIMPLE, MUTUAL or ISTIO_MUTUAL');
  }
}

function keepaliveOf(keepalive: Fields): Keepalive | undefined {
  if (keepalive.names.length === 0) return undefined;
  const seconds = (name: string): number | undefined => {
    const ms = keepalive.duration(name);
    return ms === undefined ? undefined : Math.max(1, Math.round(ms / 1000));
  };
  return { probes: keepalive.count('probes'), time: seconds('time'), interval: seconds('interval') };
}
