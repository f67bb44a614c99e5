import { quote } from '../api/quote.ts';
import { type Decoded, decodeJson } from './member.ts';
import type { ClusterLimit, MeshCluster } from './names.ts';

/** What a cluster says about itself and its etcd. Source: Cilium pkg/clustermesh/types, `CiliumClusterConfig`. */
export interface ClusterConfig {
  /** 0 if the cluster is in no mesh. */
  readonly id: number;
  /** Canaries say when a kind was written; without them, keys may be read at once. */
  readonly syncedCanaries: boolean;
  /** It is a KVStoreMesh: keys are in the tree `cache`. */
  readonly cached: boolean;
  readonly limit: ClusterLimit;
  /** Undefined: the cluster does not know ServiceExports. */
  readonly serviceExports: boolean | undefined;
  /** Kinds in which it writes its global services. */
  readonly exports: { readonly services: boolean; readonly endpointSlices: boolean };
}

const exportModes: Readonly<Record<string, ClusterConfig['exports']>> = {
  '': { services: true, endpointSlices: false },
  'services-and-endpointslices': { services: true, endpointSlices: true },
  'endpointslices-only': { services: false, endpointSlices: true },
};

/** The value of `clusterConfigKey`. An export mode that is not known makes the cluster unreadable. */
export function decodeClusterConfig(bytes: Uint8Array): Decoded<ClusterConfig> {
  return decodeJson(bytes, (whole) => {
    const capabilities = whole.get('capabilities');
    const limit = capabilities.get('maxConnectedClusters');
    const most = limit.number(0, Number.MAX_SAFE_INTEGER) || 255;
    const serviceExports = capabilities.get('serviceExportsEnabled');
    const mode = capabilities.get('endpointSlicesExportMode');
    const named = mode.text();
    const exports = Object.hasOwn(exportModes, named) ? exportModes[named] : undefined;
    return {
      id: whole.get('id').number(0, 0xffff_ffff),
      syncedCanaries: capabilities.get('syncedCanaries').flag(),
      cached: capabilities.get('cached').flag(),
      limit: most === 255 || most === 511 ? most : limit.wrong(`${most} is neither 255 nor 511`),
      serviceExports: serviceExports.isSet ? serviceExports.flag() : undefined,
      exports: exports ?? mode.wrong(`${quote(named)} is not supported; upgrade Fairlead`),
    };
  });
}

/**
 * Why the clusters cannot be in one mesh. As Cilium does it, a cluster with the usual limit takes others as they are:
 * their ids are in its range, or refused.
 */
export function limitProblem(remote: ClusterConfig, own: MeshCluster): string | undefined {
  if (own.limit === 255 || remote.limit === own.limit) return undefined;
  return `maxConnectedClusters is ${remote.limit} there and ${own.limit} here; all clusters must have the same`;
}

/** What an exporter of services and their slices says. It knows no ServiceExports, so it does not speak of them. */
export function encodeClusterConfig({ id, limit }: MeshCluster): string {
  const endpointSlicesExportMode = 'services-and-endpointslices' satisfies keyof typeof exportModes;
  return JSON.stringify({
    id,
    capabilities: { syncedCanaries: true, maxConnectedClusters: limit, endpointSlicesExportMode },
  });
}
