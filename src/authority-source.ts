import { type Clock, sleep } from './clock.ts';
import { listFiles, readText } from './directory/files.ts';
import { renewed, selfSigned } from './identity/self-signed.ts';
import { type SigningMaterial, isAgeing, readMaterial } from './identity/signing-material.ts';
import type { KubeApi } from './kube/client.ts';
import { getSecret, putSecret } from './kube/secrets.ts';

export interface AuthoritySourceOptions {
  /** Where the signing certificate and its key are. */
  readonly from:
    | { readonly kind: 'directory'; readonly path: string }
    | { readonly kind: 'kubernetes'; readonly api: KubeApi; readonly namespace: string };
  readonly trustDomain: () => string;
  /** Called with what is to be used from now on. */
  readonly use: (material: SigningMaterial) => Promise<void>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: { info(message: string, fields: object): void; warn(message: string, fields: object): void };
  readonly signal: AbortSignal;
}

/** Milliseconds between two looks. */
const EVERY = 60_000;
/** The same until there is an authority. */
const FIRST = 2_000;

/** The Secret of a CA that somebody plugged in, and that of our own. Both are Istio's. */
const pluggedIn = 'cacerts';
const own = { name: 'istio-ca-secret', type: 'istio.io/ca-root' };

/** Entries of such Secrets, mounted as files. */
const entryNames = ['ca-cert.pem', 'ca-key.pem', 'root-cert.pem', 'cert-chain.pem', 'tls.crt', 'tls.key', 'ca.crt'];

type Entries = Readonly<Record<string, string>>;

/**
 * Keeps the authority up to date with where it is stored. What cannot be used leaves the former one in place. In a
 * cluster without one, a self-signed one is made; of several replicas, the one that creates the Secret first wins.
 * Ends with the signal; never rejects.
 */
export async function keepAuthority(options: AuthoritySourceOptions): Promise<void> {
  const { clock, log, random, signal, use } = options;
  let [inUse, said] = ['', ''];
  let former: Stored | undefined;
  const say = (problem: string): void => {
    if (problem !== said && problem !== '')
      log.warn('Signing certificates cannot be used', { problem, former: inUse === '' ? 'none' : 'stays in use' });
    said = problem;
  };
  while (!signal.aborted) {
    try {
      const stored = await readStored(options, former);
      const { entries } = stored;
      const read = readMaterial(entries, clock.date());
      if ('problem' in read) say(read.problem);
      else if (JSON.stringify(entries) === inUse) say('');
      else {
        await use(read.material);
        inUse = JSON.stringify(entries);
        former = stored;
        say('');
        log.info('Signing certificates', { expires: read.material.expires.toISOString() });
      }
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
    await sleep(clock, (inUse === '' ? FIRST : EVERY) * (0.9 + 0.2 * random()), { signal });
  }
}

/** Where entries come from, and what they are. */
interface Stored {
  readonly isOwn: boolean;
  readonly entries: Entries;
}

/** @param former what is in use: proxies trust nothing else, so that a Secret which is deleted ends nothing. */
async function readStored(options: AuthoritySourceOptions, former: Stored | undefined): Promise<Stored> {
  const { from, signal } = options;
  if (from.kind === 'directory') return { isOwn: false, entries: await filesIn(from.path) };
  const { api, namespace } = from;
  const plugged = await getSecret(api, namespace, pluggedIn, signal);
  if (plugged !== undefined) return { isOwn: false, entries: plugged.entries };
  if (former?.isOwn === false)
    throw new Error(`Secret ${namespace}/${pluggedIn} is gone; restart to go on without it, with another root`);
  return { isOwn: true, entries: await ownEntries(api, namespace, options, former?.entries) };
}

/** Made, or renewed from the same key, if need be. */
async function ownEntries(
  api: KubeApi,
  namespace: string,
  { clock, trustDomain, signal }: AuthoritySourceOptions,
  former: Entries | undefined,
): Promise<Entries> {
  const stored = await getSecret(api, namespace, own.name, signal);
  const now = clock.date();
  const read = stored && readMaterial(stored.entries, now);
  if (read !== undefined && ('problem' in read || !isAgeing(read.material, now))) return stored!.entries;
  const entries =
    read === undefined ? (former ?? (await selfSigned(trustDomain(), now))) : await renewed(read.material, now);
  const content = { type: own.type, entries, resourceVersion: stored?.resourceVersion };
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
