import { isIP } from 'node:net';
import { isObject } from '../api/json.ts';
import { refOf } from '../api/object.ts';
import { canonicalAddress, isAddress } from '../model/address.ts';
import type { Labels } from '../model/labels.ts';
import type { GatewayTopology } from '../model/mesh-config.ts';
import { type CertificateFiles, type Traits, anyTraits } from '../model/traits.ts';
import { parseDuration } from './durations.ts';
import { quote } from '../api/quote.ts';
import { Field, Findings } from './field.ts';
import { readGatewayTopology } from './mesh-config/gateway-topology.ts';

/** What a proxy's node says about it. Source: Istio's node metadata. */
export interface NodeFacts {
  readonly traits: Traits;
  /** Namespace of the proxy's configuration; empty if the node names none. */
  readonly namespace: string;
  /** Name of the Pod (or WorkloadEntry); empty if the node names none. */
  readonly workloadName: string;
  /** Empty for a plain Envoy that states none. */
  readonly addresses: readonly string[];
  /** Used if the workload is unknown. */
  readonly labels: Labels;
  /** Take precedence over the workload's labels. */
  readonly staticLabels: Labels;
  /** Named container ports, used if the workload is unknown; undefined if the node names none. */
  readonly podPorts: Readonly<Record<string, number>> | undefined;
  /** `region/zone/subzone` from the request; empty if unknown. */
  readonly locality: string;
  readonly network: string;
  /** Only endpoints in these networks, or in none, are for it; empty: all. Sorted. */
  readonly requestedNetworks: readonly string[];
  /** For a router: the members of metadata PROXY_CONFIG gatewayTopology that are set. */
  readonly gatewayTopology: Partial<GatewayTopology> | undefined;
  readonly cluster: string;
  /** Name of the Kubernetes node; empty if the proxy does not state it. */
  readonly nodeName: string;
}

export interface NodeInput {
  readonly nodeId: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality: { readonly region: string; readonly zone: string; readonly subZone: string };
  readonly extensions: readonly string[];
}

/** For proxies whose node does not follow Istio's form. */
export interface NodeDefaults {
  readonly namespace: string;
  /** Used if the metadata has no `PROXY_TYPE`. */
  readonly proxyType?: Traits['proxyType'];
  /** Suffix of cluster hosts, `cluster.local`. */
  readonly domainSuffix: string;
}

/** An error is the reason to end the stream with InvalidArgument. */
export function readNode(
  proxy: NodeInput,
  defaults: NodeDefaults,
): { readonly node: NodeFacts } | { readonly error: string } {
  try {
    return { node: factsOf(proxy, defaults) };
  } catch (error) {
    if (error instanceof NodeError) return { error: error.message };
    throw error;
  }
}

class NodeError extends Error {}

/**
 * A node is kept while its proxy is connected, and what is read from it becomes part of keys. These limits are beyond
 * what Kubernetes and file systems allow. Characters; addresses; labels.
 */
const MAX_TEXT = 4_096;
const MAX_POD_PORTS_TEXT = 65_536;
const MAX_ADDRESSES = 64;
const MAX_NAMES = 64;
const MAX_LABELS = 256;

/** A DNS label (RFC 1123). */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

function factsOf(proxy: NodeInput, defaults: NodeDefaults): NodeFacts {
  const metadata = new Metadata(proxy.metadata);
  const id = parseId(proxy.nodeId, metadata, defaults);
  const addresses = metadata.addresses('INSTANCE_IPS') ?? (isAddress(id.ip) ? [canonicalAddress(id.ip)] : []);
  if (id.istio && addresses.length === 0)
    throw new NodeError('no valid IP address in the node id or in metadata INSTANCE_IPS');
  const namespace = metadata.text('NAMESPACE') || id.namespace;
  if (namespace !== '' && !NAMESPACE.test(namespace))
    throw new NodeError(`${quote(namespace)} cannot be the name of a namespace`);
  const { region, zone, subZone } = proxy.locality;
  if (region.length + zone.length + subZone.length > MAX_TEXT) throw new NodeError('the locality is too long');
  return {
    traits: traitsOf(id, addresses, metadata),
    namespace,
    workloadName: id.workload,
    addresses,
    labels: metadata.labels('LABELS'),
    staticLabels: metadata.labels('STATIC_LABELS'),
    podPorts: metadata.podPorts(),
    locality: region === '' && zone === '' && subZone === '' ? '' : `${region}/${zone}/${subZone}`,
    network: metadata.text('NETWORK'),
    requestedNetworks: metadata.names('REQUESTED_NETWORK_VIEW'),
    gatewayTopology: id.type === 'router' ? metadata.gatewayTopology() : undefined,
    cluster: metadata.text('CLUSTER_ID') || 'Kubernetes',
    nodeName: metadata.text('NODE_NAME'),
  };
}

interface ParsedId {
  readonly istio: boolean;
  readonly type: Traits['proxyType'];
  readonly ip: string;
  readonly workload: string;
  readonly namespace: string;
  readonly shortNames: boolean;
}

const ISTIO_TYPES: readonly string[] = ['sidecar', 'router', 'waypoint', 'ztunnel', 'agentgateway'];

/** `type~ip~workload.namespace~domain` from Istio's agents, or any other text. */
function parseId(nodeId: string, metadata: Metadata, defaults: NodeDefaults): ParsedId {
  if (nodeId === '') throw new NodeError('the node id is empty');
  const parts = nodeId.split('~');
  const [type = '', ip = '', workload = '', dnsDomain = ''] = parts;
  if (parts.length === 1 || !ISTIO_TYPES.includes(type)) {
    const named = metadata.text('PROXY_TYPE');
    if (named !== '' && named !== 'sidecar' && named !== 'router')
      throw new NodeError(`metadata PROXY_TYPE is ${quote(named)}: use sidecar or router`);
    return {
      istio: false,
      type: named === '' ? (defaults.proxyType ?? 'sidecar') : named,
      ip: '',
      workload: metadata.text('NAME'),
      namespace: defaults.namespace,
      shortNames: false,
    };
  }
  if (parts.length !== 4) throw new NodeError(`missing parts in the service node ${quote(nodeId)}: 4 are needed`);
  if (type !== 'sidecar' && type !== 'router') throw new NodeError(`proxies of type ${type} are not served`);
  const dot = workload.lastIndexOf('.');
  return {
    istio: true,
    type,
    ip,
    workload: dot < 0 ? workload : workload.slice(0, dot),
    namespace: dnsDomain.includes('.') ? dnsDomain.slice(0, dnsDomain.indexOf('.')) : '',
    shortNames: dnsDomain.endsWith(`.svc.${defaults.domainSuffix}`),
  };
}

function traitsOf({ type, shortNames }: ParsedId, addresses: readonly string[], metadata: Metadata): Traits {
  const client = metadata.certificate('TLS_CLIENT');
  const server = metadata.certificate('TLS_SERVER');
  const interception = metadata.text('INTERCEPTION_MODE');
  const ofAll = {
    agent: metadata.text('ISTIO_VERSION') !== '',
    ipFamily: ipFamilyOf(addresses),
    shortNames,
  };
  // The rest is about what an Envoy does.
  if (type === 'sidecar' && metadata.text('GENERATOR') === 'grpc') return { ...anyTraits, ...ofAll, family: 'grpc' };
  return {
    ...ofAll,
    // Whether it is a known one is not for the node to say.
    cluster: '',
    proxyType: type,
    family: 'envoy',
    interception: interception === 'NONE' || interception === 'TPROXY' ? interception : 'REDIRECT',
    dnsCapture: metadata.flag('DNS_CAPTURE'),
    http10: metadata.text('HTTP10') === '1',
    idleTimeout: parseDuration(metadata.text('IDLE_TIMEOUT')) ?? 0,
    httpProxyPort: portOf(metadata.text('HTTP_PROXY_PORT')),
    unprivileged: metadata.text('UNPRIVILEGED_POD') === 'true',
    reservedPorts: [...new Set(RESERVED_PORTS.map((key) => metadata.port(key)))]
      .filter((port) => port !== 0)
      .sort((a, b) => a - b),
    inboundExactBalance: metadata.flag('INBOUND_LISTENER_EXACT_BALANCE'),
    outboundExactBalance: metadata.flag('OUTBOUND_LISTENER_EXACT_BALANCE'),
    // Roots alone are not a client certificate.
    ...(client === undefined || client.chain === '' ? {} : { clientCertificate: client }),
    ...(server === undefined ? {} : { serverCertificate: server }),
    preserveHeaderCase: metadata.preserveHeaderCase(),
    credentialSocket: metadata.text('credential') === 'true',
  };
}

const RESERVED_PORTS = [
  'ENVOY_STATUS_PORT',
  'ENVOY_PROMETHEUS_PORT',
  'ENVOY_SECURE_METRICS_PORT',
  'ENVOY_SECURE_MERGED_METRICS_PORT',
] as const;

/** A proxy that states no addresses counts as IPv4. */
function ipFamilyOf(addresses: readonly string[]): Traits['ipFamily'] {
  const v4 = addresses.some((address) => isIP(address) === 4);
  const v6 = addresses.some((address) => isIP(address) === 6);
  return v6 ? (v4 ? 'dual' : 'v6') : 'v4';
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65535;
}

/** A port written as text; an invalid one counts as absent, as in Istio. */
function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port <= 65535 ? port : 0;
}

const TRUE: readonly string[] = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const FALSE: readonly string[] = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

/** Reads node metadata. Booleans may be text, and port keys are numbers; a value of the wrong type is an error. */
class Metadata {
  private readonly values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.values = values;
  }

  private get(key: string): unknown {
    return Object.hasOwn(this.values, key) ? this.values[key] : undefined;
  }

  text(key: string, longest = MAX_TEXT): string {
    const value = this.get(key);
    if (value === undefined || value === null) return '';
    if (typeof value !== 'string') throw new NodeError(`metadata ${key} must be a string`);
    if (value.length > longest) throw new NodeError(`metadata ${key} is longer than ${longest} characters`);
    return value;
  }

  flag(key: string): boolean {
    const value = this.get(key);
    if (typeof value === 'boolean') return value;
    const text = this.text(key);
    if (TRUE.includes(text)) return true;
    if (text === '' || FALSE.includes(text)) return false;
    throw new NodeError(`metadata ${key} is ${quote(text)}: use "true" or "false"`);
  }

  port(key: string): number {
    const value = this.get(key);
    if (value === undefined || value === null || value === 0) return 0;
    if (isPort(value)) return value;
    throw new NodeError(`metadata ${key} must be a port number`);
  }

  /** Undefined unless all are IP addresses. */
  addresses(key: string): readonly string[] | undefined {
    const list = this.text(key).split(',');
    if (!list.every(isAddress)) return undefined;
    if (list.length > MAX_ADDRESSES) throw new NodeError(`metadata ${key} holds more than ${MAX_ADDRESSES} addresses`);
    return [...new Set(list.map(canonicalAddress))];
  }

  /** Names separated by commas, or a list of them; sorted, each once. */
  names(key: string): readonly string[] {
    const value = this.get(key);
    const list: readonly unknown[] = Array.isArray(value) ? value : this.text(key).split(',');
    if (list.length > MAX_NAMES) throw new NodeError(`metadata ${key} holds more than ${MAX_NAMES} names`);
    const names = list.map((name) => {
      if (typeof name !== 'string') throw new NodeError(`metadata ${key} must be a list of strings`);
      if (name.length > MAX_TEXT) throw new NodeError(`metadata ${key} is longer than ${MAX_TEXT} characters`);
      return name.trim();
    });
    return [...new Set(names)].filter((name) => name !== '').sort();
  }

  labels(key: string): Labels {
    const value = this.get(key);
    if (value === undefined || value === null) return {};
    if (!isObject(value)) throw new NodeError(`metadata ${key} must be an object`);
    const names = Object.keys(value);
    if (names.length > MAX_LABELS) throw new NodeError(`metadata ${key} holds more than ${MAX_LABELS} labels`);
    for (const name of names) {
      const text = value[name];
      if (typeof text !== 'string') throw new NodeError(`metadata ${key} must hold strings only`);
      if (name.length + text.length > MAX_TEXT) throw new NodeError(`metadata ${key} holds a label that is too long`);
    }
    // Every value has just been checked.
    return value as Labels;
  }

  podPorts(): Readonly<Record<string, number>> | undefined {
    const text = this.text('POD_PORTS', MAX_POD_PORTS_TEXT);
    if (text === '') return undefined;
    const ports = new Map<string, number>();
    for (const port of parseList(text, 'POD_PORTS')) {
      const { name, containerPort, protocol } = isObject(port) ? port : {};
      if (!isPort(containerPort)) throw new NodeError('metadata POD_PORTS holds an entry without a valid port');
      if (typeof name === 'string' && (protocol === undefined || protocol === 'TCP') && !ports.has(name))
        ports.set(name, containerPort);
    }
    return Object.fromEntries(ports);
  }

  /** Undefined if no file is named. */
  certificate(prefix: 'TLS_CLIENT' | 'TLS_SERVER'): CertificateFiles | undefined {
    const chain = this.text(`${prefix}_CERT_CHAIN`);
    const key = this.text(`${prefix}_KEY`);
    const root = this.text(`${prefix}_ROOT_CERT`);
    return chain === '' && root === '' ? undefined : { chain, key, root };
  }

  /** Undefined if nothing is set. */
  gatewayTopology(): Partial<GatewayTopology> | undefined {
    const findings = new Findings(refOf('', { apiVersion: '', kind: '', metadata: { name: '' } }));
    const topology = readGatewayTopology(
      new Field(this.get('PROXY_CONFIG'), 'PROXY_CONFIG', findings).get('gatewayTopology').expectObject(),
    );
    const [problem] = findings.problems;
    if (problem !== undefined) throw new NodeError(`metadata ${problem.field} ${problem.message}`);
    return Object.keys(topology).length === 0 ? undefined : topology;
  }

  preserveHeaderCase(): boolean {
    let value = this.get('PROXY_CONFIG');
    for (const key of ['proxyHeaders', 'preserveHttp1HeaderCase']) value = isObject(value) ? value[key] : undefined;
    return value === true;
  }
}

function parseList(text: string, key: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // Reported below.
  }
  throw new NodeError(`metadata ${key} must be a string that holds a JSON list`);
}
