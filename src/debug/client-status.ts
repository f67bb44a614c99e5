import type { EncodedResource } from '../ads/store/resource.ts';
import { type Protos, typeUrl } from '../envoy/encode/proto.ts';
import { leaf, resource } from '../envoy/encode/resource.ts';
import { HOST, NAME_TABLE } from '../model/named-host.ts';
import { type ProxyState, type ProxyTypeState, workloadOf } from '../ops/debug/proxies.ts';

const CLIENT_CONFIG = 'envoy.service.status.v3.ClientConfig';
/** What Istio's tools read of a node. */
const METADATA = ['CLUSTER_ID', 'NAMESPACE', 'ISTIO_VERSION'];

/** How far a proxy has come, as Envoy's client status. */
export function clientStatus(protos: Protos, proxy: ProxyState): EncodedResource {
  const id = workloadOf(proxy);
  const fields = METADATA.flatMap((name) => {
    const value = proxy.metadata[name];
    return typeof value === 'string' ? [[name, { stringValue: value }] as const] : [];
  });
  const message = protos.encode(CLIENT_CONFIG, {
    node: { id, metadata: { fields: Object.fromEntries(fields) } },
    genericXdsConfigs: [...proxy.types].sort((a, b) => (a.typeUrl < b.typeUrl ? -1 : 1)).map(typeStatus),
  });
  return resource(typeUrl(CLIENT_CONFIG), id, leaf(message, []));
}

function typeStatus(type: ProxyTypeState) {
  const { typeUrl: url, sentAt, error, rejected } = type;
  const sent = sentAt && timestamp(sentAt);
  const details = error ?? (rejected.length > 0 ? `rejects ${rejected.slice(0, MOST_NAMES).join(', ')}` : undefined);
  return {
    // Names are names, whole or host by host: Istio's tools know only the whole table.
    typeUrl: url === HOST ? NAME_TABLE : url,
    configStatus: statusOf(type),
    ...(sent && { lastUpdated: sent }),
    ...(details !== undefined && { errorState: { details, ...(sent && { lastUpdateAttempt: sent }) } }),
  };
}

/** Enough to see a pattern. */
const MOST_NAMES = 20;

function statusOf({ sent, synced, error, rejected }: ProxyTypeState): 'ERROR' | 'NOT_SENT' | 'SYNCED' | 'STALE' {
  if (error !== undefined || rejected.length > 0) return 'ERROR';
  if (sent === '') return 'NOT_SENT';
  return synced ? 'SYNCED' : 'STALE';
}

function timestamp(date: Date): { seconds: number; nanos: number } {
  const ms = date.getTime();
  return { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1_000_000 };
}
