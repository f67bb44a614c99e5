/** Clusters that proxies have whatever the mesh contains, with the names that Istio's tools know. */

/** Stands for whatever does not exist: it has no endpoints, so requests get 503. */
export const blackHoleCluster = 'BlackHoleCluster';
/** Forwards to the connection's original destination. */
export const passthroughCluster = 'PassthroughCluster';
/** For connections to ports that no service names. */
export const inboundPassthroughCluster = 'InboundPassthroughCluster';
/** Resolves the host of each request, for hosts that nobody knows, where the mesh config asks for that. */
export const dynamicDnsCluster = 'AllowAnyDynamicDNSCluster';
