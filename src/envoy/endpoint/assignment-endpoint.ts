import { isIP } from 'node:net';
import type { AssignableEndpoint } from '../../model/assignment.ts';
import type { Endpoint, Health } from '../../model/endpoint.ts';
import { BackwardWriter } from '../encode/wire.ts';

/** Its forms are bytes: the field of a locality that holds it. */
export type EncodedEndpoint = AssignableEndpoint<Uint8Array>;

/**
 * Endpoints of one list share one block of memory.
 *
 * @param scale by which weights are multiplied.
 */
export function encodeEndpoints(given: readonly Endpoint[], scale = 1): readonly EncodedEndpoint[] {
  const endpoints = scale === 1 ? given : given.map((each) => ({ ...each, weight: scaled(weightOf(each), scale) }));
  const writer = new BackwardWriter(256 * (endpoints.length + 1));
  const marks = endpoints.map((endpoint) => {
    const plain = writer.mark();
    writeEndpoint(writer, endpoint, false);
    const mtls = writer.mark();
    if (endpoint.tlsMode === 'istio') writeEndpoint(writer, endpoint, true);
    return { plain, mtls, end: writer.mark() };
  });
  const all = writer.since(0);
  // The writer works backwards, so marks count from the end.
  const between = (from: number, to: number) => all.subarray(all.length - to, all.length - from);
  return endpoints.map((endpoint, index) => {
    const { plain, mtls, end } = marks[index]!;
    const bytes = between(plain, mtls);
    return factsOf(endpoint, bytes, end === mtls ? bytes : between(mtls, end));
  });
}

function factsOf(endpoint: Endpoint, plain: Uint8Array, mtls: Uint8Array): EncodedEndpoint {
  const { addresses, port, portName, health, labels, locality, cluster, network, nodeName } = endpoint;
  const [address = ''] = addresses;
  return {
    portName,
    address,
    port,
    labels,
    locality,
    cluster,
    viaClusterMesh: endpoint.viaClusterMesh === true,
    network,
    nodeName,
    health,
    weight: weightOf(endpoint),
    sendable: port === 0 ? /^[/@]/.test(address) : port <= 65_535 && addresses.length > 0 && addresses.every(isAddress),
    fromSlice: health !== undefined,
    plain,
    mtls,
    disablesMtls: endpoint.disablesMtls === true,
  };
}

/**
 * What telemetry learns about an endpoint, as in Istio: workload, namespace, canonical name and revision, cluster. The
 * default revision stays empty.
 */
export function workloadOf(endpoint: Pick<Endpoint, 'labels' | 'workload' | 'namespace' | 'cluster'>): string {
  const { labels, workload, namespace, cluster } = endpoint;
  const name =
    labels['service.istio.io/canonical-name'] ?? labels['app.kubernetes.io/name'] ?? labels['app'] ?? workload;
  const revision =
    labels['service.istio.io/canonical-revision'] ?? labels['app.kubernetes.io/version'] ?? labels['version'] ?? '';
  return [workload, namespace, name, revision === 'latest' ? '' : revision, cluster].join(';');
}

function weightOf({ weight }: Pick<Endpoint, 'weight'>): number {
  return weight === undefined || weight === 0 ? 1 : weight;
}

const scaled = (weight: number, scale: number): number => Math.min(weight * scale, 2 ** 32 - 1);

/** Envoy rejects a whole assignment if it cannot parse one address. */
function isAddress(address: string): boolean {
  return isIP(address) !== 0 && !address.includes('%');
}

/**
 * Field 2 of LocalityLbEndpoints, an LbEndpoint: endpoint 1, health_status 2, metadata 3, load_balancing_weight 4.
 * Written from the last field to the first.
 *
 * @param mtls with the mark that selects mutual TLS.
 */
export function writeEndpoint(writer: BackwardWriter, endpoint: Endpoint, mtls: boolean): void {
  const { addresses, port, health } = endpoint;
  const whole = writer.mark();
  const weight = writer.mark();
  writer.unsigned(1, weightOf(endpoint));
  writer.wrap(4, weight);

  const metadata = writer.mark();
  writeMetadata(writer, 'istio', 'workload', workloadOf(endpoint));
  if (mtls) writeMetadata(writer, 'envoy.transport_socket_match', 'tlsMode', 'istio');
  writer.wrap(3, metadata);

  writer.unsigned(2, healthStatus(health));

  // Endpoint: address 1, additional_addresses 4 (each with address 1).
  const end = writer.mark();
  for (let index = addresses.length - 1; index > 0; index--) {
    const additional = writer.mark();
    writeAddress(writer, addresses[index]!, port);
    writer.wrap(4, additional);
  }
  writeAddress(writer, addresses[0] ?? '', port);
  writer.wrap(1, end);
  writer.wrap(2, whole);
}

/** Field 1, an Address: socket_address 1, pipe 2. SocketAddress: address 2, port_value 3. Pipe: path 1. */
function writeAddress(writer: BackwardWriter, address: string, port: number): void {
  const field = writer.mark();
  const kind = writer.mark();
  if (port === 0) {
    writer.text(1, address);
    writer.wrap(2, kind);
  } else {
    writer.presentUnsigned(3, port);
    writer.text(2, address);
    writer.wrap(1, kind);
  }
  writer.wrap(1, field);
}

/** Envoy's numbers. An endpoint without a health of its own is sent as unknown, not as unhealthy. */
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

/** Field 1 of Metadata, a map of Structs. Map entry: key 1, value 2. Struct: fields 1, a map. Value: string_value 3. */
function writeMetadata(writer: BackwardWriter, filter: string, key: string, value: string): void {
  const entry = writer.mark();
  const field = writer.mark();
  const text = writer.mark();
  writer.text(3, value);
  writer.wrap(2, text);
  writer.text(1, key);
  writer.wrap(1, field);
  writer.wrap(2, entry);
  writer.text(1, filter);
  writer.wrap(1, entry);
}
