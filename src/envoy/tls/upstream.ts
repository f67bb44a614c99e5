import { asSecret, clientResources, isProvided, namesCredential, socketProvider } from '../../model/credential.ts';
import type { UpstreamProtocol, UpstreamSockets } from '../../model/cluster.ts';
import type { ClusterSettings } from '../../model/mesh-config.ts';
import type { ClientTls } from '../../model/traffic-policy.ts';
import type { ClusterTraits } from '../../model/traits.ts';
import type {
  CertificateValidationContext,
  Cluster_TransportSocketMatch,
  CommonTlsContext,
  DataSource,
  SdsSecretConfig,
  TransportSocket,
  UpstreamHttpProtocolOptions,
} from '../gen/types.gen.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import {
  certificateFiles,
  clientSecret,
  clientTlsParameters,
  fileSecret,
  meshRoots,
  providedSecret,
  rootFile,
  withheldSecret,
  workloadCertificate,
  workloadSecret,
} from './secrets.ts';
import { struct } from '../encode/wrappers.ts';

interface TlsContext {
  readonly protocol: UpstreamProtocol;
  readonly traits: ClusterTraits;
  readonly settings: Pick<ClusterSettings, 'tlsDefaults'>;
}

export interface UpstreamTls {
  readonly transportSocket?: TransportSocket;
  readonly transportSocketMatches?: readonly Cluster_TransportSocketMatch[];
  /** Set if the server name follows the request. */
  readonly upstreamHttp?: UpstreamHttpProtocolOptions;
}

/** The transport sockets of a cluster. */
export function upstreamTls(sockets: UpstreamSockets, context: TlsContext): UpstreamTls {
  switch (sockets.kind) {
    case 'plaintext':
      return {};
    case 'originated':
      return originate(sockets, context);
    case 'mesh': {
      const transportSocket = meshSocket(sockets, context);
      if (!sockets.toMarked) return { transportSocket };
      return {
        transportSocketMatches: [
          { name: 'tlsMode-istio', match: struct({ tlsMode: 'istio' }), transportSocket },
          { name: 'tlsMode-disabled', match: {}, transportSocket: plainSocket() },
        ],
      };
    }
  }
}

function plainSocket(): TransportSocket {
  return {
    name: 'envoy.transport_sockets.raw_buffer',
    typedConfig: any(types.rawBuffer, {}),
  };
}

/** Prepends the PROXY header to whatever the sockets speak. */
export function withProxyProtocol(tls: UpstreamTls, version: 'V1' | 'V2'): UpstreamTls {
  const wrap = (transportSocket: TransportSocket): TransportSocket => ({
    name: 'envoy.transport_sockets.upstream_proxy_protocol',
    typedConfig: any(types.upstreamProxyProtocol, { config: { version }, transportSocket }),
  });
  if (tls.transportSocketMatches === undefined)
    return { ...tls, transportSocket: wrap(tls.transportSocket ?? plainSocket()) };
  return {
    ...tls,
    transportSocketMatches: tls.transportSocketMatches.map((match) => ({
      ...match,
      transportSocket: wrap(match.transportSocket ?? plainSocket()),
    })),
  };
}

/** TLS to peers of the mesh, with the certificate that Istio's agent got for the workload. */
function meshSocket({ names, sni }: UpstreamSockets & { kind: 'mesh' }, { protocol }: TlsContext): TransportSocket {
  return tlsSocket(sni, {
    tlsParams: clientTlsParameters(),
    alpnProtocols: protocol === 'http2' ? ['istio', 'h2'] : ['istio'],
    tlsCertificateSdsSecretConfigs: [workloadSecret(workloadCertificate)],
    combinedValidationContext: {
      defaultValidationContext: exactNames(names),
      validationContextSdsSecretConfig: workloadSecret(meshRoots),
    },
  });
}

/** TLS to a server outside the mesh, or with the owner's own certificates. */
function originate(
  { tls, names, mutual, autoSni, autoSanValidation }: UpstreamSockets & { kind: 'originated' },
  { protocol, traits, settings }: TlsContext,
): UpstreamTls {
  const certificatesOf = (): CommonTlsContext => {
    if (tls.isWithheld) return withheldContext;
    const pair = tls.credentialName === '' && hasCertificate(tls, mutual) ? filePair(tls, traits) : {};
    if (namesCredential(tls)) return { ...pair, ...credentialContext(tls, names, traits) };
    return { ...pair, ...(traits.agent ? agentFileContext(tls, names) : fileContext(tls, names)) };
  };
  const context: CommonTlsContext = {
    tlsParams: clientTlsParameters(settings.tlsDefaults),
    ...(protocol === 'http2' ? { alpnProtocols: ['h2'] } : {}),
    ...certificatesOf(),
  };
  return {
    transportSocket: tlsSocket(tls.sni, context),
    ...(autoSni ? { upstreamHttp: { autoSni, ...(autoSanValidation ? { autoSanValidation } : {}) } } : {}),
  };
}

const withheldContext: CommonTlsContext = {
  combinedValidationContext: { defaultValidationContext: {}, validationContextSdsSecretConfig: withheldSecret },
};

function credentialContext(
  tls: ClientTls,
  names: readonly string[],
  { credentialSocket }: ClusterTraits,
): CommonTlsContext {
  const { pairs, roots } = clientResources(tls);
  const secret = (resource: string, part: 'pair' | 'roots'): SdsSecretConfig =>
    credentialSocket && isProvided(resource)
      ? providedSecret(resource, socketProvider)
      : clientSecret(asSecret(resource, part));
  return {
    ...(pairs.length > 0 ? { tlsCertificateSdsSecretConfigs: pairs.map((pair) => secret(pair, 'pair')) } : {}),
    ...(roots === ''
      ? {}
      : {
          combinedValidationContext: {
            defaultValidationContext: exactNames(names),
            validationContextSdsSecretConfig: secret(roots, 'roots'),
          },
        }),
  };
}

/** The client's own certificate from files: Istio's agent reads and watches them, or else Envoy reads them itself. */
function filePair({ clientCertificate, privateKey }: ClientTls, { agent }: ClusterTraits): CommonTlsContext {
  if (agent) return { tlsCertificateSdsSecretConfigs: [fileSecret(certificateFiles(clientCertificate, privateKey))] };
  return { tlsCertificates: [{ certificateChain: file(clientCertificate), privateKey: file(privateKey) }] };
}

/** Roots in files that Istio's agent reads and watches. */
function agentFileContext(tls: ClientTls, names: readonly string[]): CommonTlsContext {
  if (tls.insecureSkipVerify) return { validationContext: {} };
  return {
    combinedValidationContext: {
      defaultValidationContext: fileChecks(tls, names),
      validationContextSdsSecretConfig: fileSecret(rootFile(tls.caCertificates)),
    },
  };
}

/**
 * Where Debian, Alpine and Envoy's images keep the operating system's roots. Envoy itself does not look for them: it
 * accepts `system_root_certs`, and then verifies nothing. Without the file, Envoy rejects the cluster.
 */
const systemRoots = '/etc/ssl/certs/ca-certificates.crt';

/** Roots in files that Envoy reads itself if it has no agent. */
function fileContext(tls: ClientTls, names: readonly string[]): CommonTlsContext {
  const trustedCa = file(tls.caCertificates === '' ? systemRoots : tls.caCertificates);
  return { validationContext: tls.insecureSkipVerify ? {} : { trustedCa, ...fileChecks(tls, names) } };
}

const file = (filename: string): DataSource => ({ filename });

/**
 * Without its client certificate files, MUTUAL still speaks TLS: the server refuses the connection instead of getting
 * plain text.
 */
function hasCertificate(tls: ClientTls, mutual: boolean): boolean {
  return mutual && tls.clientCertificate !== '' && tls.privateKey !== '';
}

/** Secrets bring their own revocation list; for files, Envoy reads the rule's. */
function fileChecks({ caCrl }: ClientTls, names: readonly string[]): CertificateValidationContext {
  return { ...exactNames(names), ...(caCrl === '' ? {} : { crl: { filename: caCrl } }) };
}

function exactNames(names: readonly string[]): CertificateValidationContext {
  return names.length === 0 ? {} : { matchSubjectAltNames: names.map((exact) => ({ exact })) };
}

function tlsSocket(sni: string, commonTlsContext: CommonTlsContext): TransportSocket {
  return { name: 'envoy.transport_sockets.tls', typedConfig: any(types.upstreamTls, { commonTlsContext, sni }) };
}
