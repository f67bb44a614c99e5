import { isObject } from '../../api/json.ts';
import { choosesCode, codeNotChosen } from '../../api/proxy-variables.ts';
import type { Field, Findings } from '../field.ts';

/** Fields that Fairlead acts on; a list names the members that it acts on. */
const SUPPORTED: Readonly<Record<string, readonly string[] | true>> = {
  rootNamespace: true,
  trustDomain: true,
  trustDomainAliases: true,
  extensionProviders: true,
  defaultServiceExportTo: true,
  defaultVirtualServiceExportTo: true,
  defaultDestinationRuleExportTo: true,
  serviceSettings: true,
  discoverySelectors: true,
  connectTimeout: true,
  dnsRefreshRate: true,
  enableAutoMtls: true,
  h2UpgradePolicy: true,
  inboundTrafficPolicy: ['mode'],
  outboundTrafficPolicy: ['mode'],
  tcpKeepalive: ['probes', 'time', 'interval'],
  tlsDefaults: ['cipherSuites', 'ecdhCurves', 'minProtocolVersion'],
  meshMTLS: ['minProtocolVersion', 'cipherSuites', 'ecdhCurves'],
  defaultTrafficPolicy: ['connectionPool', 'outlierDetection'],
  localityLbSetting: ['enabled', 'distribute', 'failover', 'failoverPriority'],
  outboundClusterStatName: true,
  inboundClusterStatName: true,
  defaultHttpRetryPolicy: [
    'attempts',
    'perTryTimeout',
    'retryOn',
    'retryRemoteLocalities',
    'retryIgnorePreviousHosts',
    'backoff',
  ],
  proxyListenPort: true,
  proxyInboundListenPort: true,
  proxyHttpPort: true,
  protocolDetectionTimeout: true,
  pathNormalization: ['normalization'],
  accessLogFile: true,
  accessLogFormat: true,
  accessLogEncoding: true,
  disableEnvoyListenerLog: true,
  enableTracing: true,
};

/** Members of `defaultConfig` that change what proxies receive; the others are for the agent and the injector. */
const DEFAULT_CONFIG: Readonly<Record<string, readonly string[]>> = {
  gatewayTopology: ['numTrustedProxies', 'forwardClientCertDetails', 'proxyProtocol'],
  proxyHeaders: [],
  connectionSettings: [],
};

/** Fields for components other than the control plane: the injector, the agent, the certificate authority, Ingress. */
const NOT_OURS: readonly string[] = [
  'ca',
  'caCertificates',
  'certificates',
  'configSources',
  'defaultConfig',
  'defaultProviders',
  'enablePrometheusMerge',
  'ingressClass',
  'ingressControllerMode',
  'ingressSelector',
  'ingressService',
];

/** Reports each field that nothing acts on, once. */
export function reportUnknownMeshFields(mesh: Field, findings: Findings): void {
  for (const [name, field] of mesh.isSet ? mesh.entries() : []) {
    if (name === 'defaultConfig') {
      reportMembers(findings, field, name, DEFAULT_CONFIG);
      reportVariables(findings, field.get('proxyMetadata'));
    }
    // Metrics need a filter that only istio-proxy has; leaving them out was decided along with the proxy.
    if (name === 'defaultProviders') reportMembers(findings, field, name, { accessLogging: [], tracing: [] });
    if (!field.isSet || NOT_OURS.includes(name)) continue;
    const members = Object.hasOwn(SUPPORTED, name) ? SUPPORTED[name] : undefined;
    if (members === true) continue;
    if (members === undefined) unsupported(findings, name);
    else
      for (const [member] of field.entries()) if (!members.includes(member)) unsupported(findings, `${name}.${member}`);
  }
}

function reportMembers(
  findings: Findings,
  field: Field,
  path: string,
  supported: Readonly<Record<string, readonly string[]>>,
): void {
  for (const [name, members] of Object.entries(supported)) {
    const member = field.get(name);
    if (members.length === 0 && member.isSet) unsupported(findings, `${path}.${name}`);
    else if (member.isSet)
      for (const [inner] of member.entries())
        if (!members.includes(inner)) unsupported(findings, `${path}.${name}.${inner}`);
  }
}

function reportVariables({ object, found }: Findings, variables: Field): void {
  for (const name of isObject(variables.value) ? Object.keys(variables.value) : [])
    if (choosesCode(name))
      found.add({
        object,
        field: `defaultConfig.proxyMetadata.${name}`,
        reason: 'Ineffective',
        message: codeNotChosen,
      });
}

function unsupported({ object, found }: Findings, field: string): void {
  const message = 'This field of the mesh config is not supported yet and has no effect.';
  found.add({ object, field, reason: 'UnsupportedField', message });
}
