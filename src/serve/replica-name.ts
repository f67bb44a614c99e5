import { nameKey, parseNameKey } from '../api/keys.ts';
import { hostname } from 'node:os';

/** Of this process, if nobody says otherwise. */
export function replicaName(): string {
  return podOf(process.env) ?? `${hostname()}-${process.pid}`;
}

/** Undefined: the replica is not a Pod. */
export function namespaceOf(replica: string): string | undefined {
  return replica.includes('/') ? parseNameKey(replica).namespace : undefined;
}

/** `namespace/name` of the Pod that this runs in, as set by the chart. */
function podOf({ POD_NAMESPACE: namespace, POD_NAME: name }: NodeJS.ProcessEnv): string | undefined {
  return namespace === undefined || name === undefined ? undefined : nameKey(namespace, name);
}
