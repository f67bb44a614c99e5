import { type MeshCluster, clusterIdProblem } from '../clustermesh/names.ts';
import { type Address, type Batch, type LogFormat, type LogLevel, flagName } from './settings.ts';
import { ConfigError, type Origins, Values } from './setting-values.ts';

/** Cilium's ClusterMesh. */
export interface ClusterMeshConfig {
  /** This cluster. */
  readonly own: MeshCluster;
  /** A file for each cluster that is read; absent: none is. */
  readonly directory?: string;
  /** Serve what no Service here has the name of, too. */
  readonly importsServices: boolean;
  /** How to reach the etcd that the other clusters read; absent: nothing is written. */
  readonly exportFile?: string;
}

/** Everything that `fairlead serve` can be told: one frozen value, read once at the start. */
export interface Config {
  readonly source: SourceConfig;
  /** Where clients are believed; absent: nowhere. */
  readonly grpcAddress?: Address;
  /** Where clients prove who they are; absent: there is no authority. */
  readonly secure: SecureConfig | undefined;
  /** Where the API server asks before it stores objects; absent: nowhere. */
  readonly webhooks?: WebhookConfig;
  readonly healthAddress: Address;
  readonly monitoringAddress: Address;
  readonly mesh: MeshSettings;
  /** Objects of other revisions are left to others; if absent, all objects are ours. */
  readonly revision?: string;
  readonly batch: Batch;
  /** What proxies may reject goes to one proxy of each build first. */
  readonly canaries: boolean;
  readonly streams: {
    readonly most: number;
    /** Milliseconds; infinite if they may stay forever. */
    readonly maxAge: number;
    /** Milliseconds within which all streams end when the process is told to end. */
    readonly shutdown: number;
  };
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
  /** Ranges of addresses from which keys of token issuers may be fetched although they are not public. */
  readonly jwksAllowedNetworks: readonly string[];
  readonly lease: {
    readonly name: string;
    readonly namespace: string;
    /** Milliseconds. */
    readonly duration: number;
  };
  readonly statusWrites: boolean;
  /** Where kubeconfigs of remote clusters are, if not in Secrets. */
  readonly remoteKubeconfigs?: string;
  /** Absent: this cluster is in no ClusterMesh, as far as Fairlead is concerned. */
  readonly clusterMesh?: ClusterMeshConfig;
  /** Kubeconfigs of remote clusters may say that their server need not prove who it is. */
  readonly insecureRemoteClusters: boolean;
}

/** The port for proxies with certificates or tokens. */
export interface SecureConfig {
  readonly address: Address;
  /** DNS names in its certificate. */
  readonly names: readonly string[];
  /** Of workloads that request none in particular; milliseconds. */
  readonly certificateLifetime: number;
  /** Where the signing certificates are, if not in Secrets. */
  readonly caDirectory?: string;
}

/** The port for API servers, and what is served there beside validation. */
export interface WebhookConfig {
  readonly address: Address;
  /** Templates and values; absent: no injection. */
  readonly injectionDirectory?: string;
  /** Names of the configurations that tell the API server about us; absent: somebody else keeps the roots in them. */
  readonly configurations: { readonly injection?: string; readonly validation?: string };
  /** Nothing is to be stored while nobody can validate it. */
  readonly failClosed: boolean;
}

/** Decides how objects are understood, also without a server. */
export interface MeshSettings {
  readonly domainSuffix: string;
  readonly rootNamespace: string;
  readonly clusterId: string;
  readonly clusterAliases: Readonly<Record<string, string>>;
  readonly multiclusterServices: boolean;
  readonly gatewayScope: 'mesh' | 'namespace';
  readonly gatewaySecretGrants: boolean;
  readonly crossNamespaceFiles: boolean;
  readonly defaultProxyNamespace: string;
  readonly defaultProxyType: 'sidecar' | 'router';
}

export type SourceConfig =
  | { readonly kind: 'kubernetes'; readonly kubeconfig?: string; readonly context?: string }
  | { readonly kind: 'directory'; readonly paths: readonly string[] };

type AddressName = 'secureGrpcAddress' | 'healthAddress' | 'monitoringAddress';
const LOOPBACK = '127.0.0.1';

/** Everything for `fairlead serve`. Throws a {@link ConfigError}. */
export function readConfig(origins: Origins): Config {
  const values = new Values(origins);
  const source = sourceOf(values);
  const isDirectory = source.kind === 'directory';
  const revision = values.optional('revision');
  const mesh = meshOf(values);
  const address = (name: AddressName): Address => {
    const { port } = values.one(name);
    // A directory has no tenants: its proxies are on this machine unless an address says otherwise.
    return values.optional(name) ?? (isDirectory ? { host: LOOPBACK, port } : values.one(name));
  };
  const grpcAddress = values.optional('grpcAddress') ?? (isDirectory ? { host: LOOPBACK, port: 15010 } : 'off');
  return deepFreeze({
    source,
    ...(grpcAddress === 'off' ? {} : { grpcAddress }),
    secure: secureOf(values, isDirectory, address('secureGrpcAddress')),
    ...webhooksOf(values, isDirectory),
    healthAddress: address('healthAddress'),
    monitoringAddress: address('monitoringAddress'),
    mesh,
    ...(revision === undefined ? {} : { revision }),
    batch: values.one('batch'),
    streams: {
      most: values.one('maxStreams'),
      maxAge: values.one('keepaliveMaxServerConnectionAge'),
      shutdown: values.one('shutdownDuration'),
    },
    canaries: values.one('canaries') === 'on',
    log: { level: values.one('logLevel'), format: values.one('logFormat') },
    jwksAllowedNetworks: values.one('jwksAllowedNetworks'),
    lease: {
      name: values.one('leaseName'),
      namespace: values.one('leaseNamespace'),
      duration: values.one('leaseDuration'),
    },
    statusWrites: values.one('statusWrites') === 'on',
    ...remoteKubeconfigsOf(values),
    ...clusterMeshOf(values, isDirectory),
    insecureRemoteClusters: values.one('insecureRemoteClusters') === 'allow',
  });
}

/** Without an API server and without files there is no authority. */
function secureOf(values: Values, isDirectory: boolean, address: Address): SecureConfig | undefined {
  const caDirectory = values.one('caDirectory');
  if (isDirectory && caDirectory === '') return undefined;
  const names = values.one('secureNames');
  const revision = values.optional('revision');
  const services = ['fairlead', 'istiod', ...(revision === undefined ? [] : [`istiod-${revision}`])];
  const namespace = values.one('rootNamespace');
  return {
    address,
    names: names.length > 0 ? names : services.map((service) => `${service}.${namespace}.svc`),
    certificateLifetime: values.one('workloadCertificateLifetime'),
    ...(caDirectory === '' ? {} : { caDirectory }),
  };
}

function remoteKubeconfigsOf(values: Values): Pick<Config, 'remoteKubeconfigs'> {
  const directory = values.one('remoteKubeconfigs');
  return directory === '' ? {} : { remoteKubeconfigs: directory };
}

function clusterMeshOf(values: Values, isDirectory: boolean): Pick<Config, 'clusterMesh'> {
  const directory = values.optional('clustermeshConfig');
  const exportFile = values.optional('clustermeshExport');
  if (directory === undefined && exportFile === undefined) return {};
  const wants = directory === undefined ? 'clustermeshExport' : 'clustermeshConfig';
  const name = values.optional('clustermeshName');
  const id = values.optional('clustermeshId');
  if (name === undefined || id === undefined)
    throw new ConfigError(
      `${values.origin(wants)} requires ${flagName('clustermeshName')} and ${flagName('clustermeshId')}`,
    );
  const limit = values.one('clustermeshMaxConnectedClusters') === '511' ? 511 : 255;
  const problem = clusterIdProblem(id, limit);
  if (problem !== undefined) throw new ConfigError(`${values.origin('clustermeshId')}: ${problem}`);
  // One replica writes: the leader.
  if (exportFile !== undefined && isDirectory)
    throw new ConfigError(`${values.origin('clustermeshExport')} and ${values.origin('directory')} cannot be combined`);
  if (exportFile !== undefined && values.one('statusWrites') === 'off')
    throw new ConfigError(`${values.origin('clustermeshExport')} needs ${flagName('statusWrites')} on`);
  return {
    clusterMesh: {
      own: { name, id, limit },
      ...(directory === undefined ? {} : { directory }),
      importsServices: values.one('clustermeshImport') === 'all',
      ...(exportFile === undefined ? {} : { exportFile }),
    },
  };
}

/** A directory has no API server. */
function webhooksOf(values: Values, isDirectory: boolean): Pick<Config, 'webhooks'> {
  const address = values.one('webhookAddress');
  if (address === 'off') return {};
  if (isDirectory)
    throw new ConfigError(`${values.origin('webhookAddress')} and ${values.origin('directory')} cannot be combined`);
  const injectionDirectory = values.one('injectionDirectory');
  const injection = values.optional('injectionWebhook');
  const validation = values.optional('validationWebhook');
  return {
    webhooks: {
      address,
      ...(injectionDirectory === '' ? {} : { injectionDirectory }),
      configurations: {
        ...(injection === undefined ? {} : { injection }),
        ...(validation === undefined ? {} : { validation }),
      },
      failClosed: values.one('validationFailurePolicy') === 'fail',
    },
  };
}

/** How to reach a cluster, for commands that look into one. */
export interface ClusterSettings {
  readonly source: Extract<SourceConfig, { readonly kind: 'kubernetes' }>;
  readonly rootNamespace: string;
}

/** Throws a {@link ConfigError}. */
export function readClusterSettings(origins: Origins): ClusterSettings {
  const values = new Values(origins);
  return deepFreeze({ source: clusterOf(values), rootNamespace: values.one('rootNamespace') });
}

function clusterOf(values: Values): ClusterSettings['source'] {
  const kubeconfig = values.optional('kubeconfig');
  const context = values.optional('context');
  return {
    kind: 'kubernetes',
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  };
}

/** Settings for commands without a server. Throws a {@link ConfigError}. */
export function readMeshSettings(origins: Origins): MeshSettings {
  return deepFreeze(meshOf(new Values(origins)));
}

/** Settings for commands that read a cluster or a directory, and then end. Throws a {@link ConfigError}. */
export function readAccessSettings(origins: Origins): Pick<Config, 'source' | 'mesh' | 'jwksAllowedNetworks'> {
  const values = new Values(origins);
  return deepFreeze({
    source: sourceOf(values),
    mesh: meshOf(values),
    jwksAllowedNetworks: values.one('jwksAllowedNetworks'),
  });
}

function sourceOf(values: Values): SourceConfig {
  const paths = values.all('directory');
  const kubeconfig = values.optional('kubeconfig');
  const context = values.optional('context');
  if (paths.length > 0 && (kubeconfig ?? context) !== undefined) {
    const other = kubeconfig === undefined ? 'context' : 'kubeconfig';
    throw new ConfigError(`${values.origin('directory')} and ${values.origin(other)} cannot be combined`);
  }
  return paths.length > 0 ? { kind: 'directory', paths } : clusterOf(values);
}

function meshOf(values: Values): MeshSettings {
  return {
    domainSuffix: values.one('domainSuffix'),
    rootNamespace: values.one('rootNamespace'),
    clusterId: values.one('clusterId'),
    clusterAliases: values.one('clusterAliases'),
    multiclusterServices: values.one('multiclusterServices') === 'on',
    gatewayScope: values.one('gatewayScope'),
    gatewaySecretGrants: values.one('gatewaySecretGrants') === 'on',
    crossNamespaceFiles: values.one('crossNamespaceFiles') === 'on',
    defaultProxyNamespace: values.one('defaultProxyNamespace'),
    defaultProxyType: values.one('defaultProxyType'),
  };
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
