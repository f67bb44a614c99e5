/** A workload's identity, as its certificate has it. */
export interface SpiffeId {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

export function spiffeId(trustDomain: string, namespace: string, serviceAccount: string): string {
  return `spiffe://${trustDomain}/ns/${namespace}/sa/${serviceAccount}`;
}

/**
 * The characters that SPIFFE allows. Upper case in a trust domain, which SPIFFE does not allow, is accepted as Istio
 * does, and is significant.
 */
const PATTERN = /^spiffe:\/\/([A-Za-z0-9._-]+)\/ns\/([A-Za-z0-9._-]+)\/sa\/([A-Za-z0-9._-]+)$/;

/** SPIFFE-ID, 2.3. */
const longest = 2048;

/** `undefined` unless the text is exactly `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`. */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  if (text.length > longest) return undefined;
  const [, trustDomain, namespace, serviceAccount] = PATTERN.exec(text) ?? [];
  if (trustDomain === undefined || namespace === undefined || serviceAccount === undefined) return undefined;
  if ([namespace, serviceAccount].some((segment) => segment === '.' || segment === '..')) return undefined;
  return { trustDomain, namespace, serviceAccount };
}
