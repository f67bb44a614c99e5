import { contentHash } from './hash.ts';

/** Paths on the proxy's disk; empty: not from a file. */
export interface CertificateFiles {
  readonly chain: string;
  readonly key: string;
  readonly root: string;
}

/**
 * Facts about a proxy that change what is generated for it. Made by one pure function from the node; metadata that
 * is not read never splits proxies.
 */
export interface Traits {
  readonly proxyType: 'sidecar' | 'router';
  /** Istio's agent runs beside it: it has workload certificates and gets automatic mutual TLS. */
  readonly agent: boolean;
  readonly interception: 'REDIRECT' | 'TPROXY' | 'NONE';
  readonly ipFamily: 'v4' | 'v6' | 'dual';
  /** The domain of its id is the cluster's: the short names of Kubernetes' Services resolve where it is. */
  readonly shortNames: boolean;
  /** Metadata DNS_CAPTURE: it uses automatically allocated addresses. */
  readonly dnsCapture: boolean;
  /** Metadata HTTP10. */
  readonly http10: boolean;
  /** Metadata IDLE_TIMEOUT, milliseconds; 0 when unset. */
  readonly idleTimeout: number;
  /** Metadata HTTP_PROXY_PORT; 0 when unset. */
  readonly httpProxyPort: number;
  /** Metadata UNPRIVILEGED_POD: ports below 1024 cannot be bound. */
  readonly unprivileged: boolean;
  /** Ports that the agent and Envoy themselves use (status, prometheus, ...). Sorted. */
  readonly reservedPorts: readonly number[];
  /** Metadata INBOUND_LISTENER_EXACT_BALANCE / OUTBOUND_LISTENER_EXACT_BALANCE. */
  readonly inboundExactBalance: boolean;
  readonly outboundExactBalance: boolean;
  /** Metadata TLS_CLIENT_CERT_CHAIN, _KEY, _ROOT_CERT: certificates from files. */
  readonly clientCertificate?: CertificateFiles;
  /** Metadata TLS_SERVER_CERT_CHAIN, _KEY, _ROOT_CERT: the same for what it serves. */
  readonly serverCertificate?: CertificateFiles;
  /** ProxyConfig proxyHeaders.preserveHttp1HeaderCase. */
  readonly preserveHeaderCase: boolean;
}

/** A client as any other, to whom nothing but the namespace matters. */
export const anyTraits: Traits = {
  proxyType: 'sidecar',
  agent: false,
  interception: 'REDIRECT',
  ipFamily: 'v4',
  shortNames: true,
  dnsCapture: false,
  http10: false,
  idleTimeout: 0,
  httpProxyPort: 0,
  unprivileged: false,
  reservedPorts: [],
  inboundExactBalance: false,
  outboundExactBalance: false,
  preserveHeaderCase: false,
};

/** What of the traits a proxy's outbound world depends on: proxies that agree in it may share one. */
export function outboundTraits(traits: Traits): Traits {
  // Clusters are all that a router has of it.
  if (traits.proxyType === 'router') return { ...anyTraits, ...clusterTraits(traits) };
  const { serverCertificate: _, ...rest } = traits;
  return { ...rest, inboundExactBalance: false };
}

/**
 * What of these decides which clusters and routes there are, and what services ask of listeners. The rest says what a proxy
 * makes of that, and can have any value: it costs listeners, and nothing else.
 */
export function viewTraits(traits: Traits): Traits {
  const interception = traits.interception === 'NONE' ? 'NONE' : anyTraits.interception;
  return {
    ...traits,
    interception,
    // Routes are told whether there is one.
    httpProxyPort: Math.min(1, traits.httpProxyPort),
    http10: false,
    idleTimeout: 0,
    outboundExactBalance: false,
    reservedPorts: [],
  };
}

/** One text for proxies whose views may be the same, as {@link traitsKey}. */
export const viewTraitsKey = (traits: Traits): string => traitsKey(viewTraits(traits));

/** One text for proxies that may share outbound listeners, as far as what they are made from is the same. */
export function listenerTraitsKey({ http10, idleTimeout, outboundExactBalance }: Traits): string {
  const words: string[] = [];
  if (http10) words.push('http10');
  if (idleTimeout !== 0) words.push(`idle=${idleTimeout}`);
  if (outboundExactBalance) words.push('outbound-balance');
  return words.join(',');
}

/** The same of what a sidecar serves itself. */
export function inboundTraits({ clientCertificate: _, ...traits }: Traits): Traits {
  return { ...traits, shortNames: true, dnsCapture: false, httpProxyPort: 0, outboundExactBalance: false };
}

/** The same of what a router is sent for Gateways. */
export function gatewayTraits({ clientCertificate: _, serverCertificate: __, ...traits }: Traits): Traits {
  return {
    ...traits,
    interception: 'REDIRECT',
    shortNames: true,
    dnsCapture: false,
    httpProxyPort: 0,
    inboundExactBalance: false,
  };
}

export const wildcardAddress = (traits: Pick<Traits, 'ipFamily'>): string =>
  traits.ipFamily === 'v6' ? '::' : '0.0.0.0';
export const loopbackAddress = (traits: Pick<Traits, 'ipFamily'>): string =>
  traits.ipFamily === 'v6' ? '::1' : '127.0.0.1';

/** Where the listener for clients of an HTTP proxy is. */
export const loopbackAddresses = (traits: Pick<Traits, 'ipFamily'>): readonly [string, ...string[]] =>
  traits.ipFamily === 'dual' ? ['127.0.0.1', '::1'] : [loopbackAddress(traits)];

/** The traits that clusters depend on: proxies that agree in them share clusters. */
export type ClusterTraits = Pick<
  Traits,
  'proxyType' | 'agent' | 'ipFamily' | 'preserveHeaderCase' | 'clientCertificate'
>;

export function clusterTraits(traits: ClusterTraits): ClusterTraits {
  const { proxyType, agent, ipFamily, preserveHeaderCase, clientCertificate } = traits;
  return { proxyType, agent, ipFamily, preserveHeaderCase, ...(clientCertificate && { clientCertificate }) };
}

/** As {@link traitsKey}, of those that clusters depend on. */
export function clusterTraitsKey(traits: ClusterTraits): string {
  const { proxyType, agent, ipFamily, preserveHeaderCase, clientCertificate } = traits;
  return [proxyType, Number(agent), ipFamily, Number(preserveHeaderCase), filesKey(clientCertificate)].join(',');
}

/** One text for equal traits, and another for any two that differ. */
export function traitsKey(traits: Traits): string {
  const words: string[] = [traits.proxyType, traits.agent ? 'agent' : 'plain', traits.interception, traits.ipFamily];
  if (!traits.shortNames) words.push('full-names');
  if (traits.dnsCapture) words.push('dns-capture');
  const ofListeners = listenerTraitsKey(traits);
  if (ofListeners !== '') words.push(ofListeners);
  if (traits.httpProxyPort !== 0) words.push(`http-proxy=${traits.httpProxyPort}`);
  if (traits.unprivileged) words.push('unprivileged');
  if (traits.reservedPorts.length > 0) words.push(`reserved=${traits.reservedPorts.join('+')}`);
  if (traits.inboundExactBalance) words.push('inbound-balance');
  if (traits.preserveHeaderCase) words.push('header-case');
  if (traits.clientCertificate) words.push(`client-cert=${filesKey(traits.clientCertificate)}`);
  if (traits.serverCertificate) words.push(`server-cert=${filesKey(traits.serverCertificate)}`);
  return words.join(',');
}

/** Short, because keys of thousands of entries hold it; paths may be long, and hold any character. */
function filesKey(files: CertificateFiles | undefined): string {
  return files === undefined ? '' : contentHash(JSON.stringify([files.chain, files.key, files.root]));
}
