import type { UnsupportedField } from './unsupported-field.ts';

/** Fields of the mesh config and of MeshNetworks that are accepted but have no effect. */
export const unsupportedMeshFields: readonly UnsupportedField[] = [
  ...mesh('Ingress objects are not read. Use Gateways and VirtualServices.', [
    ...['ingressClass', 'ingressSelector', 'ingressService'],
  ]),
  ...['DEFAULT', 'STRICT'].map((value): UnsupportedField => ({
    kind: 'MeshConfig',
    field: 'mesh.ingressControllerMode',
    value,
    note: 'Ingress objects are not read. Use Gateways and VirtualServices.',
  })),
  ...mesh('Objects are read from API servers, or from the files of --directory.', ['configSources']),
  ...mesh("Proxies trust the roots of Fairlead's authority, and those in defaultConfig.caCertificatesPem.", [
    'caCertificates',
  ]),
  ...mesh('Fairlead signs with its own authority.', ['ca', 'certificates']),
  ...mesh('DestinationRules say how certificates of servers are verified.', ['verifyCertificateAtClient']),
  ...mesh("Envoy's own metrics are at port 15020 of each Pod.", ['defaultProviders.metrics']),
  ...mesh('Set accessLogFile.', ['defaultProviders.accessLogging', 'enableEnvoyAccessLogService']),
  ...mesh('Set defaultConfig.tracing.', ['defaultProviders.tracing']),
  ...mesh(
    'Set defaultConfig.tracing.',
    providers('zipkin', 'lightstep', 'datadog', 'opencensus', 'skywalking', 'opentelemetry'),
  ),
  ...mesh('Set accessLogFile.', providers('envoyFileAccessLog', 'envoyHttpAls', 'envoyTcpAls', 'envoyOtelAls')),
  ...mesh("Envoy's own metrics are at port 15020 of each Pod.", providers('prometheus', 'stackdriver')),
  ...mesh('Use localityLbSetting.', ['zoneAwareLbSetting']),
  ...mesh('There is no ambient mode.', ['hboneIdleTimeout', 'serviceScopeConfigs']),
  ...mesh('exportTo says who sees a ServiceEntry; its default is defaultServiceExportTo.', ['serviceEntryVisibility']),
  ...mesh('Name files: until then, no request to a host that nobody knows succeeds.', [
    ...['outboundTrafficPolicy.tls.credentialName', 'outboundTrafficPolicy.tls.caCertCredentialName'],
  ]),
  ...mesh('Use consecutive5xxErrors, or consecutiveGatewayErrors for 502, 503 and 504 alone.', [
    'defaultTrafficPolicy.outlierDetection.consecutiveErrors',
  ]).map((field): UnsupportedField => ({ ...field, isDeprecated: true })),
  ...proxies('Limits and timeouts of connections are those of Istio without it.', 'connectionSettings'),
  ...proxies(
    "Headers are those of Istio's defaults.",
    ...[
      ...['setCurrentClientCertDetails', 'requestId', 'server', 'attemptCount', 'envoyDebugHeaders'],
      ...['metadataExchangeHeaders', 'xForwardedHost', 'xForwardedPort'],
    ].map((name) => `proxyHeaders.${name}`),
  ),
  ...proxies('Use gatewayTopology.forwardClientCertDetails.', 'proxyHeaders.forwardedClientCert'),
  ...proxies('Use the annotations readiness.status.sidecar.istio.io/... of Pods.', 'readinessProbe'),
  ...proxies('Envoy signs with the key itself.', 'privateKeyProvider'),
  ...proxies('Use customConfigFile.', 'proxyBootstrapTemplatePath'),
  ...proxies(
    'Use tracing.zipkin.',
    'zipkinAddress',
    'tracing.lightstep',
    'tracing.stackdriver',
    'tracing.openCensusAgent',
  ),
  ...proxies(
    "Traces have Istio's usual tags.",
    'tracing.customTags',
    'tracing.maxPathTagLength',
    'tracing.enableIstioTags',
  ),
  ...proxies('Name files: clientCertificate, privateKey, caCertificates.', ...collectorTls('credentialName')),
  ...proxies('Name a file: caCertificates.', ...collectorTls('caCertCredentialName')),
  ...proxies('Revoked certificates of a collector are accepted.', ...collectorTls('caCrl')),
  ...proxies('Use envoyMetricsService.', 'envoyMetricsServiceAddress'),
  ...proxies('Traces have the name of the workload.', 'tracingServiceName'),
  ...proxies('The locality is that of the node.', 'availabilityZone'),
  ...proxies('The control plane pushes changes.', 'discoveryRefreshDelay'),
  ...proxies('The agent always serves certificates.', 'sds'),
  ...proxies('Metrics are not compressed.', 'statsCompression'),
  {
    kind: 'MeshNetworks',
    field: 'meshNetworks.networks{}.gateways[].locality',
    note: 'Endpoints behind the gateway keep their own locality.',
  },
];

function mesh(note: string, fields: readonly string[]): readonly UnsupportedField[] {
  return fields.map((field) => ({ kind: 'MeshConfig', field: `mesh.${field}`, note }));
}

function proxies(note: string, ...fields: readonly string[]): readonly UnsupportedField[] {
  return mesh(
    note,
    fields.map((field) => `defaultConfig.${field}`),
  );
}

function providers(...kinds: readonly string[]): readonly string[] {
  return kinds.map((kind) => `extensionProviders[].${kind}`);
}

function collectorTls(field: string): readonly string[] {
  return ['tracing', 'envoyAccessLogService', 'envoyMetricsService'].map(
    (service) => `${service}.tlsSettings.${field}`,
  );
}
