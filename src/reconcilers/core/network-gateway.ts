import type { Service } from '../../api/core.ts';
import { isObject } from '../../api/json.ts';
import { canonicalAddress } from '../../model/address.ts';
import { canonicalHost } from '../../model/host.ts';
import { type Labels, selects } from '../../model/labels.ts';
import { networkLabel } from '../../model/locality.ts';
import { mostGateways, networkGatewayPort } from '../../model/network.ts';

/** Where a gateway of a network may be reached: IP addresses, and names. */
export interface GatewayPlaces {
  readonly network: string;
  readonly cluster: string;
  readonly port: number;
  /** None: nothing gives it any, so far. */
  readonly addresses: readonly string[];
}

export interface GatewayContext {
  readonly cluster: string;
  /** What MeshNetworks say about this Service. */
  named(): readonly { readonly network: string; readonly port: number }[];
  /** Nodes with external addresses. */
  nodes(): readonly { readonly labels: Labels; readonly addresses: readonly string[] }[];
}

const GATEWAY_PORT = 'networking.istio.io/gatewayPort';
const NODE_SELECTOR = 'traffic.istio.io/nodeSelector';

/** Whether a Service can have addresses outside its cluster: others are not gateways, whatever their labels say. */
export function mayBeGateway({ metadata, spec = {} }: Service): boolean {
  return (
    spec.type === 'LoadBalancer' ||
    (spec.externalIPs ?? []).length > 0 ||
    (spec.type === 'NodePort' && metadata.annotations?.[NODE_SELECTOR] !== undefined)
  );
}

/** The gateways that a Service is, by its label if it has the port, or because MeshNetworks name it. */
export function gatewaysOfService(service: Service, context: GatewayContext): readonly GatewayPlaces[] {
  const { labels = {}, annotations = {} } = service.metadata;
  const { spec = {}, status } = service;
  const network = labels[networkLabel] ?? '';
  const labelled = { network, port: portOf(labels[GATEWAY_PORT]) };
  const isOpen = (spec.ports ?? []).some(({ port }) => port === labelled.port);
  const wanted = network === '' ? context.named() : isOpen ? [labelled] : [];
  const own = [
    ...(spec.type === 'LoadBalancer' ? (status?.loadBalancer?.ingress ?? []) : []).flatMap(({ ip, hostname }) =>
      ip ? [canonicalAddress(ip)] : hostname ? [canonicalHost(hostname)] : [],
    ),
    ...(spec.externalIPs ?? []).map(canonicalAddress),
  ];
  const selector = annotations[NODE_SELECTOR];
  return wanted.map(({ network: name, port }) => {
    const { cluster } = context;
    if (spec.type !== 'NodePort' || selector === undefined)
      return { network: name, cluster, port, addresses: own.slice(0, mostGateways) };
    const nodePort = spec.ports?.find((each) => each.port === port)?.nodePort;
    const wantedNodes = readSelector(selector);
    const nodes = wantedNodes === undefined ? [] : context.nodes().filter((node) => selects(wantedNodes, node.labels));
    const addresses = nodes.flatMap((node) => node.addresses.map(canonicalAddress)).slice(0, mostGateways);
    return { network: name, cluster, port: nodePort ?? port, addresses: nodePort === undefined ? own : addresses };
  });
}

function portOf(text: string | undefined): number {
  const port = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : networkGatewayPort;
}

/** Labels as JSON; empty: all nodes. Undefined: it cannot be read, and selects none. */
function readSelector(text: string): Labels | undefined {
  if (text === '') return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (isObject(parsed) && Object.values(parsed).every((value) => typeof value === 'string')) return parsed as Labels;
  } catch {
    // It selects none.
  }
  return undefined;
}
