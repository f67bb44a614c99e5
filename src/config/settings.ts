import {
  Wrong,
  address,
  aliases,
  batch,
  certificateLifetime,
  dnsNames,
  duration,
  leaseDuration,
  matching,
  meshClusterName,
  namespace,
  objectName,
  oneOf,
  parseAddress,
  positive,
  ranges,
  text,
} from './parsers.ts';

export { Wrong };
export type { Address, Batch, LogFormat, LogLevel } from './parsers.ts';

interface Setting<T> {
  /** Stands for the value in the help. */
  readonly placeholder: string;
  readonly help: string;
  /** As text, like every value; empty for none. */
  readonly fallback: string;
  /** How the help prints the fallback, if not as the text itself. */
  readonly fallbackHelp?: string;
  readonly many?: true;
  readonly parse: (text: string) => T | Wrong;
}

/** In the order of the help. The flag is the name with dashes; the variable is the name in capitals after FAIRLEAD_. */
export const settings = {
  directory: {
    placeholder: 'path...',
    help: 'serve the objects in these directories or files, without a cluster',
    fallback: '',
    many: true,
    parse: text,
  },
  kubeconfig: {
    placeholder: 'file',
    help: 'how to reach the API server',
    fallback: '',
    fallbackHelp: '$KUBECONFIG, else the ServiceAccount of the Pod, else ~/.kube/config',
    parse: text,
  },
  context: {
    placeholder: 'name',
    help: 'context of the kubeconfig',
    fallback: '',
    fallbackHelp: 'its current context',
    parse: text,
  },
  grpcAddress: {
    placeholder: 'address|off',
    help: 'where proxies connect without proof of who they are (ADS, plaintext)',
    fallback: 'off',
    fallbackHelp: 'off; 127.0.0.1:15010 with --directory',
    parse: (value) => (value === 'off' ? 'off' : (parseAddress(value) ?? new Wrong('must be host:port, :port or off'))),
  },
  secureGrpcAddress: {
    placeholder: 'address',
    help: 'where proxies connect with certificates or tokens (ADS and the certificate authority, TLS)',
    fallback: ':15012',
    fallbackHelp: ':15012; 127.0.0.1:15012 with --directory',
    parse: address,
  },
  secureNames: {
    placeholder: 'name,...',
    help: 'DNS names in the certificate of the secure port',
    fallback: '',
    fallbackHelp: 'fairlead, istiod and istiod-REVISION in the root namespace',
    parse: dnsNames,
  },
  caDirectory: {
    placeholder: 'path',
    help: 'signing certificates and key, named as in the Secret cacerts',
    fallback: '',
    fallbackHelp: 'the Secrets cacerts, else istio-ca-secret; none with --directory',
    parse: text,
  },
  workloadCertificateLifetime: {
    placeholder: 'duration',
    help: 'how long the certificates of workloads are valid, unless their agents ask for something else (SECRET_TTL)',
    fallback: '24h',
    parse: certificateLifetime,
  },
  webhookAddress: {
    placeholder: 'address|off',
    help: 'where the API server asks about Pods and objects before it stores them (TLS)',
    fallback: 'off',
    parse: (value) => (value === 'off' ? 'off' : (parseAddress(value) ?? new Wrong('must be host:port, :port or off'))),
  },
  injectionDirectory: {
    placeholder: 'path',
    help: 'templates and values of injection, a mounted ConfigMap; read again when they change',
    fallback: '',
    fallbackHelp: 'none: no injection',
    parse: text,
  },
  injectionWebhook: {
    placeholder: 'name',
    help: 'MutatingWebhookConfiguration by which the API server asks about Pods; what it asks, and whom, is kept right',
    fallback: '',
    fallbackHelp: 'none',
    parse: objectName,
  },
  validationWebhook: {
    placeholder: 'name',
    help: 'ValidatingWebhookConfiguration by which it asks about objects; what it asks, and whom, is kept right',
    fallback: '',
    fallbackHelp: 'none',
    parse: objectName,
  },
  validationFailurePolicy: {
    placeholder: 'ignore|fail',
    help: 'fail: once validation is seen to work, have the API server refuse objects that nobody can validate',
    fallback: 'ignore',
    parse: oneOf('ignore', 'fail'),
  },
  healthAddress: {
    placeholder: 'address',
    help: 'where /ready, /healthz and /debug are served',
    fallback: ':8080',
    fallbackHelp: ':8080; 127.0.0.1:8080 with --directory',
    parse: address,
  },
  monitoringAddress: {
    placeholder: 'address',
    help: 'where /metrics, /version and /debug are served',
    fallback: ':15014',
    fallbackHelp: ':15014; 127.0.0.1:15014 with --directory',
    parse: address,
  },
  domainSuffix: {
    placeholder: 'domain',
    help: 'DNS domain of the cluster',
    fallback: 'cluster.local',
    parse: matching(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'must be a lower-case DNS name'),
  },
  rootNamespace: {
    placeholder: 'namespace',
    help: 'namespace of the mesh config and of mesh-wide rules',
    fallback: 'istio-system',
    parse: namespace,
  },
  clusterId: {
    placeholder: 'name',
    help: 'name of this cluster, as in the CLUSTER_ID of proxies',
    fallback: 'Kubernetes',
    parse: matching(/^[^/\s]{1,253}$/, 'must be a name without spaces or slashes'),
  },
  clusterAliases: {
    placeholder: 'name=cluster,...',
    help: 'other names of clusters, at most one of each: a proxy whose CLUSTER_ID is such a name is in that cluster',
    fallback: '',
    fallbackHelp: 'none',
    parse: aliases,
  },
  multiclusterServices: {
    placeholder: 'on|off',
    help: 'serve HOST.svc.clusterset.local as ServiceExports and ServiceImports say; other hosts of Services lead to the own cluster only, unless the mesh config says otherwise',
    fallback: 'off',
    parse: oneOf('on', 'off'),
  },
  revision: {
    placeholder: 'name',
    help: 'of the kinds of istio.io, use only objects labelled istio.io/rev=NAME or without that label',
    fallback: '',
    fallbackHelp: 'all objects',
    // Part of the name of a Lease.
    parse: matching(/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/, 'must be a name of lower-case letters, digits and dashes'),
  },
  defaultProxyNamespace: {
    placeholder: 'namespace',
    help: 'namespace of proxies whose node does not specify one',
    fallback: 'default',
    parse: namespace,
  },
  defaultProxyType: {
    placeholder: 'sidecar|router',
    help: 'type of proxies whose node does not specify one',
    fallback: 'sidecar',
    parse: oneOf('sidecar', 'router'),
  },
  gatewayScope: {
    placeholder: 'mesh|namespace',
    help: 'whether a router serves the Gateways of all namespaces or only those of its own',
    fallback: 'mesh',
    parse: oneOf('mesh', 'namespace'),
  },
  gatewaySecretGrants: {
    placeholder: 'on|off',
    help: 'on: a Gateway uses a Secret on routers of another namespace only if the Secret grants it (annotation fairlead.dev/gateways-from)',
    fallback: 'off',
    parse: oneOf('on', 'off'),
  },
  crossNamespaceFiles: {
    placeholder: 'on|off',
    help: 'whether DestinationRules and Gateways may name files in proxies of other namespaces than their own',
    fallback: 'off',
    parse: oneOf('on', 'off'),
  },
  batch: {
    placeholder: 'ms/ms',
    help: 'how long a change of config that follows another one, or of a Service or a policy, waits for more / longest wait of any change',
    fallback: '50ms/250ms',
    parse: batch,
  },
  maxStreams: {
    placeholder: 'number',
    help: 'maximum proxy streams on this replica, at most half of them from one address',
    fallback: '10000',
    parse: positive,
  },
  keepaliveMaxServerConnectionAge: {
    placeholder: 'duration|off',
    help: 'maximum age of a stream, give or take a tenth, so that proxies spread over replicas',
    fallback: '30m',
    parse: (value: string) => (value === 'off' ? Infinity : duration(value)),
  },
  shutdownDuration: {
    placeholder: 'duration',
    help: 'on SIGTERM, end the streams one by one over this time',
    fallback: '10s',
    parse: duration,
  },
  canaries: {
    placeholder: 'on|off',
    help: 'send what proxies may reject to one proxy of each version first, and take back what is rejected',
    fallback: 'on',
    parse: oneOf('on', 'off'),
  },
  jwksAllowedNetworks: {
    placeholder: 'range,...',
    help: 'addresses that are not public and from which the keys of token issuers may be fetched',
    fallback: '',
    fallbackHelp: 'none',
    parse: ranges,
  },
  statusWrites: {
    placeholder: 'on|off',
    help: 'write conditions to the status of objects',
    fallback: 'on',
    parse: oneOf('on', 'off'),
  },
  remoteKubeconfigs: {
    placeholder: 'directory',
    help: 'kubeconfigs of other clusters, one in each file; replaces the Secrets in the root namespace',
    fallback: '',
    fallbackHelp: 'none: Secrets labelled istio/multiCluster=true',
    parse: text,
  },
  insecureRemoteClusters: {
    placeholder: 'refuse|allow',
    help: 'what becomes of kubeconfigs of remote clusters whose API server need not prove who it is (plain HTTP, insecure-skip-tls-verify)',
    fallback: 'refuse',
    parse: oneOf('refuse', 'allow'),
  },
  clustermeshConfig: {
    placeholder: 'directory',
    help: "configuration of Cilium's ClusterMesh: a file for each other cluster, as in the Secret cilium-clustermesh",
    fallback: '',
    fallbackHelp: 'none',
    parse: text,
  },
  clustermeshName: {
    placeholder: 'name',
    help: 'name of this cluster in the ClusterMesh, as the cluster-name of its Cilium',
    fallback: '',
    fallbackHelp: 'none',
    parse: meshClusterName,
  },
  clustermeshId: {
    placeholder: 'number',
    help: 'id of this cluster in the ClusterMesh, as the cluster-id of its Cilium',
    fallback: '',
    fallbackHelp: 'none',
    parse: positive,
  },
  clustermeshMaxConnectedClusters: {
    placeholder: '255|511',
    help: 'how many clusters the ClusterMesh can have, as the max-connected-clusters of its Cilium',
    fallback: '255',
    parse: oneOf('255', '511'),
  },
  clustermeshImport: {
    placeholder: 'all|matching',
    help: 'which global services of other clusters of the ClusterMesh are served: all, or those that a Service here has the name of',
    fallback: 'matching',
    parse: oneOf('all', 'matching'),
  },
  clustermeshExport: {
    placeholder: 'file',
    help: 'configuration of a client of the etcd into which the global services of this cluster are written for the others',
    fallback: '',
    fallbackHelp: 'none: nothing is written',
    parse: text,
  },
  leaseName: {
    placeholder: 'name',
    help: 'Lease whose holder writes the status; a revision uses its own, NAME-REVISION',
    fallback: 'fairlead',
    parse: objectName,
  },
  leaseDuration: {
    placeholder: 'duration',
    help: 'how long a leader may go without renewing its Lease before another replica takes over; it renews every 2/15 of this, and steps down after 2/3',
    fallback: '15s',
    parse: leaseDuration,
  },
  leaseNamespace: {
    placeholder: 'namespace',
    help: 'namespace of the Lease, the same for all releases in a cluster',
    fallback: 'kube-system',
    parse: namespace,
  },
  logLevel: {
    placeholder: 'error|warn|info|debug',
    help: 'log level; logs go to standard error',
    fallback: 'info',
    parse: oneOf('error', 'warn', 'info', 'debug'),
  },
  logFormat: {
    placeholder: 'text|json',
    help: 'log format',
    fallback: 'text',
    parse: oneOf('text', 'json'),
  },
} satisfies Record<string, Setting<unknown>>;

export type SettingName = keyof typeof settings;
export type ValueOf<K extends SettingName> = Exclude<ReturnType<(typeof settings)[K]['parse']>, Wrong>;

export const settingNames = Object.keys(settings) as readonly SettingName[];

/** Settings that also matter without a server. */
export const meshSettingNames: readonly SettingName[] = [
  'domainSuffix',
  'rootNamespace',
  'clusterId',
  'clusterAliases',
  'multiclusterServices',
  'gatewayScope',
  'gatewaySecretGrants',
  'crossNamespaceFiles',
];
/** Settings that say where a cluster is. */
export const clusterSettingNames: readonly SettingName[] = ['kubeconfig', 'context', 'rootNamespace'];
/** Where objects come from. */
export const sourceSettingNames: readonly SettingName[] = ['directory', 'kubeconfig', 'context'];
export const proxySettingNames: readonly SettingName[] = ['defaultProxyNamespace', 'defaultProxyType'];

/** The flag of a setting on the command line, and what the help says about it. */
export function flagOf(name: SettingName): { readonly flags: string; readonly description: string } {
  const { placeholder, help, fallback, fallbackHelp }: Setting<unknown> = settings[name];
  const shown = fallbackHelp ?? fallback;
  const notes = [...(shown === '' ? [] : [`default: ${shown}`]), `env: ${variableName(name)}`];
  return { flags: `${flagName(name)} <${placeholder}>`, description: `${help} (${notes.join('; ')})` };
}

export function flagName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function variableName(name: string): string {
  return `FAIRLEAD_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}
