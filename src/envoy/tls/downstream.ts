import type { ServerTls, TlsVersion } from '../../model/gateway.ts';
import { type SecretProvider, asSecret, isProvided, serverResources } from '../../model/credential.ts';
import type { ListenerSettings } from '../../model/mesh-config.ts';
import type { Traits } from '../../model/traits.ts';
import type {
  CertificateValidationContext,
  CommonTlsContext,
  SdsSecretConfig,
  TlsParameters,
  TlsParameters_TlsProtocol,
  TransportSocket,
} from '../gen/types.gen.ts';
import { pairName, rootsName } from './file-secrets.ts';
import { any } from '../encode/proto.ts';
import { types } from '../encode/proto-types.ts';
import {
  certificateFiles,
  controlPlaneSecret,
  fileSecret,
  meshRoots,
  providedSecret,
  rootFile,
  workloadCertificate,
  workloadSecret,
} from './secrets.ts';

export interface DownstreamTlsInput {
  readonly tls: ServerTls;
  readonly traits: Pick<Traits, 'agent'>;
  readonly settings: Pick<ListenerSettings, 'tlsDefaults'>;
  /** Absent: all secrets are the control plane's. */
  readonly secretProvider?: SecretProvider | undefined;
}

/** The transport socket of a server that terminates TLS. */
export function downstreamTls(input: DownstreamTlsInput): TransportSocket {
  const { tls } = input;
  const tlsParams = tls.mode === 'ISTIO_MUTUAL' ? undefined : parameters(input);
  return {
    name: 'envoy.transport_sockets.tls',
    typedConfig: any(types.downstreamTls, {
      commonTlsContext: {
        alpnProtocols: tls.alpnProtocols.length > 0 ? tls.alpnProtocols : ['h2', 'http/1.1'],
        ...(tlsParams === undefined ? {} : { tlsParams }),
        ...certificates(input),
      },
      requireClientCertificate: { value: tls.mode === 'MUTUAL' || tls.mode === 'ISTIO_MUTUAL' },
    }),
  };
}

/** The server's own settings, or else those of the mesh. */
function parameters({ tls, settings: { tlsDefaults } }: DownstreamTlsInput): TlsParameters | undefined {
  const min = tls.minProtocolVersion ?? tlsDefaults.minProtocolVersion;
  const { maxProtocolVersion: max } = tls;
  const ciphers = tls.cipherSuites.length > 0 ? tls.cipherSuites : tlsDefaults.cipherSuites;
  const curves = tls.ecdhCurves.length > 0 ? tls.ecdhCurves : tlsDefaults.ecdhCurves;
  const found: TlsParameters = {
    ...(min === undefined ? {} : { tlsMinimumProtocolVersion: versions[min] }),
    ...(max === undefined ? {} : { tlsMaximumProtocolVersion: versions[max] }),
    ...(ciphers.length === 0 ? {} : { cipherSuites: ciphers }),
    ...(curves.length === 0 ? {} : { ecdhCurves: curves }),
  };
  return Object.keys(found).length === 0 ? undefined : found;
}

const versions: Readonly<Record<TlsVersion, TlsParameters_TlsProtocol>> = {
  TLSV1_0: 'TLSv1_0',
  TLSV1_1: 'TLSv1_1',
  TLSV1_2: 'TLSv1_2',
  TLSV1_3: 'TLSv1_3',
};

/** What the server presents, and what it requires of clients. */
function certificates({ tls, traits, secretProvider }: DownstreamTlsInput): CommonTlsContext {
  const source = tls.certificates;
  switch (source.kind) {
    case 'mesh':
      return fromSecrets([workloadSecret(workloadCertificate)], workloadSecret(meshRoots), tls);
    case 'credentials': {
      const { pairs, roots } = serverResources(tls);
      const secret = (resource: string, part: 'pair' | 'roots'): SdsSecretConfig =>
        secretProvider !== undefined && isProvided(resource)
          ? providedSecret(resource, secretProvider)
          : controlPlaneSecret(asSecret(resource, part));
      return fromSecrets(
        pairs.map((pair) => secret(pair, 'pair')),
        secret(roots, 'roots'),
        tls,
      );
    }
    case 'files': {
      const { files, roots } = source;
      const pairs = files.map(({ certificate, key }) =>
        traits.agent ? fileSecret(certificateFiles(certificate, key)) : controlPlaneSecret(pairName(certificate, key)),
      );
      // Agents do not support revocation lists.
      if (traits.agent && tls.caCrl === '') return fromSecrets(pairs, fileSecret(rootFile(roots)), tls);
      return fromSecrets(pairs, controlPlaneSecret(rootsName(roots, tls.caCrl)), { ...tls, caCrl: '' });
    }
  }
}

function fromSecrets(secrets: readonly SdsSecretConfig[], roots: SdsSecretConfig, tls: ServerTls): CommonTlsContext {
  return {
    tlsCertificateSdsSecretConfigs: secrets,
    ...(tls.mode === 'SIMPLE'
      ? {}
      : {
          combinedValidationContext: {
            defaultValidationContext: clientChecks(tls),
            validationContextSdsSecretConfig: roots,
          },
        }),
  };
}

function clientChecks(tls: ServerTls): CertificateValidationContext {
  const { subjectAltNames, verifyCertificateSpki, verifyCertificateHash, caCrl, insecureSkipVerify } = tls;
  return {
    ...(subjectAltNames.length === 0 ? {} : { matchSubjectAltNames: subjectAltNames.map((exact) => ({ exact })) }),
    ...(verifyCertificateSpki.length === 0 ? {} : { verifyCertificateSpki }),
    ...(verifyCertificateHash.length === 0 ? {} : { verifyCertificateHash }),
    ...(caCrl === '' ? {} : { crl: { filename: caCrl } }),
    ...(insecureSkipVerify ? { trustChainVerification: 'ACCEPT_UNTRUSTED' } : {}),
  };
}
