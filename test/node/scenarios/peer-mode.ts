/** A PeerAuthentication, for Pods with these labels or the whole namespace. */
export function peerMode(
  namespace: string,
  name: string,
  mode: 'STRICT' | 'PERMISSIVE' | 'DISABLE',
  labels?: Readonly<Record<string, string>>,
): string {
  return JSON.stringify({
    apiVersion: 'security.istio.io/v1',
    kind: 'PeerAuthentication',
    metadata: { name, namespace },
    spec: { mtls: { mode }, ...(labels && { selector: { matchLabels: labels } }) },
  });
}
