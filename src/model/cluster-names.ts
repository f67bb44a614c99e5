/** Clusters that proxies have whatever the mesh holds, by the names that Istio's tools know. */

/** Stands for what does not exist: it has no endpoints, so requests are answered with 503. */
export const blackHoleCluster = 'BlackHoleCluster';
/** Leads where the connection was going by itself. */
export const passthroughCluster = 'PassthroughCluster';
/** Where connections go to ports that no service names. */
export const inboundPassthroughCluster = 'InboundPassthroughCluster';
