import { type Json, isObject } from '../api/json.ts';
import { defaultInterception } from '../interception/options.ts';
import type { Read } from '../interception/option-values.ts';
import { type Annotations, readAgentLevel } from './annotations.ts';
import { quote } from '../api/quote.ts';
import type { InjectionConfig, ProxySettings } from './configuration.ts';
import type { InjectionRequest } from './request.ts';
import { PROXY, type Texts, listIn, metadataOf, nameOf, objectIn, specOf, textIn, textsIn } from './pod.ts';
import {
  mergeProxyConfigs,
  remarksOnFields,
  remarksOnShadowed,
  settingsOf,
  variablesOf,
  wrongIn,
} from './proxy-config.ts';
import { proxyResources } from './resources.ts';
import { argsOfVariables, interceptionArgs } from './traffic.ts';
import type { PodValues } from './template-values.ts';
import { type Workload, asLabel, ownerPath, workloadOf } from './workload.ts';

/** How one Pod's proxy is to be: what its templates refer to, and what cannot be said by a template. */
export interface Settled {
  readonly values: PodValues;
  /** 0: the agent answers no probes. */
  readonly statusPort: number;
  /** Where the proxy takes outgoing and incoming connections that are intercepted. */
  readonly outboundPort: number;
  readonly inboundPort: number;
  /** Of the proxy, for its administration. */
  readonly adminPort: number;
  /** Where the agent listens. */
  readonly agentPort: number;
  readonly intercepts: boolean;
  readonly dns: boolean;
  readonly native: boolean;
  /** Whether applications wait for the proxy. */
  readonly hold: boolean;
  readonly rewriteProbes: boolean;
  readonly mergeMetrics: boolean;
  /** What was asked for and cannot be had. */
  readonly warnings: readonly string[];
}

export const DEFAULT_STATUS_PORT = 15020;
const DEFAULT_ADMIN_PORT = 15000;

const BOOTSTRAP = { volume: 'custom-bootstrap-volume', directory: '/etc/istio/custom-bootstrap' } as const;

export function settle(
  pod: Json,
  annotations: Annotations,
  { namespace, meshConfig, proxyConfigsOf, parameters, workload: given }: InjectionRequest,
  { proxy, rules, nativeSidecars, rewriteProbes }: InjectionConfig,
): Read<Settled> {
  const defaultConfig = objectIn(meshConfig, 'defaultConfig');
  const wrong = wrongIn(defaultConfig);
  if (wrong !== undefined) return { wrong: `mesh config: defaultConfig: ${wrong}` };
  const resources = proxyResources(annotations, proxy.resources);
  if ('wrong' in resources) return resources;

  const labels = textsIn(metadataOf(pod), 'labels');
  const proxyConfigs = proxyConfigsOf?.(labels) ?? { shadowed: [] };
  const address = annotations['sidecar.istio.io/discoveryAddress'];
  const port = annotations['status.sidecar.istio.io/port'];
  const { image: variant, ...merged } = mergeProxyConfigs([
    { discoveryAddress: proxy.discoveryAddress },
    defaultConfig,
    settingsOf(proxyConfigs.mesh),
    settingsOf(proxyConfigs.namespace),
    annotations['proxy.istio.io/config'] ?? {},
    settingsOf(proxyConfigs.workload),
    {
      ...(address !== undefined && { discoveryAddress: address }),
      // 0 is about probes alone: the agent has a port.
      ...(port !== undefined && port !== 0 && { statusPort: port }),
    },
  ]);
  const { proxyMetadata, given: ofUrl, warnings } = variablesOf(merged, parameters.env);
  const config = merged['proxyMetadata'] === undefined ? merged : { ...merged, proxyMetadata };
  const more = argsOfVariables({ ...proxyMetadata, ...ofUrl });
  if ('wrong' in more) return more;
  const image = imageOf(annotations, isObject(variant) ? textIn(variant, 'imageType') : '', proxy);
  const containers = listIn(specOf(pod), 'containers').filter((each) => nameOf(each) !== PROXY);
  const agentPort = numberIn(config, 'statusPort') ?? DEFAULT_STATUS_PORT;
  const statusPort = port === 0 ? 0 : agentPort;
  const outboundPort = numberIn(meshConfig, 'proxyListenPort') ?? defaultInterception.outboundPort;
  const inboundPort = numberIn(meshConfig, 'proxyInboundListenPort') ?? defaultInterception.inboundPort;
  const mode = annotations['sidecar.istio.io/interceptionMode'] ?? (textIn(config, 'interceptionMode') || 'REDIRECT');
  const dns = proxyMetadata['ISTIO_META_DNS_CAPTURE'] === 'true';
  const trustDomain = textIn(meshConfig, 'trustDomain') || 'cluster.local';
  const discoveryAddress = textIn(config, 'discoveryAddress');
  const network = labels['topology.istio.io/network'] || parameters.network || proxy.network;
  const seconds = (name: 'initialDelaySeconds' | 'periodSeconds' | 'failureThreshold'): number | undefined =>
    annotations[`readiness.status.sidecar.istio.io/${name}`];
  const isLocal = objectIn(meshConfig, 'inboundTrafficPolicy')['mode'] === 'LOCALHOST';

  const values: PodValues = {
    image: image.name,
    imagePullPolicy: proxy.imagePullPolicy || undefined,
    imagePullSecrets: proxy.imagePullSecrets,
    resources: resources.value,
    initResources: proxy.initResources,
    interceptionArgs: interceptionArgs({
      annotations,
      settings: proxy,
      outboundPort,
      inboundPort,
      statusPort: agentPort,
      dns,
      mode,
      more: more.value,
    }),
    interceptionMode: mode,
    logArgs: logArgsOf(annotations, proxy),
    proxyConfig: JSON.stringify(config),
    proxyEnv: variables({
      ...(isLocal && { REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: 'true' }),
      ...proxyMetadata,
      ...ofUrl,
    }),
    discoveryAddress,
    plaintextAddress: discoveryAddress.replace(/:\d+$/, ':15010'),
    caAddress: proxy.caAddress || discoveryAddress,
    clusterId: parameters.cluster || proxy.clusterId,
    network: network || undefined,
    meshId: textIn(config, 'meshId') || proxy.meshId || trustDomain,
    trustDomain,
    domainSuffix: proxy.domainSuffix,
    revision: rules.revision || 'default',
    ...namesOf(given ?? workloadOf(pod), labels, namespace.name),
    podPorts: JSON.stringify(containers.flatMap((each) => listIn(each, 'ports').map(portOf))),
    appContainers: containers.map(nameOf).join(',') || undefined,
    defaultContainer: nameOf(containers[0] ?? {}) || undefined,
    statusPort,
    readinessInitialDelaySeconds: seconds('initialDelaySeconds') ?? (proxy.readinessInitialDelaySeconds || undefined),
    readinessPeriodSeconds: seconds('periodSeconds') ?? proxy.readinessPeriodSeconds,
    readinessFailureThreshold: seconds('failureThreshold') ?? proxy.readinessFailureThreshold,
    startupProbe: proxy.startupProbe.enabled ? startupProbe(proxy.startupProbe.failureThreshold) : undefined,
    lifecycle: Object.keys(proxy.lifecycle).length > 0 ? proxy.lifecycle : undefined,
    ...volumesOf(annotations),
    addedCapabilities: annotations['sidecar.istio.io/capNetBindService'] === true ? ['NET_BIND_SERVICE'] : undefined,
  };
  return {
    value: {
      values,
      statusPort,
      outboundPort,
      inboundPort,
      adminPort: numberIn(config, 'proxyAdminPort') ?? DEFAULT_ADMIN_PORT,
      agentPort,
      intercepts: mode !== 'NONE',
      dns,
      native: annotations['sidecar.istio.io/nativeSidecar'] ?? nativeSidecars,
      hold: config['holdApplicationUntilProxyStarts'] === true,
      rewriteProbes: annotations['sidecar.istio.io/rewriteAppHTTPProbers'] ?? rewriteProbes,
      warnings: [
        ...image.warnings,
        ...warnings,
        ...remarksOnShadowed(proxyConfigs),
        ...remarksOnFields(annotations['proxy.istio.io/config'] ?? {}),
      ],
      mergeMetrics: annotations['prometheus.istio.io/merge-metrics'] ?? meshConfig['enablePrometheusMerge'] !== false,
    },
  };
}

/** The annotation names an image, or else the type of one, as the ProxyConfig does. */
function startupProbe(failureThreshold: number): Json {
  return { httpGet: { path: '/healthz/ready', port: 15021 }, periodSeconds: 1, timeoutSeconds: 3, failureThreshold };
}

function imageOf(
  annotations: Annotations,
  variant: string,
  { image, imageTypes }: ProxySettings,
): { readonly name: string; readonly warnings: readonly string[] } {
  const own = annotations['sidecar.istio.io/proxyImage'];
  const wanted = annotations['sidecar.istio.io/proxyImageType'];
  const type = wanted ?? variant;
  if (own !== undefined)
    return {
      name: own,
      warnings:
        wanted === undefined
          ? []
          : ['annotation sidecar.istio.io/proxyImageType has no effect beside sidecar.istio.io/proxyImage'],
    };
  if (type === '' || type === 'default') return { name: image, warnings: [] };
  const typed = Object.hasOwn(imageTypes, type) ? imageTypes[type] : undefined;
  if (typed !== undefined) return { name: typed, warnings: [] };
  const known = Object.keys(imageTypes).sort().join(', ');
  const hint = known === '' ? 'proxy.imageTypes of the chart has none' : `proxy.imageTypes of the chart has ${known}`;
  return {
    name: image,
    warnings: [`there is no image of the type ${quote(type)} (${hint}), and it gets the usual one`],
  };
}

function logArgsOf(annotations: Annotations, proxy: ProxySettings): string[] {
  const {
    'sidecar.istio.io/logLevel': level = proxy.logLevel,
    'sidecar.istio.io/componentLogLevel': componentLevel = proxy.componentLogLevel,
    'sidecar.istio.io/agentLogLevel': agentLevel = agentLevelOf(proxy.agentLogLevel),
  } = annotations;
  return [
    ...flag('--proxy-log-level', level),
    ...flag('--proxy-component-log-level', componentLevel),
    ...flag('--log-level', agentLevel),
  ];
}

/** How the proxy names what it runs beside. */
function namesOf(
  workload: Workload,
  labels: Texts,
  namespace: string,
): Pick<PodValues, 'workloadName' | 'owner' | 'canonicalName' | 'canonicalRevision'> {
  return {
    workloadName: workload.name,
    owner: workload.kind === 'Pod' ? undefined : ownerPath(workload, namespace),
    canonicalName:
      labels['service.istio.io/canonical-name'] ||
      labels['app.kubernetes.io/name'] ||
      labels['app'] ||
      asLabel(workload.name) ||
      undefined,
    canonicalRevision:
      labels['service.istio.io/canonical-revision'] ||
      labels['app.kubernetes.io/version'] ||
      labels['version'] ||
      'latest',
  };
}

/** The user's volumes, with the ConfigMap of a bootstrap among them. */
function volumesOf(annotations: Annotations): Pick<PodValues, 'bootstrapFile' | 'userVolumes' | 'userVolumeMounts'> {
  const {
    'sidecar.istio.io/userVolume': userVolumes = [],
    'sidecar.istio.io/userVolumeMount': userVolumeMounts = [],
    'sidecar.istio.io/bootstrapOverride': configMap,
  } = annotations;
  if (configMap === undefined) return { bootstrapFile: undefined, userVolumes, userVolumeMounts };
  const { volume: name, directory } = BOOTSTRAP;
  return {
    bootstrapFile: `${directory}/custom_bootstrap.json`,
    userVolumes: [...userVolumes, { name, configMap: { name: configMap } }],
    userVolumeMounts: [...userVolumeMounts, { name, mountPath: directory, readOnly: true }],
  };
}

/** Of settings that have been checked. */
function agentLevelOf(text = ''): string | undefined {
  const read = readAgentLevel(text);
  return 'value' in read ? read.value : undefined;
}

function flag(name: string, value: string | undefined): string[] {
  return value ? [name, value] : [];
}

function variables(texts: Readonly<Record<string, string>>): Json[] {
  return Object.entries(texts).map(([name, value]) => ({ name, value }));
}

/** As it is after the API server has added defaults. */
function portOf({ name, containerPort, protocol = 'TCP' }: Json): Json {
  return { ...(name !== undefined && { name }), containerPort, protocol };
}

function numberIn(value: Json, name: string): number | undefined {
  const member = value[name];
  return typeof member === 'number' ? member : undefined;
}
