import { type SecretProvider, providedName } from '../../model/credential.ts';
import { duration } from '../duration.ts';
import type { Cluster, ConfigSource, SdsSecretConfig, TlsParameters } from '../gen/types.gen.ts';

/** The bootstrap cluster through which Envoy reaches Istio's agent on the same host. */
const agentCluster = 'sds-grpc';

/** Names under which Istio's agent serves the workload's own certificate, and the mesh's roots. */
export const workloadCertificate = 'default';
export const meshRoots = 'ROOTCA';

/** A secret of the workload itself (`default`, `ROOTCA`) from Istio's agent. Envoy waits for it indefinitely. */
export function workloadSecret(name: string): SdsSecretConfig {
  return { name, sdsConfig: { ...agentSource, initialFetchTimeout: { seconds: 0 } } };
}

/** A file on the proxy's disk, served and watched by Istio's agent; see {@link certificateFiles}, {@link rootFile}. */
export function fileSecret(name: string): SdsSecretConfig {
  return { name, sdsConfig: agentSource };
}

/** A secret fetched from the control plane. */
export function controlPlaneSecret(name: string): SdsSecretConfig {
  return { name, sdsConfig: { ads: {}, resourceApiVersion: 'V3' } };
}

/**
 * A Secret for a cluster. Some proxies may not have it, and in state of the world, absence is not an answer: they would
 * wait 15 s before they start, instead of 1 s. Their requests fail.
 */
export function clientSecret(name: string): SdsSecretConfig {
  const { sdsConfig } = controlPlaneSecret(name);
  return { name, sdsConfig: { ...sdsConfig, initialFetchTimeout: duration(1_000) } };
}

/** A secret that a provider has. */
export function providedSecret(resource: string, provider: SecretProvider): SdsSecretConfig {
  const { cluster, authority } = provider;
  const envoyGrpc = { clusterName: cluster, ...(authority !== '' && { authority }) };
  return {
    name: providedName(resource, provider),
    sdsConfig: {
      apiConfigSource: {
        apiType: 'GRPC',
        grpcServices: [{ envoyGrpc }],
        setNodeOnFirstMessageOnly: true,
        transportApiVersion: 'V3',
      },
      resourceApiVersion: 'V3',
    },
  };
}

/**
 * In place of files that a proxy may not read. No proxy ever gets a secret with this name, so no connection of the
 * cluster succeeds.
 */
export const withheldSecret = clientSecret('withheld');

/** Whether a proxy may have to get a secret before it can use the cluster. Those of the workload itself it has. */
export function waitsForSecret({ transportSocket, transportSocketMatches = [] }: Cluster): boolean {
  return namesSecret([transportSocket, transportSocketMatches]);
}

function namesSecret(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return false;
  if ('sdsConfig' in value && 'name' in value) return value.name !== workloadCertificate && value.name !== meshRoots;
  return Object.values(value).some(namesSecret);
}

export function certificateFiles(certificate: string, key: string): string {
  return `file-cert:${certificate}~${key}`;
}

/** The roots of the operating system if no file is named. */
export function rootFile(path: string): string {
  return `file-root:${path === '' ? 'system' : path}`;
}

/** TLS as a client: 1.2 or 1.3, with the mesh's ciphers and curves if it names any. */
export function clientTlsParameters(defaults?: {
  readonly cipherSuites: readonly string[];
  readonly ecdhCurves: readonly string[];
}): TlsParameters {
  return {
    tlsMinimumProtocolVersion: 'TLSv1_2',
    tlsMaximumProtocolVersion: 'TLSv1_3',
    ...(defaults === undefined || defaults.cipherSuites.length === 0 ? {} : { cipherSuites: defaults.cipherSuites }),
    ...(defaults === undefined || defaults.ecdhCurves.length === 0 ? {} : { ecdhCurves: defaults.ecdhCurves }),
  };
}

const agentSource: ConfigSource = {
  apiConfigSource: {
    apiType: 'GRPC',
    grpcServices: [{ envoyGrpc: { clusterName: agentCluster } }],
    setNodeOnFirstMessageOnly: true,
    transportApiVersion: 'V3',
  },
  resourceApiVersion: 'V3',
};
