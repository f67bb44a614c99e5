/** A connected proxy, and how far it has come with each type. */
export interface ProxyState {
  readonly stream: string;
  readonly nodeId: string;
  /** For example `envoy 1.40.0`; may be empty. */
  readonly build: string;
  /** IP address of the client. */
  readonly address: string;
  readonly connectedAt: Date;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality: { readonly region: string; readonly zone: string; readonly subZone: string };
  /** What its node declares as `client_features`. */
  readonly features: readonly string[];
  readonly types: readonly ProxyTypeState[];
}

export interface ProxyTypeState {
  readonly typeUrl: string;
  /** cds, eds, lds, rds */
  readonly shortName: string;
  /** The names that it asked for. */
  readonly names: Iterable<string>;
  /** Nonces; empty before the first; `resumed` of a proxy that came with everything, and has been sent nothing. */
  readonly sent: string;
  readonly acked: string;
  /** Undefined: never. */
  readonly sentAt: Date | undefined;
  /** What the proxy says against what it was sent. */
  readonly error: string | undefined;
  /** Everything due to it was sent and acknowledged. */
  readonly synced: boolean;
  /** Resources whose current version it rejected. */
  readonly rejected: readonly string[];
  /** Names in a response that has been unanswered for long. */
  readonly overdue: readonly string[];
}

/** `pod.namespace`, or the whole id for a plain Envoy: what Istio's tools call a proxy by. */
export function workloadOf({ nodeId }: Pick<ProxyState, 'nodeId'>): string {
  const parts = nodeId.split('~');
  return parts.length === 4 ? parts[2]! : nodeId;
}

/**
 * The proxy that Istio's tools mean by an id: `pod.namespace`, the whole id of a node, the id of a connection, or part
 * of it. The newest of several.
 */
export function findProxy(proxies: Iterable<ProxyState>, id: string): ProxyState | undefined {
  let exact: ProxyState | undefined;
  let similar: ProxyState | undefined;
  if (id === '') return undefined;
  for (const proxy of proxies) {
    if (id === workloadOf(proxy) || id === proxy.nodeId) exact = proxy;
    else if (connectionOf(proxy).includes(id)) similar = proxy;
  }
  return exact ?? similar;
}

/** As in `/debug/syncz` of Istio; `client_features`, `synced`, `rejected` and `overdue` are our own. */
export function syncState(proxy: ProxyState): object {
  const nonces: Record<string, string> = {};
  for (const { shortName, sent, acked } of proxy.types) {
    const name = istioNames[shortName];
    if (name === undefined) continue;
    nonces[`${name}_sent`] = sent;
    nonces[`${name}_acked`] = acked;
  }
  return {
    cluster_id: proxy.metadata['CLUSTER_ID'],
    proxy: workloadOf(proxy),
    proxy_type: typeOf(proxy),
    proxy_version: proxy.build,
    istio_version: proxy.metadata['ISTIO_VERSION'],
    ...(proxy.features.length > 0 && { client_features: proxy.features }),
    ...nonces,
    resources: Object.fromEntries(
      proxy.types.map(({ typeUrl, sent, acked, sentAt, error, synced, rejected, overdue }) => [
        typeUrl,
        { sent, acked, sentTime: sentAt, lastError: error, synced, rejected, ...(overdue.length > 0 && { overdue }) },
      ]),
    ),
  };
}

/** As in `/debug/adsz` of Istio. */
export function client(proxy: ProxyState): object {
  const { metadata, locality, types } = proxy;
  return {
    ...lightClient(proxy),
    labels: metadata['LABELS'],
    metadata,
    locality: { region: locality.region, zone: locality.zone, sub_zone: locality.subZone },
    watches: Object.fromEntries(types.map(({ typeUrl, names }) => [typeUrl, [...names]])),
  };
}

/** As in `/debug/connections` of Istio; `node` and `version` are our own. */
export function lightClient(proxy: ProxyState): object {
  const { nodeId, build, address, connectedAt } = proxy;
  return { connectionId: connectionOf(proxy), connectedAt, address, node: nodeId, version: build };
}

function connectionOf(proxy: ProxyState): string {
  return `${workloadOf(proxy)}-${proxy.stream.replace(/^\D*/, '')}`;
}

const istioNames: Readonly<Record<string, string>> = { cds: 'cluster', lds: 'listener', rds: 'route', eds: 'endpoint' };

function typeOf({ nodeId }: ProxyState): string {
  const parts = nodeId.split('~');
  return parts.length === 4 ? parts[0]! : '';
}
