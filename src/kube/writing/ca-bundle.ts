import { isObject, type Json } from '../../api/json.ts';

/** How long a root that is no longer ours stays in a bundle: another replica may not have heard of it yet. Milliseconds. */
export const KEPT_MS = 3 * 60_000;

export interface WantedBundle {
  /** PEM; not empty. */
  readonly roots: string;
  /** Milliseconds since these are our roots. */
  readonly age: number;
}

/** What is to be written. `webhooks` is absent if nothing is; `again`: milliseconds after which that changes by itself. */
export interface Correction {
  readonly webhooks?: readonly Json[];
  readonly again?: number;
}

/**
 * The entries of a webhook configuration with our roots in each bundle. What is missing is added at once; what is too
 * much is removed later. So replicas that learn of new roots one after the other never undo each other's writes.
 */
export function correctBundles(webhooks: readonly Json[], wanted: WantedBundle): Correction {
  const ours = certificatesIn(wanted.roots);
  const states = webhooks.map((webhook) =>
    stateOf(certificatesIn(decoded(clientOf(webhook)['caBundle'])), ours, wanted),
  );
  const caBundle = Buffer.from(wanted.roots).toString('base64');
  const corrected = webhooks.map((webhook, index): Json =>
    states[index] === 'wrong' ? { ...webhook, clientConfig: { ...clientOf(webhook), caBundle } } : webhook,
  );
  return {
    ...(states.includes('wrong') ? { webhooks: corrected } : {}),
    ...(states.includes('too much') ? { again: KEPT_MS - wanted.age } : {}),
  };
}

type Certificates = ReadonlySet<string>;

function stateOf(found: Certificates, ours: Certificates, { age }: WantedBundle): 'right' | 'too much' | 'wrong' {
  if (![...ours].every((each) => found.has(each))) return 'wrong';
  if (found.size === ours.size) return 'right';
  return age < KEPT_MS ? 'too much' : 'wrong';
}

function clientOf({ clientConfig }: Json): Json {
  return isObject(clientConfig) ? clientConfig : {};
}

const BLOCK = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g;

/** Without the line breaks, which say nothing. */
function certificatesIn(pem: string): Certificates {
  return new Set([...pem.matchAll(BLOCK)].map(([, body = '']) => body.replace(/\s+/g, '')));
}

function decoded(bundle: unknown): string {
  return typeof bundle === 'string' ? Buffer.from(bundle, 'base64').toString() : '';
}
