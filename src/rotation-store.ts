import { X509Certificate } from 'node:crypto';
import { isObject } from './api/json.ts';
import type { Entries, Rotation } from './identity/rotation.ts';
import type { KubeApi } from './kube/client.ts';
import { type StoredSecret, getSecret, isEmpty, putSecret } from './kube/secrets.ts';

/** What was read, so that nothing newer is replaced. */
export type RotationVersion = Pick<StoredSecret, 'metadata'>;

/** Keeps a rotation. */
export interface RotationStore {
  /** Without a rotation: there is none yet. Rejects if it cannot be read. */
  read(): Promise<{ readonly rotation?: Rotation; readonly version?: RotationVersion }>;
  /** False if there is a newer version than the one that was read. */
  write(rotation: Rotation, version: RotationVersion | undefined): Promise<boolean>;
}

/** For a single process without a cluster. */
export function inMemory(): RotationStore {
  let kept: Rotation | undefined;
  return {
    read: () => Promise.resolve(kept === undefined ? {} : { rotation: kept }),
    write(rotation) {
      kept = rotation;
      return Promise.resolve(true);
    },
  };
}

/** It holds the key that signs: what was plugged in may be replaced before all proxies trust what replaces it. */
const SECRET = 'fairlead-ca';
/** The entry beside those that sign. */
const STATE = 'rotation.json';

/** For all replicas in a cluster. */
export function inSecret(api: KubeApi, namespace: string, signal: AbortSignal): RotationStore {
  return {
    async read() {
      const secret = await getSecret(api, namespace, SECRET, signal);
      if (secret === undefined) return {};
      const { metadata } = secret;
      if (isEmpty(secret)) return { version: { metadata } };
      const { [STATE]: state = '', ...signing } = secret.entries;
      const rotation = readState(state, signing);
      if (rotation === undefined)
        throw new Error(
          `Secret ${namespace}/${SECRET}: ${STATE} is not valid; delete the Secret to have it written anew`,
        );
      return { rotation, version: { metadata } };
    },
    write({ signing, ...state }, former) {
      const entries = { ...signing, [STATE]: JSON.stringify(state) };
      return putSecret(api, namespace, SECRET, { type: 'Opaque', entries, former }, signal);
    },
  };
}

function readState(text: string, signing: Entries): Rotation | undefined {
  let state: unknown;
  try {
    state = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(state)) return undefined;
  const { since, roots, replicas, longest } = state;
  const isValid =
    isMoment(since) &&
    isMomentOrAbsent(longest) &&
    Array.isArray(roots) &&
    roots.every(isRoot) &&
    isObject(replicas) &&
    Object.values(replicas).every(isProgress);
  return isValid
    ? ({ signing, since, roots, replicas, ...(longest !== undefined && { longest }) } as unknown as Rotation)
    : undefined;
}

function isRoot(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { certificate, since, by, until } = value;
  return (
    typeof certificate === 'string' &&
    isCertificate(certificate) &&
    isMoment(since) &&
    isMomentOrAbsent(by) &&
    isMomentOrAbsent(until)
  );
}

function isProgress(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { at, bundle, proxies, noneSince, namespaces = 0 } = value;
  return (
    isMoment(at) &&
    isMomentOrAbsent(noneSince) &&
    typeof bundle === 'string' &&
    [proxies, namespaces].every(Number.isSafeInteger)
  );
}

function isMoment(value: unknown): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}

function isMomentOrAbsent(value: unknown): boolean {
  return value === undefined || isMoment(value);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
