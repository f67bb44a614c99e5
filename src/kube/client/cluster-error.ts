/** The cluster does not answer as it should. The message is for the user. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  readonly code = 'CLUSTER';
}
