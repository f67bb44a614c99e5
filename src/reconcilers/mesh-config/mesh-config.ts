import type { ObjectRef } from '../../api/object.ts';
import type { Problem } from '../../api/problem.ts';
import { printPath } from '../../api/schema-path.ts';
import { canonicalHost, compareSpecificity, isHostName } from '../../model/host.ts';
import type {
  ClusterSettings,
  ListenerSettings,
  MeshConfig,
  RetrySetting,
  RouteSettings,
  TlsDefaults,
  VisibilitySettings,
} from '../../model/mesh-config.ts';
import { namesCredential } from '../../model/credential.ts';
import type { ClientTls, TrafficPolicy, LocalityLbSetting } from '../../model/traffic-policy.ts';
import { readConnectionPool, readOutlierDetection } from '../destination-rule/pool.ts';
import { readClientTls } from '../destination-rule/policy.ts';
import { present } from '../destination-rule/quantities.ts';
import { quote } from '../../api/quote.ts';
import { Field, Findings } from '../field.ts';
import { readAuthorizers } from './authorizers.ts';
import { readDiscoverySelectors } from './discovery-selectors.ts';
import { readGatewayTopology } from './gateway-topology.ts';
import { cipherListProblem, cipherProblem, curveProblem } from '../gateway/ciphers.ts';
import { type FormatProblem, problemOfFormat } from '../virtual-service/header-format.ts';
import { reportIneffective, reportVariables } from './fields.ts';
import { readSecretProvider } from './secret-provider.ts';
import { readDocument } from '../../yaml/document.ts';

export interface MeshConfigProblem extends Pick<Problem, 'reason' | 'message'> {
  /** Path within the mesh config; empty for the whole text. */
  readonly field: string;
}

/** The API server's limit for a ConfigMap. */
const LONGEST = 1024 * 1024;
/** Every proxy holds one copy of the format per connection manager. */
const LONGEST_FORMAT = 8192;

/**
 * The mesh config from the text under `mesh` in the ConfigMap `istio`. A wrong field is reported and has its default; a
 * field that Fairlead does not act on is reported once.
 */
export function reconcileMeshConfig(
  yaml: string | undefined,
  rootNamespace = 'istio-system',
  domainSuffix = 'cluster.local',
): { readonly config: MeshConfig; readonly problems: readonly MeshConfigProblem[] } {
  const findings = new Findings(configMap(rootNamespace));
  const mesh = new Field(readMeshText(yaml, findings), '', findings).expectObject();
  reportIneffective(mesh, 'MeshConfig');
  reportVariables(findings, mesh.get('defaultConfig').get('proxyMetadata'));
  const identity = {
    rootNamespace: mesh.get('rootNamespace').string() || rootNamespace,
    trustDomain: mesh.get('trustDomain').string() || 'cluster.local',
    trustDomainAliases: mesh.get('trustDomainAliases').strings(),
  };
  const shared: Shared = {
    ...identity,
    inboundTrafficPolicy: mesh.get('inboundTrafficPolicy').get('mode').oneOf('PASSTHROUGH', 'LOCALHOST'),
    tlsDefaults: tlsDefaults(mesh.get('tlsDefaults').expectObject()),
    inboundClusterStatName: mesh.get('inboundClusterStatName').string(),
    outboundClusterStatName: mesh.get('outboundClusterStatName').string(),
  };
  const config: MeshConfig = {
    visibility: visibility(mesh, shared, domainSuffix),
    clusters: clusters(mesh, shared),
    routes: routes(mesh),
    listeners: listeners(mesh, shared),
    security: {
      trustDomain: shared.trustDomain,
      trustDomainAliases: shared.trustDomainAliases,
      authorizers: readAuthorizers(mesh.get('extensionProviders')),
      ...present({ secretProvider: readSecretProvider(mesh.get('extensionProviders')) }),
    },
    discoverySelectors: readDiscoverySelectors(mesh.get('discoverySelectors')),
  };
  return {
    config,
    problems: findings.problems.map(({ field, ...problem }) => ({ ...problem, field: field.replace(/^\./, '') })),
  };
}

/** Whether the text is free of errors; a field without effect is not one. */
export function isValidMeshConfig(yaml: string | undefined): boolean {
  return reconcileMeshConfig(yaml).problems.every(({ reason }) => reason !== 'Invalid');
}

export function configMap(namespace: string): ObjectRef {
  return { source: '', group: '', kind: 'ConfigMap', namespace, name: 'istio' };
}

/** The text as plain JSON, as Istio reads it: with the same library as kubectl. Invalid YAML is a finding. */
export function readMeshText(yaml: string | undefined, findings: Findings): unknown {
  if (yaml === undefined) return {};
  const invalid = (message: string): unknown => {
    findings.report('', 'Invalid', message);
    return {};
  };
  if (yaml.length > LONGEST) return invalid('The text is longer than 1 MiB.');
  const document = readDocument(yaml);
  if (!('broken' in document)) return document.value ?? {};
  const { line, path, message } = document.broken;
  return invalid(`Line ${line} of the text${path.length === 0 ? '' : `, ${printPath(path)}`}: ${message}.`);
}

/** Shared by several sections. */
type Shared = Pick<VisibilitySettings, 'rootNamespace' | 'trustDomain'> &
  Pick<
    ListenerSettings,
    'trustDomainAliases' | 'inboundTrafficPolicy' | 'tlsDefaults' | 'inboundClusterStatName' | 'outboundClusterStatName'
  >;

function visibility(mesh: Field, shared: Shared, domainSuffix: string): VisibilitySettings {
  const { rootNamespace, trustDomain } = shared;
  const clusterLocal = new Map<string, boolean>([
    [`*.kube-system.svc.${domainSuffix}`, true],
    [`kubernetes.default.svc.${domainSuffix}`, true],
    [discoveryHost(mesh.get('defaultConfig').get('discoveryAddress').value, domainSuffix), true],
  ]);
  for (const setting of mesh.get('serviceSettings').objects()) {
    const local = setting.get('settings').get('clusterLocal').boolean();
    if (local === undefined) continue;
    for (const field of setting.get('hosts').list()) {
      const host = field.string();
      if (isHostName(host)) clusterLocal.set(canonicalHost(host), local);
      else field.invalid(`${JSON.stringify(host)} is not a host name; use a DNS name, with * only as its first label.`);
    }
  }
  return {
    rootNamespace,
    trustDomain,
    defaultServiceExportTo: exportTo(mesh.get('defaultServiceExportTo')),
    defaultVirtualServiceExportTo: exportTo(mesh.get('defaultVirtualServiceExportTo')),
    defaultDestinationRuleExportTo: exportTo(mesh.get('defaultDestinationRuleExportTo')),
    clusterLocalHosts: [...clusterLocal]
      .map(([host, local]) => ({ host, clusterLocal: local }))
      .sort((a, b) => compareSpecificity(a.host, b.host)),
  };
}

/** Each cluster has a control plane of its own under this name. The default is Istio's. */
function discoveryHost(address: unknown, domainSuffix: string): string {
  const text = typeof address === 'string' && address !== '' ? address : 'istiod.istio-system.svc:15012';
  const host = canonicalHost(text.replace(/:\d+$/, ''));
  return host.endsWith(domainSuffix) ? host : `${host}.${domainSuffix}`;
}

function exportTo(field: Field): readonly string[] {
  const values = field.strings().filter((value) => value !== '');
  return values.length === 0 ? ['*'] : values;
}

function clusters(mesh: Field, shared: Shared): ClusterSettings {
  const { trustDomainAliases, inboundTrafficPolicy, tlsDefaults: tls } = shared;
  const keepalive = mesh.get('tcpKeepalive').expectObject();
  const policy = defaultTrafficPolicy(mesh.get('defaultTrafficPolicy').expectObject());
  const localityLb = locality(mesh.get('localityLbSetting').expectObject());
  const unknownHostsTls = readUnknownHostsTls(mesh.get('outboundTrafficPolicy'), shared.rootNamespace);
  return {
    connectTimeout: mesh.get('connectTimeout').duration() || 10_000,
    dnsRefreshRate: mesh.get('dnsRefreshRate').duration() || 60_000,
    enableAutoMtls: mesh.get('enableAutoMtls').boolean() ?? true,
    trustDomainAliases,
    h2Upgrade: mesh.get('h2UpgradePolicy').oneOf('DO_NOT_UPGRADE', 'UPGRADE') === 'UPGRADE',
    inboundTrafficPolicy,
    ...(keepalive.isSet
      ? {
          tcpKeepalive: present({
            probes: keepalive.get('probes').integer(0, 2 ** 32 - 1),
            time: keepalive.get('time').duration(),
            interval: keepalive.get('interval').duration(),
          }),
        }
      : {}),
    tlsDefaults: tls,
    ...(policy === undefined ? {} : { defaultTrafficPolicy: policy }),
    ...(localityLb === undefined ? {} : { localityLb }),
    ...(unknownHostsTls === undefined ? {} : { unknownHostsTls }),
    outboundClusterStatName: shared.outboundClusterStatName,
    inboundClusterStatName: shared.inboundClusterStatName,
  };
}

/** Secrets are of objects: without one that it asks for, nothing is sent. */
function readUnknownHostsTls(policy: Field, rootNamespace: string): ClientTls | undefined {
  const field = policy.get('tls');
  const tls = readClientTls(field, rootNamespace);
  if (tls === undefined) return undefined;
  if (policy.get('mode').value !== 'ALLOW_ANY_DYNAMIC_DNS')
    field.findings.report(field.path, 'Ineffective', 'has no effect unless mode is ALLOW_ANY_DYNAMIC_DNS.');
  return namesCredential(tls) ? { ...tls, credentialName: '', caCredentialName: '', isWithheld: true } : tls;
}

function defaultTrafficPolicy(field: Field): TrafficPolicy | undefined {
  if (!field.isSet) return undefined;
  return present({
    connectionPool: readConnectionPool(field.get('connectionPool')),
    outlierDetection: readOutlierDetection(field.get('outlierDetection')),
  });
}

function locality(field: Field): LocalityLbSetting | undefined {
  if (field.get('enabled').boolean() === false) return undefined;
  return {
    distribute: field
      .get('distribute')
      .objects()
      .map((rule) => ({
        from: rule.get('from').string(),
        to: Object.fromEntries(
          rule
            .get('to')
            .entries()
            .map(([to, weight]) => [to, weight.integer(0, 100) ?? 0]),
        ),
      })),
    failover: field
      .get('failover')
      .objects()
      .map((rule) => ({ from: rule.get('from').string(), to: rule.get('to').string() })),
    failoverPriority: field.get('failoverPriority').strings(),
  };
}

function routes(mesh: Field): RouteSettings {
  const retry = mesh.get('defaultHttpRetryPolicy').expectObject();
  return retry.isSet ? { defaultHttpRetryPolicy: retrySetting(retry) } : {};
}

function retrySetting(field: Field): RetrySetting {
  return {
    attempts: field.get('attempts').integer(-(2 ** 31), 2 ** 31 - 1) ?? 0,
    retryOn: field.get('retryOn').string(),
    retryRemoteLocalities: field.get('retryRemoteLocalities').boolean() ?? false,
    ...present({
      perTryTimeout: field.get('perTryTimeout').duration(),
      retryIgnorePreviousHosts: field.get('retryIgnorePreviousHosts').boolean(),
      backoff: field.get('backoff').duration(),
    }),
  };
}

const NORMALIZATIONS = ['DEFAULT', 'NONE', 'BASE', 'MERGE_SLASHES', 'DECODE_AND_MERGE_SLASHES'] as const;

function listeners(mesh: Field, shared: Shared): ListenerSettings {
  const normalization = mesh
    .get('pathNormalization')
    .get('normalization')
    .oneOf(...NORMALIZATIONS);
  const outbound = mesh.get('outboundTrafficPolicy').get('mode');
  const encoding = mesh.get('accessLogEncoding').oneOf('TEXT', 'JSON');
  return {
    proxyListenPort: mesh.get('proxyListenPort').integer(-1, 65535) ?? 15001,
    proxyInboundListenPort: mesh.get('proxyInboundListenPort').integer(1, 65535) ?? 15006,
    proxyHttpPort: mesh.get('proxyHttpPort').integer(0, 65535) ?? 0,
    protocolDetectionTimeout: mesh.get('protocolDetectionTimeout').duration() ?? 0,
    // ALLOW_ANY if absent, although the API's enum begins with REGISTRY_ONLY.
    outboundTrafficPolicy: outbound.oneOf('ALLOW_ANY', 'REGISTRY_ONLY', 'ALLOW_ANY_DYNAMIC_DNS'),
    inboundTrafficPolicy: shared.inboundTrafficPolicy,
    pathNormalization: normalization === 'DEFAULT' ? 'BASE' : normalization,
    accessLogFile: mesh.get('accessLogFile').string(),
    accessLogFormat: accessLogFormat(mesh.get('accessLogFormat'), encoding),
    accessLogEncoding: encoding,
    listenerAccessLog: mesh.get('disableEnvoyListenerLog').boolean() !== true,
    ...(mesh.get('enableTracing').boolean() === false
      ? {}
      : { tracingSampling: mesh.get('defaultConfig').get('tracing').get('sampling').number() ?? 1 }),
    trustDomain: shared.trustDomain,
    trustDomainAliases: shared.trustDomainAliases,
    minTlsVersion: meshTlsVersion(mesh.get('meshMTLS')),
    meshCipherSuites: knownCiphers(mesh.get('meshMTLS').get('cipherSuites')),
    tlsDefaults: shared.tlsDefaults,
    inboundClusterStatName: shared.inboundClusterStatName,
    outboundClusterStatName: shared.outboundClusterStatName,
    gatewayTopology: {
      numTrustedProxies: 0,
      forwardClientCertDetails: 'SANITIZE_SET',
      proxyProtocol: false,
      ...readGatewayTopology(mesh.get('defaultConfig').get('gatewayTopology')),
    },
  };
}

/** Empty means the default format. It also replaces a format that Envoy would reject, along with all listeners. */
function accessLogFormat(field: Field, encoding: 'TEXT' | 'JSON'): string {
  const format = field.string();
  if (format === '') return format;
  if (format.length > LONGEST_FORMAT) {
    field.invalid(`is longer than ${LONGEST_FORMAT} characters.`);
    return '';
  }
  const problem = encoding === 'JSON' ? problemOfJson(format) : problemOfText(format);
  if (problem === undefined) return format;
  field.findings.report(field.path, problem.reason, `${problem.message} Until then the default format is used.`);
  return '';
}

function problemOfJson(format: string): FormatProblem | undefined {
  try {
    const parsed: unknown = JSON.parse(format);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return problemOfMembers(parsed);
  } catch {
    // Reported below.
  }
  return { reason: 'Invalid', message: 'must be a JSON object because accessLogEncoding is JSON.' };
}

function problemOfMembers(json: unknown): FormatProblem | undefined {
  if (typeof json === 'string') return problemOfText(json);
  if (typeof json !== 'object' || json === null) return undefined;
  let remark: FormatProblem | undefined;
  for (const member of Object.values(json)) {
    const problem = problemOfMembers(member);
    if (problem?.reason === 'Invalid') return problem;
    remark ??= problem;
  }
  return remark;
}

function problemOfText(format: string): FormatProblem | undefined {
  // The formatter for this one is sent along; it takes the same arguments as REQ.
  return problemOfFormat(format.replaceAll('%REQ_WITHOUT_QUERY(', '%REQ('), true);
}

function tlsDefaults(field: Field): TlsDefaults {
  const min = tlsVersion(field.get('minProtocolVersion'));
  return {
    cipherSuites: knownCiphers(field.get('cipherSuites')),
    ecdhCurves: known(field.get('ecdhCurves'), curveProblem),
    ...(min === undefined ? {} : { minProtocolVersion: min }),
  };
}

/** The names, without those that would make Envoy reject every TLS context in the mesh. */
function known(field: Field, problemOf: (name: string) => string | undefined): readonly string[] {
  return field.list().flatMap((element) => {
    const name = element.string();
    const problem = problemOf(name);
    if (problem !== undefined)
      field.findings.report(element.path, 'Ineffective', `${quote(name)} is left out. ${problem}`);
    return problem !== undefined || name === '' ? [] : [name];
  });
}

function knownCiphers(field: Field): readonly string[] {
  const ciphers = known(field, cipherProblem);
  const problem = cipherListProblem(ciphers);
  if (problem !== undefined) field.invalid(`is left out: it ${problem}`);
  return problem === undefined ? ciphers : [];
}

function meshTlsVersion(field: Field): 'TLSV1_2' | 'TLSV1_3' {
  if (field.get('ecdhCurves').isSet) field.get('ecdhCurves').invalid('cannot be set for mutual TLS of the mesh.');
  return tlsVersion(field.get('minProtocolVersion')) ?? 'TLSV1_2';
}

function tlsVersion(field: Field): 'TLSV1_2' | 'TLSV1_3' | undefined {
  const version = field.oneOf('TLS_AUTO', 'TLSV1_2', 'TLSV1_3');
  return version === 'TLS_AUTO' ? undefined : version;
}
