import type { Values } from './placeholders.ts';

/**
 * What a template may refer to as `${name}`: all of it. Each has what it stands for, for the documentation, and an
 * example with which templates are tried when they are loaded.
 */
export const valueTable = {
  image: ['image of the proxy', 'registry.example.com/fairlead-proxy:1.0'],
  imagePullPolicy: ['its pull policy', 'IfNotPresent'],
  imagePullSecrets: ['list of secrets that pull it', [{ name: 'registry' }]],
  resources: ["resources of the proxy: those of the annotations, or else the chart's", { requests: { cpu: '100m' } }],
  initResources: ['resources of the container that sets up interception', { requests: { cpu: '10m' } }],
  interceptionArgs: ['list of arguments for `fairlead intercept`', ['-p', '15001']],
  interceptionMode: ['REDIRECT or NONE', 'REDIRECT'],
  logArgs: ['list of arguments that set log levels', ['--proxy-log-level', 'warning']],
  proxyConfig: ["the Pod's ProxyConfig as JSON, without defaults", '{}'],
  proxyEnv: [
    'list of variables: proxyMetadata, and what the URL of the webhook says, without [those that choose code](#settings-of-proxies)',
    [{ name: 'A', value: 'b' }],
  ],
  discoveryAddress: ['where the proxy finds the control plane', 'fairlead.istio-system.svc:15012'],
  plaintextAddress: [
    'where gRPC finds the control plane without an agent (`plaintext.enabled` of the chart)',
    'fairlead.istio-system.svc:15010',
  ],
  caAddress: ['where the agent gets certificates', 'fairlead.istio-system.svc:15012'],
  clusterId: ['name of the cluster', 'Kubernetes'],
  network: ['network of the Pod, if it has a name', 'network-1'],
  meshId: ['name of the mesh', 'cluster.local'],
  trustDomain: ['trust domain of the mesh', 'cluster.local'],
  domainSuffix: ['DNS domain of the cluster', 'cluster.local'],
  revision: ['revision of the control plane, or default', 'default'],
  workloadName: ['name of the workload that the Pod belongs to', 'cart'],
  owner: ['the workload as a path of the API', 'kubernetes://apis/apps/v1/namespaces/shop/deployments/cart'],
  canonicalName: ['name of the service in metrics', 'cart'],
  canonicalRevision: ['its version in metrics', 'latest'],
  podPorts: ['ports of the containers as JSON', '[]'],
  appContainers: ['names of the containers, with commas between them', 'cart'],
  defaultContainer: ['name of the first container', 'cart'],
  statusPort: ['port of the agent', 15020],
  readinessInitialDelaySeconds: ['of the readiness probe', 1],
  readinessPeriodSeconds: ['of the readiness probe', 15],
  readinessFailureThreshold: ['of the readiness probe', 4],
  startupProbe: [
    'startup probe of the proxy, unless it is turned off',
    { httpGet: { port: 15021 }, failureThreshold: 600 },
  ],
  lifecycle: ['hooks of the proxy, if the chart has any', { preStop: { exec: { command: ['sleep', '5'] } } }],
  bootstrapFile: [
    "file that overrides parts of the proxy's bootstrap, if there is one",
    '/etc/istio/custom-bootstrap/custom_bootstrap.json',
  ],
  userVolumes: ['list of volumes from the annotation sidecar.istio.io/userVolume', [{ name: 'cache', emptyDir: {} }]],
  userVolumeMounts: ['list of mounts from sidecar.istio.io/userVolumeMount', [{ name: 'cache', mountPath: '/cache' }]],
  addedCapabilities: ['list of capabilities that the proxy needs', ['NET_BIND_SERVICE']],
} as const satisfies Record<string, readonly [meaning: string, example: unknown]>;

export type ValueName = keyof typeof valueTable;

/** Values for one Pod. */
export type PodValues = Readonly<Record<ValueName, unknown>>;

export const exampleValues: Values = Object.fromEntries(
  Object.entries(valueTable).map(([name, [, value]]) => [name, value]),
);

export function isValueName(name: string): name is ValueName {
  return Object.hasOwn(valueTable, name);
}
