import { contentHash } from './hash.ts';

/** Paths on the proxy's disk; empty: not from a file. */
export interface CertificateFiles {
  readonly chain: string;
  readonly key: string;
  readonly root: string;
}

/**
 * Facts about a proxy that change what is generated for it. Computed from the node by one pure function; metadata that
 * it does not read never splits proxies.
 */
export interface Traits {
  readonly proxyType: 'sidecar' | 'router';
  /** Metadata GENERATOR. `grpc`: a gRPC library, not an Envoy; a sidecar without interception or listeners of its own. */
  readonly family: 'envoy' | 'grpc';
  /** Istio's agent runs next to it: it has workload certificates and gets automatic mutual TLS. */
  readonly agent: boolean;
  readonly interception: 'REDIRECT' | 'TPROXY' | 'NONE';
  readonly ipFamily: 'v4' | 'v6' | 'dual';
  /** The domain in its id is the cluster's: short names of Kubernetes Services resolve there. */
  readonly shortNames: boolean;
  /** The cluster that it is in, if that is another one than the own and known. It uses the addresses of Services there. */
  readonly cluster: string;
  /** Metadata DNS_CAPTURE: it uses automatically allocated addresses. */
  readonly dnsCapture: boolean;
  /** Metadata HTTP10. */
  readonly http10: boolean;
  /** Metadata IDLE_TIMEOUT, milliseconds; 0 if unset. */
  readonly idleTimeout: number;
  /** Metadata HTTP_PROXY_PORT; 0 if unset. */
  readonly httpProxyPort: number;
  /** Metadata UNPRIVILEGED_POD: it cannot bind ports below 1024. */
  readonly unprivileged: boolean;
  /** Ports used by the agent and Envoy themselves (status, prometheus, ...). Sorted. */
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
  /** Metadata credential: a provider of secrets listens on a socket in its Pod. */
  readonly credentialSocket: boolean;
}

/** A generic client, for uses where only the namespace matters. */
export const anyTraits: Traits = {
  proxyType: 'sidecar',
  family: 'envoy',
  agent: false,
  interception: 'REDIRECT',
  ipFamily: 'v4',
  shortNames: true,
  cluster: '',
  dnsCapture: false,
  http10: false,
  idleTimeout: 0,
  httpProxyPort: 0,
  unprivileged: false,
  reservedPorts: [],
  inboundExactBalance: false,
  outboundExactBalance: false,
  preserveHeaderCase: false,
  credentialSocket: false,
};

/** The traits that a proxy's outbound world depends on: proxies with equal ones may share one. */
export function outboundTraits(traits: Traits): Traits {
  // A router's outbound world consists of clusters only.
  if (traits.proxyType === 'router') return { ...anyTraits, ...clusterTraits(traits) };
  const { serverCertificate: _, ...rest } = traits;
  return { ...rest, inboundExactBalance: false };
}

/**
 * The traits that decide which clusters and routes exist, and what services ask of listeners. The rest only affects
 * what a proxy makes of these, and can have any value: it costs listeners, and nothing else.
 */
export function viewTraits(traits: Traits): Traits {
  const interception = traits.interception === 'NONE' ? 'NONE' : anyTraits.interception;
  return {
    ...traits,
    interception,
    // Routes depend only on whether there is one.
    httpProxyPort: Math.min(1, traits.httpProxyPort),
    http10: false,
    idleTimeout: 0,
    outboundExactBalance: false,
    reservedPorts: [],
  };
}

/** One text for proxies whose views may be the same, like {@link traitsKey}. */
export const viewTraitsKey = (traits: Traits): string => traitsKey(viewTraits(traits));

/** One text for proxies that may share outbound listeners, provided that the input for these is the same. */
export function listenerTraitsKey({ http10, idleTimeout, outboundExactBalance }: Traits): string {
  const words: string[] = [];
  if (http10) words.push('http10');
  if (idleTimeout !== 0) words.push(`idle=${idleTimeout}`);
  if (outboundExactBalance) words.push('outbound-balance');
  return words.join(',');
}

/** The traits that what a sidecar itself serves depends on. */
export function inboundTraits({ clientCertificate: _, ...traits }: Traits): Traits {
  return {
    ...traits,
    shortNames: true,
    dnsCapture: false,
    httpProxyPort: 0,
    outboundExactBalance: false,
    credentialSocket: false,
  };
}

/** The traits that what a router gets for Gateways depends on. */
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

/** Where the listener for HTTP proxy clients is. */
export const loopbackAddresses = (traits: Pick<Traits, 'ipFamily'>): readonly [string, ...string[]] =>
  traits.ipFamily === 'dual' ? ['127.0.0.1', '::1'] : [loopbackAddress(traits)];

/** The traits that clusters depend on: proxies with equal ones share clusters. */
export type ClusterTraits = Pick<
  Traits,
  | 'proxyType'
  | 'family'
  | 'agent'
  | 'ipFamily'
  | 'preserveHeaderCase'
  | 'clientCertificate'
  | 'interception'
  | 'credentialSocket'
>;

export function clusterTraits(traits: ClusterTraits): ClusterTraits {
  const { proxyType, family, agent, ipFamily, preserveHeaderCase, clientCertificate, credentialSocket } = traits;
  // Whether clients choose an endpoint themselves, by its address.
  const interception = traits.interception === 'NONE' ? 'NONE' : anyTraits.interception;
  const certificate = clientCertificate && { clientCertificate };
  return { proxyType, family, agent, ipFamily, preserveHeaderCase, interception, credentialSocket, ...certificate };
}

/** Like {@link traitsKey}, for the traits that clusters depend on. */
export function clusterTraitsKey(traits: ClusterTraits): string {
  const { proxyType, family, agent, ipFamily, preserveHeaderCase, clientCertificate, interception } = traits;
  const type = family === 'grpc' ? family : proxyType;
  const all = [type, Number(agent), ipFamily, Number(preserveHeaderCase), filesKey(clientCertificate)];
  const more = [...(interception === 'NONE' ? [interception] : []), ...(traits.credentialSocket ? ['socket'] : [])];
  return [...all, ...more].join(',');
}

/** Equal traits have the same text, different ones never do. */
export function traitsKey(traits: Traits): string {
  const words: string[] = [traits.proxyType, traits.agent ? 'agent' : 'plain', traits.interception, traits.ipFamily];
  if (traits.family === 'grpc') words.push('grpc');
  if (!traits.shortNames) words.push('full-names');
  if (traits.cluster !== '') words.push(`cluster=${traits.cluster}`);
  if (traits.dnsCapture) words.push('dns-capture');
  const ofListeners = listenerTraitsKey(traits);
  if (ofListeners !== '') words.push(ofListeners);
  if (traits.httpProxyPort !== 0) words.push(`http-proxy=${traits.httpProxyPort}`);
  if (traits.unprivileged) words.push('unprivileged');
  if (traits.reservedPorts.length > 0) words.push(`reserved=${traits.reservedPorts.join('+')}`);
  if (traits.inboundExactBalance) words.push('inbound-balance');
  if (traits.preserveHeaderCase) words.push('header-case');
  if (traits.credentialSocket) words.push('credential-socket');
  if (traits.clientCertificate) words.push(`client-cert=${filesKey(traits.clientCertificate)}`);
  if (traits.serverCertificate) words.push(`server-cert=${filesKey(traits.serverCertificate)}`);
  return words.join(',');
}

/** Short, because keys of thousands of entries contain it; paths may be long and contain any character. */
function filesKey(files: CertificateFiles | undefined): string {
  return files === undefined ? '' : contentHash(JSON.stringify([files.chain, files.key, files.root]));
}
