import { Buffer } from 'node:buffer';
import type { Endpoint, Health } from '../model/endpoint.ts';
import type { Labels } from '../model/labels.ts';
import { concat, messageField, numberField, stringField, varintField } from './wire.ts';

/**
 * An endpoint with its bytes (a `LbEndpoint`), encoded once and shared by all assignments that it is in, and with
 * what decides in which ones that is.
 */
export interface EncodedEndpoint {
  readonly portName: string;
  /** The first address. */
  readonly address: string;
  readonly labels: Labels;
  readonly locality: string;
  readonly cluster: string;
  readonly nodeName: string;
  readonly health: Health | undefined;
  readonly weight: number;
  /** Whether the address can stand in an assignment: an IP, or the path of a unix socket. */
  readonly sendable: boolean;
  /** It came from a Kubernetes slice or Pod: an address serves a port once, whatever slices say. */
  readonly fromSlice: boolean;
  readonly plain: Uint8Array;
  /** With the mark that selects mutual TLS; the same memory as `plain` where the peer has none. */
  readonly mtls: Uint8Array;
}

export function encodeEndpoint(endpoint: Endpoint): EncodedEndpoint {
  const { addresses, port, portName, health, labels, locality, cluster, nodeName, tlsMode } = endpoint;
  const [address = ''] = addresses;
  const weight = endpoint.weight === undefined || endpoint.weight === 0 ? 1 : endpoint.weight;
  // LbEndpoint: endpoint 1, health_status 2, metadata 3, load_balancing_weight 4.
  const front = concat([messageField(1, endpointMessage(addresses, port)), varintField(2, healthStatus(health))]);
  const back = messageField(4, varintField(1, weight));
  const telemetry = metadataEntry('istio', 'workload', workloadOf(endpoint));
  const plain = concat([front, messageField(3, telemetry), back]);
  return {
    portName,
    address,
    labels,
    locality,
    cluster,
    nodeName,
    health,
    weight,
    sendable: port === 0 || isIp(address),
    fromSlice: health !== undefined,
    plain,
    mtls: tlsMode === 'istio' ? concat([front, messageField(3, concat([tlsMark, telemetry])), back]) : plain,
  };
}

/** Endpoints that are leaving by this label get no new requests. */
const drainingLabel = 'istio.io/draining';

export function isDraining(endpoint: Pick<EncodedEndpoint, 'health' | 'labels'>): boolean {
  return endpoint.health === 'Draining' || (endpoint.labels[drainingLabel] ?? '') !== '';
}

/**
 * What Istio tells telemetry of an endpoint: workload, namespace, canonical name and revision, cluster. The default
 * revision stays empty.
 */
export function workloadOf(endpoint: Pick<Endpoint, 'labels' | 'workload' | 'namespace' | 'cluster'>): string {
  const { labels, workload, namespace, cluster } = endpoint;
  const name =
    labels['service.istio.io/canonical-name'] ?? labels['app.kubernetes.io/name'] ?? labels['app'] ?? workload;
  const revision =
    labels['service.istio.io/canonical-revision'] ?? labels['app.kubernetes.io/version'] ?? labels['version'] ?? '';
  return [workload, namespace, name, revision === 'latest' ? '' : revision, cluster].join(';');
}

export function isIp(address: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(address) || /^[0-9a-fA-F:]*:[0-9a-fA-F:.]+$/.test(address) || address === '::';
}

function endpointMessage(addresses: readonly string[], port: number): Uint8Array {
  const [address = '', ...others] = addresses;
  // Endpoint: address 1, additional_addresses 4 (each with address 1).
  return concat([
    messageField(1, addressMessage(address, port)),
    ...others.map((other) => messageField(4, messageField(1, addressMessage(other, port)))),
  ]);
}

function addressMessage(address: string, port: number): Uint8Array {
  // Address: socket_address 1, pipe 2. SocketAddress: address 2, port_value 3. Pipe: path 1.
  return port === 0
    ? messageField(2, stringField(1, address))
    : messageField(1, concat([stringField(2, address), numberField(3, port)]));
}

/** Envoy's numbers. An endpoint without a health of its own is unknown to be unhealthy. */
function healthStatus(health: Health | undefined): number {
  switch (health) {
    case undefined:
      return 0;
    case 'Healthy':
      return 1;
    case 'UnHealthy':
    case 'Terminating':
      return 2;
    case 'Draining':
      return 3;
  }
}

/** Metadata: filter_metadata 1, a map. A map entry: key 1, value 2. Struct: fields 1, a map. Value: string_value 3. */
function metadataEntry(filter: string, key: string, value: string): Uint8Array {
  const text = messageField(3, Buffer.from(value, 'utf8'));
  const field = messageField(1, concat([stringField(1, key), messageField(2, text)]));
  return messageField(1, concat([stringField(1, filter), messageField(2, field)]));
}

const tlsMark = metadataEntry('envoy.transport_socket_match', 'tlsMode', 'istio');
