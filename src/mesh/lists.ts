/** The list of what workloads of a class serve themselves. */
export const inboundList = (workloadClass: string): string => `inbound|${workloadClass}`;

/** The list of what a gRPC server without an Envoy asks for by its own addresses. */
export const grpcServerList = (stream: string): string => `grpc|${stream}`;

/** The list of the resources that a router gets from Gateways. */
export const gatewayList = (router: string): string => `gateway|${router}`;

/** The list of the clusters named for SNI that routers get with another list: of a view, or of a shard of one. */
export const sniList = (of: string): string => `SNI|${of}`;

/** The list of the Secrets that proxies with a service account may have. */
export const secretList = (account: string): string => `secrets|${account}`;

/** The list of what all proxies are to trust. */
export const trustList = 'trust';

/** The list with the name table of a scope. */
export const tableList = (scope: string): string => `table|${scope}`;

/** The list of the names that clients of a scope, or of one of its views or shards of views, may look up. */
export const namesList = (of: string): string => `names|${of}`;

/** Qualifiers of proxies: the places from which they see endpoints. */
export const qualifiers = {
  locality: (locality: string): string => `locality ${locality}`,
  topology: (key: string): string => `topology ${key}`,
  cluster: (cluster: string): string => `cluster ${cluster}`,
  /** Network, cluster and locality. */
  sight: (key: string): string => `sight ${key}`,
};
