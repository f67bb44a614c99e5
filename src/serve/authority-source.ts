import type { Clock } from '../base/clock.ts';
import { listFiles, readText } from '../directory/files.ts';
import type { Entries } from '../identity/rotation.ts';
import { renewed } from '../identity/self-signed.ts';
import { isAgeing, readMaterial } from '../identity/signing-material.ts';
import type { KubeApi } from '../kube/client/client.ts';
import { getSecret, isEmpty, putSecret } from '../kube/client/secrets.ts';

/** Where the signing certificate and its key are. */
export type AuthoritySource =
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'kubernetes'; readonly api: KubeApi; readonly namespace: string };

export interface StoredAuthority {
  /** We made it; nobody plugged it in. */
  readonly isOwn: boolean;
  readonly entries: Entries;
}

interface SourceOptions {
  readonly from: AuthoritySource;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The Secret of a CA that somebody plugged in, and that of our own. Both are Istio's. */
const pluggedIn = 'cacerts';
const own = { name: 'istio-ca-secret', type: 'istio.io/ca-root' };

/** Entries of such Secrets, mounted as files. */
const entryNames = ['ca-cert.pem', 'ca-key.pem', 'root-cert.pem', 'cert-chain.pem', 'tls.crt', 'tls.key', 'ca.crt'];

/**
 * @param former what is in use: proxies trust nothing else, so that a Secret which is deleted ends nothing.
 * @param create what our own Secret is filled with if nothing is in use; rejects if it must not be.
 */
export async function readStored(
  options: SourceOptions,
  former: StoredAuthority | undefined,
  create: () => Promise<Entries>,
): Promise<StoredAuthority> {
  const { from, signal } = options;
  if (from.kind === 'directory') return { isOwn: false, entries: await filesIn(from.path) };
  const { api, namespace } = from;
  const plugged = await getSecret(api, namespace, pluggedIn, signal);
  if (plugged !== undefined) return { isOwn: false, entries: plugged.entries };
  if (former?.isOwn === false)
    throw new Error(`Secret ${namespace}/${pluggedIn} is gone; restart to continue without it, with another root`);
  const fill = former === undefined ? create : () => Promise.resolve(former.entries);
  return { isOwn: true, entries: await ownEntries(api, namespace, options, fill) };
}

/** Made, or renewed from the same key, if need be. The chart makes an empty Secret, which is to be filled. */
async function ownEntries(
  api: KubeApi,
  namespace: string,
  { clock, signal }: SourceOptions,
  fill: () => Promise<Entries>,
): Promise<Entries> {
  const stored = await getSecret(api, namespace, own.name, signal);
  const now = clock.date();
  const read = stored && !isEmpty(stored) ? readMaterial(stored.entries, now) : undefined;
  if (read !== undefined && ('problem' in read || !isAgeing(read.material, now))) return stored!.entries;
  const entries = read === undefined ? await fill() : await renewed(read.material, now);
  const content = { type: own.type, entries, former: stored };
  if (await putSecret(api, namespace, own.name, content, signal)) return entries;
  return (await getSecret(api, namespace, own.name, signal))?.entries ?? {};
}

async function filesIn(path: string): Promise<Entries> {
  const { files } = await listFiles(entryNames.map((name) => `${path}/${name}`));
  const entries: [string, string][] = [];
  for (const file of files) {
    const read = readText(file);
    if (read !== undefined && 'text' in read)
      entries.push([file.path.slice(file.path.lastIndexOf('/') + 1), read.text]);
  }
  return Object.fromEntries(entries);
}

/** Without what others keep beside them. */
export function onlyKnown(entries: Entries): Entries {
  return Object.fromEntries(entryNames.flatMap((name) => (entries[name] ? [[name, entries[name]]] : [])));
}
